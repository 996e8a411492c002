// Rows of the CUDA backend's kernel table where their tables of cases do not go: extents beyond what a grid's second
// and third dimension take, and numbers that are none. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/kernel_table.h"

namespace swizzle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Whether a row takes weights of ones, where it asks for some kind.
bool HoldsOnes(const Kernel& kernel, const Problem& problem);

class CudaEdgesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto backend = NewCudaBackend(0);
    if (!backend.ok()) GTEST_SKIP() << backend.status().message();
    backend_ = *std::move(backend);
    stream_ = *backend_->NewStream(0);
  }

  // The rows of an op that this GPU has and that take the problem, in single precision.
  std::vector<const Kernel*> RowsFor(const Problem& problem) const {
    std::vector<const Kernel*> rows;
    for (const Kernel& kernel : backend_->kernels()) {
      const KernelKey& key = kernel.key;
      const bool single = MayStore(Precision::kFloat32, key.input) && MayStore(Precision::kFloat32, key.output);
      const bool here = (kernel.required_features & ~backend_->features()) == 0;
      const Problem solved = AsRowSolves(kernel, problem);
      if (key.op == problem.op && single && here && kernel.accepts(solved) && HoldsOnes(kernel, solved)) {
        rows.push_back(&kernel);
      }
    }
    EXPECT_FALSE(rows.empty()) << OpName(problem.op);
    return rows;
  }

  // What a row makes of inputs that all hold `value`; spare positions included.
  std::vector<float> Run(const Kernel& kernel, const Problem& asked, const Weight& weight, float value) {
    const Problem problem = AsRowSolves(kernel, asked);
    std::unique_ptr<PackedWeight> packed;
    if (kernel.prepare != nullptr) packed = *backend_->Prepare(kernel, weight, problem);
    return Run<float>(kernel, problem, packed.get(),
                      std::vector<float>(LayoutElements(problem.input, problem.from.layout), value));
  }

  // The same of inputs that all are `values`; elements as the row has them.
  template <typename T>
  std::vector<T> Run(const Kernel& kernel, const Problem& problem, const PackedWeight* weight,
                     const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    const auto input = *backend_->Allocate(bytes);
    stream_->Copy(input->data(), values.data(), bytes);
    std::vector<T> result(LayoutElements(problem.output, problem.to.layout));
    const auto output = *backend_->Allocate(result.size() * sizeof(T));
    const size_t workspace_bytes = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(problem);
    const auto workspace = *backend_->Allocate(workspace_bytes);
    const std::vector<Operand> inputs(InputCount(problem), {input->data(), problem.from.dtype});
    KernelArgs args;
    args.problem = &problem;
    args.weight = weight;
    args.inputs = inputs;
    args.output = {output->data(), problem.to.dtype};
    args.workspace = {workspace->data(), workspace_bytes};
    stream_->Run([&] { kernel.run(args, *stream_); });
    stream_->Copy(result.data(), output->data(), result.size() * sizeof(T));
    const Status status = stream_->Synchronize();
    EXPECT_TRUE(status.ok()) << kernel.name << ": " << status.message();
    return result;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_;
};

Weight Ones(int64_t rows, int64_t cols) {
  Weight weight;
  weight.matrix = DenseMatrix{rows, cols, std::vector<float>(static_cast<size_t>(rows * cols), 1.0f)};
  weight.bias.assign(static_cast<size_t>(rows), 0.5f);
  return weight;
}

bool HoldsOnes(const Kernel& kernel, const Problem& problem) {
  if (kernel.holds == nullptr) return true;
  return kernel.holds(Ones(problem.output.channels, problem.op == Op::kConv ? problem.input.channels : 1), problem);
}

// Layouts in which every element has a meaning, for these extents: positions are a multiple of the rows' unit.
void ExpectAll(const std::vector<float>& values, float expected, std::string_view row) {
  const auto wrong = std::ranges::find_if(values, [&](float value) { return value != expected; });
  EXPECT_EQ(wrong, values.end()) << row << ": element " << wrong - values.begin() << " of " << values.size() << " is "
                                 << *wrong;
}

