// Every row of the CPU backend's kernel table against the double-precision reference: see row_check.h.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "kernels/cpu/cpu_backend.h"
#include "tests/kernels/row_check.h"

namespace swizzle {
namespace {

Backend& TestBackend() {
  static const std::unique_ptr<Backend> backend = NewCpuBackend();
  return *backend;
}

class KernelRowTest : public ::testing::TestWithParam<const Kernel*> {};

TEST_P(KernelRowTest, AgreesWithReference) {
  static RowChecker checker(TestBackend());
  const Kernel& kernel = *GetParam();
  if ((kernel.required_features & ~TestBackend().features()) != 0) GTEST_SKIP() << "not on this processor";
  const size_t cases = CasesOf(kernel).size();
  RecordProperty("cases", static_cast<int>(cases));
  EXPECT_GT(cases, 0u) << "no case of kernel_cases.cc exercises this row";
  checker.Check(kernel);
}

std::vector<const Kernel*> AllRows() {
  std::vector<const Kernel*> rows;
  for (const Kernel& kernel : TestBackend().kernels()) rows.push_back(&kernel);
  return rows;
}

std::string RowName(const ::testing::TestParamInfo<const Kernel*>& row) { return std::string(row.param->name); }

INSTANTIATE_TEST_SUITE_P(Cpu, KernelRowTest, ::testing::ValuesIn(AllRows()), RowName);

TEST(KernelTable, NamesAreUnique) {
  std::map<std::string_view, int> count;
  for (const Kernel& kernel : TestBackend().kernels()) EXPECT_EQ(++count[kernel.name], 1) << kernel.name;
}

}  // namespace
}  // namespace swizzle
