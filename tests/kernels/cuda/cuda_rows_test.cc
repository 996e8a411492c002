// Every row of the CUDA backend's kernel table against the double-precision reference: see row_check.h.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/kernel_table.h"
#include "tests/kernels/row_check.h"

namespace swizzle {
namespace {

const StatusOr<std::unique_ptr<Backend>>& TestBackend() {
  static const StatusOr<std::unique_ptr<Backend>> backend = NewCudaBackend(0);
  return backend;
}

class CudaRowTest : public testing::TestWithParam<const Kernel*> {};

TEST_P(CudaRowTest, AgreesWithReference) {
  if (!TestBackend().ok()) GTEST_SKIP() << TestBackend().status().message();
  Backend& backend = **TestBackend();
  static RowChecker checker(backend);
  const Kernel& kernel = *GetParam();
  if ((kernel.required_features & ~backend.features()) != 0) GTEST_SKIP() << "not on this GPU";
  RecordProperty("cases", static_cast<int>(CasesOf(kernel).size()));
  checker.Check(kernel);
}

std::vector<const Kernel*> AllRows() {
  std::vector<const Kernel*> rows;
  for (const Kernel& kernel : cuda::KernelTable()) rows.push_back(&kernel);
  return rows;
}

std::string RowName(const testing::TestParamInfo<const Kernel*>& row) { return std::string(row.param->name); }

INSTANTIATE_TEST_SUITE_P(Cuda, CudaRowTest, testing::ValuesIn(AllRows()), RowName);

TEST(CudaKernelTable, EveryRowIsExercised) {
  for (const Kernel& kernel : cuda::KernelTable()) {
    EXPECT_FALSE(CasesOf(kernel).empty()) << "no case of kernel_cases.cc exercises " << kernel.name;
  }
}

TEST(CudaKernelTable, NamesAreUnique) {
  std::map<std::string_view, int> count;
  for (const Kernel& kernel : cuda::KernelTable()) EXPECT_EQ(++count[kernel.name], 1) << kernel.name;
}

}  // namespace
}  // namespace swizzle
