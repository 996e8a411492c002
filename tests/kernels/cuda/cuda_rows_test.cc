// Every row of the CUDA backend's kernel table against the double-precision reference: see row_check.h.
// SWIZZLE_EVERY_CASE=8 in the environment leaves each row every eighth of its cases, rows in turn others: for
// compute-sanitizer, under which all of them take an hour.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/kernel_table.h"
#include "tests/kernels/row_check.h"

namespace swizzle {
namespace {

const StatusOr<std::unique_ptr<Backend>>& TestBackend() {
  static const StatusOr<std::unique_ptr<Backend>> backend = NewCudaBackend(0);
  return backend;
}

class CudaRowTest : public ::testing::TestWithParam<const Kernel*> {};

TEST_P(CudaRowTest, AgreesWithReference) {
  if (!TestBackend().ok()) GTEST_SKIP() << TestBackend().status().message();
  Backend& backend = **TestBackend();
  static RowChecker checker(backend);
  const Kernel& kernel = *GetParam();
  if ((kernel.required_features & ~backend.features()) != 0) GTEST_SKIP() << "not on this GPU";
  RecordProperty("cases", static_cast<int>(CasesOf(kernel).size()));
  const char* const every = std::getenv("SWIZZLE_EVERY_CASE");
  checker.Check(kernel, every != nullptr ? std::stoul(every) : 1, &kernel - cuda::KernelTable().data());
}

std::vector<const Kernel*> AllRows() {
  std::vector<const Kernel*> rows;
  for (const Kernel& kernel : cuda::KernelTable()) rows.push_back(&kernel);
  return rows;
}

std::string RowName(const ::testing::TestParamInfo<const Kernel*>& row) { return std::string(row.param->name); }

INSTANTIATE_TEST_SUITE_P(Cuda, CudaRowTest, ::testing::ValuesIn(AllRows()), RowName);

TEST(CudaKernelTable, EveryRowIsExercised) {
  for (const Kernel& kernel : cuda::KernelTable()) {
    EXPECT_FALSE(CasesOf(kernel).empty()) << "no case of kernel_cases.cc exercises " << kernel.name;
  }
}

// Plans make functions the end of whatever convolution comes before them, and do not ask its rows; values that may be
// whole numbers get none, nor does what a pooling reads.
bool MayEndInAFunction(const Kernel& kernel) {
  return kernel.key.op == Op::kConv && kernel.key.output.dtype != DType::kUint8 && !kernel.key.output.pooled;
}

TEST(CudaKernelTable, EveryConvolutionTakesEveryFunction) {
  for (const Kernel& kernel : cuda::KernelTable()) {
    if (!MayEndInAFunction(kernel)) continue;
    for (const SeededCase& plain : CasesOf(kernel)) {
      Problem problem = plain.kernel_case.problem;
      for (int kind = 0; kind < kFunctionKindCount; ++kind) {
        problem.epilogue.function = Function{static_cast<FunctionKind>(kind), 0, 0};
        ASSERT_TRUE(kernel.accepts(problem)) << kernel.name << " " << CaseText(plain.kernel_case);
      }
    }
  }
}

// What is accepted is also tried, in weights that the row holds.
TEST(CudaKernelTable, EveryConvolutionIsTriedWithEveryFunction) {
  for (const Kernel& kernel : cuda::KernelTable()) {
    if (!MayEndInAFunction(kernel)) continue;
    std::set<FunctionKind> tried;
    for (const SeededCase& seeded : CasesOf(kernel)) {
      const auto& function = seeded.kernel_case.problem.epilogue.function;
      if (!function || tried.contains(function->kind)) continue;  // to draw a weight takes a while
      if (HoldsWeightOf(kernel, seeded)) tried.insert(function->kind);
    }
    EXPECT_EQ(tried.size(), static_cast<size_t>(kFunctionKindCount)) << kernel.name;
  }
}

// Norms within products are of blocks in clusters of two or more, a group or two of 64 rows each.
TEST(CudaKernelTable, NormsWithinProductsTakeRowsOfWholeClusters) {
  int seen = 0;
  for (const Kernel& kernel : cuda::KernelTable()) {
    if (kernel.key.op != Op::kLayerNorm || kernel.key.weights != Format::kShflBw) continue;
    ++seen;
    Problem problem = CasesOf(kernel).front().kernel_case.problem;
    for (const auto& [rows, accepted] : std::vector<std::pair<int64_t, bool>>{{64, false},
                                                                              {96, false},
                                                                              {128, true},
                                                                              {512, true},
                                                                              {576, false},
                                                                              {640, true},
                                                                              {1024, true},
                                                                              {1088, false}}) {
      problem.output.channels = rows;
      EXPECT_EQ(kernel.accepts(problem), accepted) << kernel.name << ", " << rows << " rows";
    }
  }
  EXPECT_GT(seen, 0);
}

TEST(CudaKernelTable, NamesAreUnique) {
  std::map<std::string_view, int> count;
  for (const Kernel& kernel : cuda::KernelTable()) EXPECT_EQ(++count[kernel.name], 1) << kernel.name;
}

}  // namespace
}  // namespace swizzle
