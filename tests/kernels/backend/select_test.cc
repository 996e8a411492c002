// Kernel selection: which rows are candidates.
#include "kernels/backend/select.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"
#include "kernels/format/csr.h"
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

// Of SmallProblem().
Weight WeightIn(Format format) {
  const DenseMatrix dense{.rows = 5, .cols = 3, .values = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 5}};
  return {.matrix = *WeightMatrix::FromDense(format, dense), .bias = {}};
}

Problem SmallProblem() { return {{}, {1, 3, 4, 4}, {1, 5, 4, 4}}; }

TEST(CandidatesTest, DenseIsACandidateForASparseWeight) {
  const FakeBackend backend(kTable, 3);
  const Weight weight = WeightIn(Format::kCsr);
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), &weight, Precision::kFloat32)),
            (std::vector<std::string>{"csr", "dense", "dense_wide", "dense_one"}));
}

// How fast they are goes by zeros that only calibration data tells.
TEST(CandidatesTest, RowsThatSkipInputZerosAreNoneWhereTheseAreUnknown) {
  constexpr Kernel kRow = {"skips", Key(Op::kConv, Format::kCsr), 0, AcceptsAll, nullptr, nullptr, RunNothing};
  constexpr Kernel kSkipping[] = {SkippingInputZeros(kRow)};
  const FakeBackend backend(kSkipping, 0);
  const Weight weight = WeightIn(Format::kCsr);
  Problem problem = SmallProblem();
  EXPECT_TRUE(Candidates(backend, problem, &weight, Precision::kFloat32).empty());
  problem.input_zeros = InputZeros{0, 0, 0.5, 0.75};
  EXPECT_EQ(Names(Candidates(backend, problem, &weight, Precision::kFloat32)), std::vector<std::string>{"skips"});
  EXPECT_EQ(AsRowSolves(kSkipping[0], problem).input_zeros, problem.input_zeros);
  EXPECT_FALSE(AsRowSolves(kRow, problem).input_zeros) << "its times are the same with others";
}

TEST(CandidatesTest, CsrIsNoneForADenseWeight) {
  const FakeBackend backend(kTable, 3);
  const Weight weight = WeightIn(Format::kDense);
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), &weight, Precision::kFloat32)),
            (std::vector<std::string>{"dense", "dense_wide", "dense_one"}));
}

TEST(CandidatesTest, FeaturesAndAcceptsDecide) {
  const FakeBackend backend(kTable, 1);
  const Weight weight = WeightIn(Format::kDense);
  Problem problem = SmallProblem();
  EXPECT_EQ(Names(Candidates(backend, problem, &weight, Precision::kFloat32)),
            (std::vector<std::string>{"dense", "dense_one"}));
  problem.input.batch = problem.output.batch = 2;
  EXPECT_EQ(Names(Candidates(backend, problem, &weight, Precision::kFloat32)), (std::vector<std::string>{"dense"}));
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
  const Weight weight = WeightIn(Format::kDense);
  const FakeBackend backend(kTypes, 0);
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), &weight, Precision::kFloat32)),
            (std::vector<std::string>{"f32", "request"}));
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), &weight, Precision::kBFloat16)),
            (std::vector<std::string>{"f32", "bf16", "request"}));
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), &weight, Precision::kFloat16)),
            (std::vector<std::string>{"f32", "request"}));
}

// What accepts is asked about is stored as the row has it.
TEST(CandidatesTest, RowsAreAskedAboutTheProblemAsTheyWouldSolveIt) {
  static constexpr Kernel kPicky[] = {
      {"panels", Key(Op::kConv, Format::kDense), 0,
       [](const Problem& problem) {
         return problem.to == Storage{Layout::kPanels, DType::kFloat32};
       }},
  };
  const Weight weight = WeightIn(Format::kDense);
  const FakeBackend backend(kPicky, 0);
  EXPECT_EQ(Candidates(backend, SmallProblem(), &weight, Precision::kFloat32).size(), 1u);
}

bool HasFirstWeight(const Weight& weight, const Problem&) { return weight.ToDense().values[0] != 0; }

TEST(CandidatesTest, RowsAskWhatTheyHold) {
  static constexpr Kernel kRows[] = {
      {"of_any", Key(Op::kConv, Format::kCsr), 0, AcceptsAll, nullptr, nullptr, RunNothing},
      {"of_some", Key(Op::kConv, Format::kCsr), 0, AcceptsAll, nullptr, nullptr, RunNothing, {}, HasFirstWeight},
  };
  const FakeBackend backend(kRows, 0);
  const Weight weight = WeightIn(Format::kCsr);
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), &weight, Precision::kFloat32)),
            (std::vector<std::string>{"of_any", "of_some"}));
  const Weight other{CsrMatrix::FromDense({.rows = 5, .cols = 3, .values = std::vector<float>(15)}), {}};
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), &other, Precision::kFloat32)),
            (std::vector<std::string>{"of_any"}));
}