TEST_F(CudaEdgesTest, LayoutsOfManyImagesAreConverted) {
  Problem problem;
  problem.SetOp(Op::kConvertLayout);
  problem.input = problem.output = {70'016, 3, 1, 2};
  for (const Kernel* kernel : RowsFor(problem)) ExpectAll(Run(*kernel, problem, {}, 3), 3, kernel->name);
}

TEST_F(CudaEdgesTest, ImagesBeyondAGridsLimitArePooled) {
  Problem problem;
  problem.SetOp(Op::kAveragePool);
  problem.input = {80'000, 5, 2, 1};
  problem.output = {80'000, 5};
  problem.window().kernel_h = 2;
  for (const Kernel* kernel : RowsFor(problem)) ExpectAll(Run(*kernel, problem, {}, 3), 3, kernel->name);
}

// A classifier of as many channels as some vocabularies have, over a batch.
TEST_F(CudaEdgesTest, WideHeadsAreMultiplied) {
  constexpr int64_t kChannels = 100'000, kPositions = 1024;
  const Weight weight = Ones(kChannels, 2);
  Problem problem;
  problem.input = {kPositions, 2};
  problem.output = {kPositions, kChannels};
  problem.epilogue.low = 0;
  for (const Kernel* kernel : RowsFor(problem)) ExpectAll(Run(*kernel, problem, weight, 2), 4.5f, kernel->name);
}

TEST_F(CudaEdgesTest, EmbeddingsOfManyChannels) {
  constexpr int64_t kChannels = 2'200'000;
  Problem problem;
  problem.SetOp(Op::kEmbedding);
  problem.input = {16, 1};
  problem.output = {16, kChannels};
  Weight weight = Ones(1, kChannels);
  weight.bias.clear();
  for (const Kernel* kernel : RowsFor(problem)) {
    ExpectAll(Run(*kernel, problem, weight, std::bit_cast<float>(int32_t{0})), 1, kernel->name);
  }
}

// Copies count in words of 32 bits how far a tap is away, also in planes that padding alone makes as high.
TEST_F(CudaEdgesTest, WindowsThatReachTooFarAreLeftToOthers) {
  constexpr int kFar = 1 << 15;
  Problem problem;
  Window& window = problem.window();
  window.kernel_h = window.kernel_w = 3;
  window.dilation_h = window.pad_top = window.pad_bottom = kFar;
  window.pad_left = window.pad_right = 1;
  problem.input = {64, 4, 1, 1024};
  problem.output = {64, 64, 1, 1024};
  int rows = 0;
  for (const Kernel& kernel : backend_->kernels()) {
    if (kernel.key.op != Op::kConv || kernel.key.input.layout != Layout::kBatched) continue;
    EXPECT_FALSE(kernel.accepts(AsRowSolves(kernel, problem))) << kernel.name;
    ++rows;
  }
  EXPECT_GT(rows, 0);
}

// A grid's second dimension counts them.
TEST_F(CudaEdgesTest, WindowsOfBytesHaveNoMoreTapsThanAGrid) {
  Problem problem;
  problem.window().kernel_h = problem.window().kernel_w = 256;
  problem.input = {1, 1, 256, 256};
  problem.output = {1, 16};
  problem.inputs_as[0] = {DType::kUint8, 1.0f, 0};
  problem.epilogue.requantise = problem.inputs_as[0];
  int rows = 0;
  for (const Kernel& kernel : backend_->kernels()) {
    const KernelKey& key = kernel.key;
    if (key.op != Op::kConv || key.input != Storage{Layout::kRows, DType::kUint8}) continue;
    EXPECT_FALSE(kernel.accepts(AsRowSolves(kernel, problem))) << kernel.name;
    ++rows;
  }
  EXPECT_GT(rows, 0);
}

// Each is off by less than a unit in its last place, tails and subnormal numbers included.
TEST_F(CudaEdgesTest, GeluOfEveryHalfIsItsNeighbourAtWorst) {
  std::vector<uint16_t> halves;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7C00) != 0x7C00) halves.push_back(static_cast<uint16_t>(bits));
  }
  Problem problem;
  problem.SetOp(Op::kFunction);
  problem.function() = {FunctionKind::kGelu, 0, 0};
  problem.input = problem.output = {static_cast<int64_t>(halves.size()), 1};
  int rows = 0;
  for (const Kernel& kernel : backend_->kernels()) {
    const Problem solved = AsRowSolves(kernel, problem);
    const bool half = kernel.key.op == Op::kFunction && kernel.key.input.dtype == DType::kFloat16;
    if (!half || !kernel.accepts(solved)) continue;
    ASSERT_EQ(LayoutElements(solved.input, solved.from.layout), static_cast<int64_t>(halves.size())) << kernel.name;
    const std::vector<uint16_t> results = Run(kernel, solved, nullptr, halves);
    for (size_t i = 0; i < halves.size(); ++i) {
      const double x = FloatOfHalf(halves[i]), exact = x / 2 * std::erfc(-x / std::sqrt(2.0));
      const double unit = std::ldexp(1.0, std::max(std::ilogb(exact == 0 ? 0x1p-14 : exact), -14) - 10);
      ASSERT_LT(std::abs(FloatOfHalf(results[i]) - exact), unit) << kernel.name << " of " << x;
    }
    ++rows;
  }
  EXPECT_GT(rows, 0);
}

// Y = W X in double precision; X and Y are [positions][channels].
std::vector<double> ProductOf(const DenseMatrix& matrix, const std::vector<float>& x, int64_t positions) {
  std::vector<double> y(positions * matrix.rows);
  for (int64_t i = 0; i < positions * matrix.rows; ++i) {
    const float* const row = matrix.values.data() + i % matrix.rows * matrix.cols;
    const float* const column = x.data() + i / matrix.rows * matrix.cols;
    for (int64_t k = 0; k < matrix.cols; ++k) y[i] += static_cast<double>(row[k]) * column[k];
  }
  return y;
}

