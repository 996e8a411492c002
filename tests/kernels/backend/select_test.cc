// Kernel selection: which rows are candidates.
#include "kernels/backend/select.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/runtime/targets.h"
#include "tests/kernels/fake_backend.h"

namespace swizzle {
namespace {

bool AcceptsAll(const Problem&) { return true; }
bool AcceptsOneImage(const Problem& problem) { return problem.input.batch == 1; }
void RunNothing(const KernelArgs&, Stream&) {}

constexpr KernelKey Key(Op op, Format format) {
  return {op, format, DType::kFloat32, {Layout::kNchw, DType::kFloat32}, {Layout::kPanels, DType::kFloat32}};
}

constexpr Kernel kTable[] = {
    {"csr", Key(Op::kConv, Format::kCsr), 0, AcceptsAll, nullptr, nullptr, RunNothing},
    {"dense", Key(Op::kConv, Format::kDense), 0, AcceptsAll, nullptr, nullptr, RunNothing},
    {"dense_wide", Key(Op::kConv, Format::kDense), 2, AcceptsAll, nullptr, nullptr, RunNothing},
    {"dense_one", Key(Op::kConv, Format::kDense), 1, AcceptsOneImage, nullptr, nullptr, RunNothing},
    {"add", Key(Op::kAdd, Format::kNone), 0, AcceptsAll, nullptr, nullptr, RunNothing},
};

std::vector<std::string> Names(const std::vector<const Kernel*>& kernels) {
  std::vector<std::string> names;
  for (const Kernel* kernel : kernels) names.emplace_back(kernel->name);
  return names;
}

Problem SmallProblem() { return {{}, {1, 3, 4, 4}, {1, 5, 4, 4}}; }

TEST(CandidatesTest, DenseIsACandidateForASparseWeight) {
  const FakeBackend backend(kTable, 3);
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), Format::kCsr, Precision::kFloat32)),
            (std::vector<std::string>{"csr", "dense", "dense_wide", "dense_one"}));
}

TEST(CandidatesTest, CsrIsNoneForADenseWeight) {
  const FakeBackend backend(kTable, 3);
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), Format::kDense, Precision::kFloat32)),
            (std::vector<std::string>{"dense", "dense_wide", "dense_one"}));
}

TEST(CandidatesTest, FeaturesAndAcceptsDecide) {
  const FakeBackend backend(kTable, 1);
  Problem problem = SmallProblem();
  EXPECT_EQ(Names(Candidates(backend, problem, Format::kDense, Precision::kFloat32)),
            (std::vector<std::string>{"dense", "dense_one"}));
  problem.input.batch = problem.output.batch = 2;
  EXPECT_EQ(Names(Candidates(backend, problem, Format::kDense, Precision::kFloat32)),
            (std::vector<std::string>{"dense"}));
}

// One in half precision beside them: which types activations may have is the precision's to say.
TEST(CandidatesTest, ThePrecisionSaysHowActivationsAreStored) {
  static constexpr Storage kRequest = {Layout::kNchw, DType::kFloat32};
  static constexpr Storage kHalves = {Layout::kPanels, DType::kBFloat16};
  static constexpr Kernel kTypes[] = {
      {"f32", Key(Op::kConv, Format::kDense), 0, AcceptsAll, nullptr, nullptr, RunNothing},
      {"bf16", {Op::kConv, Format::kDense, DType::kFloat32, kRequest, kHalves}, 0, AcceptsAll},
      {"request", {Op::kConv, Format::kDense, DType::kFloat32, kRequest, kRequest}, 0, AcceptsAll},
  };
  const FakeBackend backend(kTypes, 0);
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), Format::kDense, Precision::kFloat32)),
            (std::vector<std::string>{"f32", "request"}));
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), Format::kDense, Precision::kBFloat16)),
            (std::vector<std::string>{"bf16", "request"}));
}

// What accepts is asked about is stored as the row has it.
TEST(CandidatesTest, RowsAreAskedAboutTheProblemAsTheyWouldSolveIt) {
  static constexpr Kernel kPicky[] = {
      {"panels", Key(Op::kConv, Format::kDense), 0,
       [](const Problem& problem) {
         return problem.to == Storage{Layout::kPanels, DType::kFloat32};
       }},
  };
  const FakeBackend backend(kPicky, 0);
  EXPECT_EQ(Candidates(backend, SmallProblem(), Format::kDense, Precision::kFloat32).size(), 1u);
}

TEST(WidestCandidatesTest, OfInstructionSetsOneAndOfLibrariesAll) {
  static constexpr Kernel kVariants[] = {
      {"conv_dense_f32_narrow", Key(Op::kConv, Format::kDense), 1, AcceptsAll, nullptr, nullptr, RunNothing},
      {"conv_dense_f32_wide", Key(Op::kConv, Format::kDense), 2, AcceptsAll, nullptr, nullptr, RunNothing},
      {"conv_dense_f32_widest", Key(Op::kConv, Format::kDense), 4, AcceptsAll, nullptr, nullptr, RunNothing},
      {"conv_nhwc_dense_f32_one", Key(Op::kConv, Format::kDense), 1, AcceptsAll, nullptr, nullptr, RunNothing},
      {"conv_nhwc_dense_f32_other", Key(Op::kConv, Format::kDense), 1, AcceptsAll, nullptr, nullptr, RunNothing},
  };
  const FakeBackend backend(kVariants, 3);
  EXPECT_EQ(Names(WidestCandidates(backend, SmallProblem(), Format::kDense, Precision::kFloat32)),
            (std::vector<std::string>{"conv_dense_f32_wide", "conv_nhwc_dense_f32_one", "conv_nhwc_dense_f32_other"}));
}

TEST(CandidatesTest, OpsWithoutWeights) {
  const FakeBackend backend(kTable, 0);
  Problem problem = SmallProblem();
  problem.SetOp(Op::kAdd);
  EXPECT_EQ(Names(Candidates(backend, problem, Format::kNone, Precision::kFloat32)), (std::vector<std::string>{"add"}));
}

TEST(KernelTableTest, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Kernel& kernel : NewCpuBackend()->kernels()) EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
}

TEST(KernelTableTest, EveryProcessorHasSparseAndDenseConvolutions) {
  const auto backend = NewCpuBackend();
  int csr = 0;
  int dense = 0;
  for (const Kernel& kernel : backend->kernels()) {
    if (kernel.required_features != cpu::kAnyX86 || kernel.key.op != Op::kConv) continue;
    csr += kernel.key.weights == Format::kCsr;
    dense += kernel.key.weights == Format::kDense;
  }
  EXPECT_GT(csr, 0);
  EXPECT_GT(dense, 0);
}

TEST(KernelTableTest, WeightsOfEitherFormatCount) {
  const DenseMatrix dense{.rows = 2, .cols = 3, .values = {0, 1, 0, 2, 0, 3}};
  const Weight as_dense{.matrix = dense, .bias = {}};
  const Weight as_csr{.matrix = CsrMatrix::FromDense(dense), .bias = {}};
  for (const Weight* weight : {&as_dense, &as_csr}) {
    EXPECT_EQ(weight->rows(), 2);
    EXPECT_EQ(weight->cols(), 3);
    EXPECT_EQ(weight->nonzeros(), 3);
    EXPECT_EQ(weight->ToDense().values, dense.values);
  }
  EXPECT_EQ(as_dense.format(), Format::kDense);
  EXPECT_EQ(as_csr.format(), Format::kCsr);
}

}  // namespace
}  // namespace swizzle