TEST(WidestCandidatesTest, OfInstructionSetsOneAndOfLibrariesAll) {
  constexpr Kernel kRow = {"", Key(Op::kConv, Format::kDense), 1, AcceptsAll, nullptr, nullptr, RunNothing};
  const auto variant = [&](std::string_view name, uint32_t features, std::string_view family) {
    Kernel kernel = kRow;
    kernel.family = family;
    kernel.name = name;
    kernel.required_features = features;
    return kernel;
  };
  const Kernel variants[] = {variant("narrow", 1, "conv"), variant("wide", 2, "conv"), variant("widest", 4, "conv"),
                             variant("one", 1, ""),        variant("other", 2, ""),    variant("elsewhere", 1, "nchw")};
  const FakeBackend backend(variants, 3);
  const Weight weight = WeightIn(Format::kDense);
  EXPECT_EQ(Names(WidestCandidates(backend, SmallProblem(), &weight, Precision::kFloat32)),
            (std::vector<std::string>{"wide", "one", "other", "elsewhere"}));
}

// A special case of a kernel, written where others of its family are as wide, stands before them.
TEST(WidestCandidatesTest, OfEquallyWideOnesTheFirst) {
  static constexpr Kernel kRows[] = {
      {.name = "special",
       .key = Key(Op::kConv, Format::kDense),
       .required_features = 2,
       .accepts = AcceptsOneImage,
       .family = "conv"},
      {.name = "wide",
       .key = Key(Op::kConv, Format::kDense),
       .required_features = 2,
       .accepts = AcceptsAll,
       .family = "conv"},
      {.name = "narrow", .key = Key(Op::kConv, Format::kDense), .accepts = AcceptsAll, .family = "conv"},
  };
  const FakeBackend backend(kRows, 2);
  const Weight weight = WeightIn(Format::kDense);
  Problem problem = SmallProblem();
  const auto names = [&] { return Names(WidestCandidates(backend, problem, &weight, Precision::kFloat32)); };
  EXPECT_EQ(names(), (std::vector<std::string>{"special"}));
  problem.input.batch = problem.output.batch = 2;
  EXPECT_EQ(names(), (std::vector<std::string>{"wide"}));
}

TEST(CandidatesTest, OpsWithoutWeights) {
  const FakeBackend backend(kTable, 0);
  Problem problem = SmallProblem();
  problem.SetOp(Op::kAdd);
  EXPECT_EQ(Names(Candidates(backend, problem, nullptr, Precision::kFloat32)), (std::vector<std::string>{"add"}));
}

// Rows that read an image of bytes, on a processor with all that they need.
std::vector<std::string> RowsOfImages(int64_t channels, int window_size) {
  const FakeBackend backend(cpu::KernelTable(), cpu::kAvx512 | cpu::kVnni | cpu::kVbmi | cpu::kAvx2 | cpu::kAnyX86);
  Problem problem{{Op::kConv, Window(), {}}, {1, channels, 8, 8}, {1, 16, 8, 8}};
  problem.window().kernel_h = problem.window().kernel_w = window_size;
  problem.window().pad_top = problem.window().pad_left = window_size / 2;
  problem.window().pad_bottom = problem.window().pad_right = (window_size - 1) / 2;
  problem.inputs_as[0] = {DType::kUint8, 0.5f, 3};
  problem.epilogue.requantise = Quantised{DType::kUint8, 2.0f, 7};
  const int64_t cols = channels * window_size * window_size;
  Weight weight{DenseMatrix{16, cols, std::vector<float>(16 * cols, 1.0f)}, {}};
  weight.quantisation = Quantisation{DType::kInt8, std::vector<float>(16, 1.0f), {}};
  std::vector<std::string> names;
  for (const Kernel* kernel : WidestCandidates(backend, problem, &weight, Precision::kFloat32)) {
    if (kernel->key.input == Storage{Layout::kNchw, DType::kUint8} && kernel->key.output.layout == Layout::kFullPanels)
      names.emplace_back(kernel->name);
  }
  return names;
}

TEST(KernelTableTest, FirstLayersOfBytesHaveOneRow) {
  const std::vector<std::string> stem = {"conv_stem_dense_u8_vbmi"}, usual = {"conv_nchw_dense_u8_vbmi"};
  EXPECT_EQ(RowsOfImages(3, 3), stem);
  EXPECT_EQ(RowsOfImages(4, 3), stem);
  EXPECT_EQ(RowsOfImages(8, 3), usual);
  EXPECT_EQ(RowsOfImages(3, 2), usual);
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