// [positions][channels] as a row with this layout has them, or back.
std::vector<float> Turned(const std::vector<float>& from, int64_t positions, Layout layout, bool back) {
  if (layout != Layout::kRows) return from;
  const auto channels = static_cast<int64_t>(from.size()) / positions;
  std::vector<float> to(from.size());
  for (int64_t i = 0; i < channels * positions; ++i) {
    const int64_t other = i % positions * channels + i / positions;
    back ? to[other] = from[i] : to[i] = from[other];
  }
  return to;
}

// The largest error of a position over its largest result.
double LargestError(const std::vector<float>& actual, const std::vector<double>& expected, int64_t positions) {
  const size_t channels = expected.size() / positions;
  double error = 0;
  for (size_t first = 0; first < expected.size(); first += channels) {
    double most = 0, largest = 0;
    for (size_t i = first; i < first + channels; ++i) {
      if (!std::isfinite(actual[i])) return std::numeric_limits<double>::infinity();
      most = std::max(most, std::abs(actual[i] - expected[i]));
      largest = std::max(largest, std::abs(expected[i]));
    }
    error = std::max(error, most / largest);
  }
  return error;
}

// Of one product of halves signed numbers are off by 7e-4. Numbers of one sign show what tensor cores cut off, which
// grows with the depth: of rows that share columns from 6.7e-6 at 768 to 2.5e-4 at 32,768, the most that these take.
// Neither a position's scale nor a channel's may reach into another.
TEST_F(CudaEdgesTest, ProductsOfHalvesAreNearlyThoseOfSingles) {
  constexpr int64_t kChannels = 192, kPositions = 64;
  for (const bool has_signs : {true, false}) {
    for (const int64_t depth : {768, 3072, 12'288, 32'768}) {
      std::mt19937 random(5);
      std::uniform_real_distribution<float> value(has_signs ? -1.0f : 0.0f, 1.0f);
      Weight weight = Ones(kChannels, depth);
      weight.bias.clear();
      DenseMatrix matrix = weight.ToDense();
      for (int64_t i = 0; i < kChannels * depth; ++i) {
        matrix.values[i] = std::ldexp(value(random), static_cast<int>(i / depth % 20));
      }
      weight.matrix = matrix;
      std::vector<float> x(kPositions * depth);
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = std::ldexp(value(random), static_cast<int>(i / static_cast<size_t>(depth)) * 2 - 80);
      }
      Problem problem;
      problem.input = {kPositions, depth};
      problem.output = {kPositions, kChannels};
      const std::vector<double> expected = ProductOf(matrix, x, kPositions);
      const double most = 5e-5 * std::max(1.0, static_cast<double>(depth) / 3072);
      int rows = 0;
      for (const Kernel* kernel : RowsFor(problem)) {
        const Problem solved = AsRowSolves(*kernel, problem);
        const auto packed = *backend_->Prepare(*kernel, weight, solved);
        const std::vector<float> results =
            Run(*kernel, solved, packed.get(), Turned(x, kPositions, solved.from.layout, false));
        const double error = LargestError(Turned(results, kPositions, solved.to.layout, true), expected, kPositions);
        RecordProperty(Concat(kernel->name, has_signs ? "_signed_" : "_positive_", depth), Concat(error));
        const bool splits = kernel->numerics == Numerics::kSplitFactors;
        if (!splits && kernel->numerics != Numerics::kTf32Factors) continue;
        EXPECT_LT(error, splits ? most : 2e-3) << kernel->name << ", depth " << depth;
        rows += splits ? 1 : 0;
      }
      EXPECT_GT(rows, 0) << depth;
    }
  }
}

// A request that sends none gets none back, clamped or not, as on the CPU.
TEST_F(CudaEdgesTest, NanIsNoNumberAfterAClampEither) {
  const Weight conv = Ones(16, 16), depthwise = Ones(16, 1);
  for (const Op op :
       {Op::kConv, Op::kDepthwiseConv, Op::kAdd, Op::kMultiply, Op::kActivation, Op::kFunction, Op::kAveragePool}) {
    for (const FunctionKind function : {FunctionKind::kHardSigmoid, FunctionKind::kGelu, FunctionKind::kSilu}) {
      Problem problem;
      problem.SetOp(op);
      problem.input = problem.output = {16, 16};
      problem.epilogue.low = -1;
      problem.epilogue.high = 6;
      const Function computed{function, 0.5f, 0.5f};
      if (op == Op::kFunction) problem.function() = computed;
      if (op == Op::kConv) problem.epilogue.function = computed;
      for (const Kernel* kernel : RowsFor(problem)) {
        const auto result = Run(*kernel, problem, op == Op::kConv ? conv : depthwise, kNan);
        EXPECT_TRUE(std::ranges::all_of(result, [](float value) { return std::isnan(value); }))
            << kernel->name << " makes " << result[0] << " of NaN";
      }
    }
  }
}

}  // namespace
}  // namespace swizzle
