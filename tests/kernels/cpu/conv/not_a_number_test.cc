// NaN in an input of a convolution, linear or depthwise layer reaches what is computed of it, and nothing else, as in
// ONNX Runtime; with the exceptions that server/SERVING.md names.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <span>

#include "kernels/backend/select.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/format/csr.h"
#include "kernels/reference/layout.h"
#include "tests/kernels/test_memory.h"

namespace swizzle::cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kChannel = 5, kRow = 2, kColumn = 3;  // of the input that is NaN

Problem SmallProblem(Op op, int size, int stride, const Epilogue& epilogue) {
  Problem problem;
  problem.SetOp(op);
  const int pad = size / 2;
  const int64_t extent = (6 + 2 * pad - size) / stride + 1;
  problem.input = {1, 20, 6, 6};
  problem.output = {1, op == Op::kDepthwiseConv ? 20 : 24, extent, extent};
  problem.window() = {size, size, stride, stride, pad, pad, pad, pad, 1, 1, false};
  problem.epilogue = epilogue;
  return problem;
}

// A third is zeros; in four rows together, if in_vectors.
DenseMatrix Drawn(const Problem& problem, bool in_vectors) {
  const int64_t taps = problem.window().taps();
  DenseMatrix matrix{problem.output.channels, problem.op == Op::kConv ? problem.input.channels * taps : taps, {}};
  std::mt19937 random(7);
  for (int64_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    const int64_t above = i / matrix.cols % 4 * matrix.cols;
    const bool zero = in_vectors && above != 0 ? matrix.values[i - above] == 0 : random() % 3 == 0;
    matrix.values.push_back(zero && problem.op == Op::kConv ? 0.0f : 0.25f + static_cast<float>(random() % 64) / 64);
  }
  return matrix;
}

// What the NaN does to an output.
enum class Reads { kNothing, kZero, kWeight };

Reads ReadsOf(const Problem& problem, const DenseMatrix& weight, int64_t channel, int64_t y, int64_t x) {
  const Window& window = problem.window();
  const int64_t i = kRow - (y * window.stride_h - window.pad_top),
                j = kColumn - (x * window.stride_w - window.pad_left);
  if (i < 0 || i >= window.kernel_h || j < 0 || j >= window.kernel_w) return Reads::kNothing;
  const int64_t tap = i * window.kernel_w + j;
  if (problem.op == Op::kDepthwiseConv) return channel == kChannel ? Reads::kWeight : Reads::kNothing;
  return weight.values[channel * weight.cols + kChannel * window.taps() + tap] == 0 ? Reads::kZero : Reads::kWeight;
}

class NotANumberTest : public ::testing::Test {
 protected:
  TestMemory LaidOut(const Extent& extent, Storage storage, bool has_nan) {
    std::vector<float> elements(extent.positions() * extent.channels, 0.5f);
    if (has_nan) elements[(kChannel * extent.height + kRow) * extent.width + kColumn] = kNan;
    std::vector<float> values(LayoutElements(extent, storage.layout));
    reference::ToLayout(elements, extent, storage.layout, 0, values);
    TestMemory memory(*backend_, StorageBytes(extent, storage));
    memory.Fill(values, storage.dtype);
    return memory;
  }

  // The NaN is in the residual if there is one.
  std::vector<float> Run(const Kernel& kernel, const Problem& solved, const Weight& weight) {
    const Problem problem = AsRowSolves(kernel, solved);
    const bool adds = problem.epilogue.residual;
    TestMemory input = LaidOut(problem.input, problem.from, !adds);
    TestMemory residual = LaidOut(problem.output, problem.to, true);
    TestMemory output(*backend_, StorageBytes(problem.output, problem.to));
    TestMemory workspace(*backend_, kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(problem));
    std::unique_ptr<PackedWeight> packed;
    if (kernel.prepare != nullptr) packed = *kernel.prepare(weight, problem);
    const Operand operands[] = {{input.data(), problem.from.dtype}, {residual.data(), problem.to.dtype}};
    KernelArgs args;
    args.problem = &problem;
    args.weight = packed.get();
    args.inputs = std::span(operands).first(adds ? 2 : 1);
    args.output = {output.data(), problem.to.dtype};
    args.workspace = {workspace.data(), workspace.bytes()};
    kernel.run(args, *stream_);
    return reference::FromLayout(output.Values(problem.to.dtype), problem.output, problem.to.layout);
  }

  // By every row that takes the weight.
  void ExpectKept(const Problem& problem, const DenseMatrix& matrix, const Weight& weight, Precision precision) {
    for (const Kernel* kernel : Candidates(*backend_, problem, &weight, precision)) {
      const std::string_view name = kernel->name;
      if (name.ends_with("_onednn")) continue;  // clamps in passing
      const std::vector<float> result = Run(*kernel, problem, weight);
      const Extent& out = problem.output;
      bool right = true;
      for (size_t i = 0; i < result.size(); ++i) {
        const int64_t channel = static_cast<int64_t>(i) / out.plane(), at = static_cast<int64_t>(i) % out.plane();
        const Reads reads = ReadsOf(problem, matrix, channel, at / out.width, at % out.width);
        if (reads == Reads::kWeight) right = right && std::isnan(result[i]);
        if (reads == Reads::kNothing && !name.starts_with("conv_winograd")) right = right && !std::isnan(result[i]);
      }
      EXPECT_TRUE(right) << name << ", window of " << problem.window().kernel_h << ", to " << problem.epilogue.high;
      ++(problem.op == Op::kDepthwiseConv ? depthwise_rows_
         : IsSparse(kernel->key.weights)  ? sparse_rows_
                                          : dense_rows_);
    }
  }

  std::unique_ptr<Backend> backend_ = NewCpuBackend();
  std::unique_ptr<Stream> stream_ = *backend_->NewStream(1);
  int sparse_rows_ = 0, dense_rows_ = 0, depthwise_rows_ = 0;  // that were looked at
};

std::vector<Epilogue> Epilogues() {
  Epilogue clamps, computes;
  clamps.low = -1;
  clamps.high = 6;
  computes.function = Function{FunctionKind::kSilu, 0, 0};
  return {Epilogue(), clamps, computes};
}

TEST_F(NotANumberTest, ReachesWhatIsComputedOfIt) {
  for (const Epilogue& epilogue : Epilogues()) {
    for (const auto& [size, stride] : {std::pair{1, 1}, std::pair{3, 1}, std::pair{3, 2}, std::pair{5, 1}}) {
      const Problem problem = SmallProblem(Op::kConv, size, stride, epilogue);
      for (const bool in_vectors : {false, true}) {
        const DenseMatrix matrix = Drawn(problem, in_vectors);
        const CsrMatrix csr = CsrMatrix::FromDense(matrix);
        for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
          ExpectKept(problem, matrix, Weight{csr, {}}, precision);
        }
        ExpectKept(problem, matrix, Weight{matrix, {}}, Precision::kFloat32);
      }
      if (epilogue.function) continue;
      const Problem depthwise = SmallProblem(Op::kDepthwiseConv, size, stride, epilogue);
      const DenseMatrix matrix = Drawn(depthwise, false);
      ExpectKept(depthwise, matrix, Weight{matrix, {}}, Precision::kFloat32);
    }
  }
  EXPECT_GT(sparse_rows_, 0);
  EXPECT_GT(dense_rows_, 0);
  EXPECT_GT(depthwise_rows_, 0);
}

TEST_F(NotANumberTest, ReachesWhatItIsAddedTo) {
  for (Epilogue epilogue : Epilogues()) {
    epilogue.residual = true;
    const Problem problem = SmallProblem(Op::kConv, 1, 1, epilogue);
    const CsrMatrix csr = CsrMatrix::FromDense(Drawn(problem, false));
    int rows = 0;
    for (const Weight& weight : {Weight{csr, {}}, Weight{csr, {}, Quantisation{DType::kInt8, {1.0f / 64}, {}}}}) {
      for (const Kernel* kernel : Candidates(*backend_, problem, &weight, Precision::kFloat32)) {
        if (kernel->name.ends_with("_onednn")) continue;  // clamps in passing
        const std::vector<float> result = Run(*kernel, problem, weight);
        const int64_t at = (kChannel * problem.output.height + kRow) * problem.output.width + kColumn;
        for (int64_t i = 0; i < std::ssize(result); ++i) {
          ASSERT_EQ(std::isnan(result[i]), i == at) << kernel->name << ", to " << epilogue.high;
        }
        ++rows;
      }
    }
    EXPECT_GT(rows, 0);
  }
}

// As ONNX Runtime makes it.
TEST_F(NotANumberTest, IsTheLeastByte) {
  Problem problem;
  problem.SetOp(Op::kConvertLayout);
  problem.input = problem.output = {1, 20, 6, 6};
  problem.epilogue.requantise = Quantised{DType::kUint8, 0.25f, 7};
  int rows = 0;
  for (const Kernel* kernel : Candidates(*backend_, problem, nullptr, Precision::kFloat32)) {
    if (kernel->key.output.dtype != DType::kUint8 || kernel->key.input.dtype != DType::kFloat32) continue;
    const std::vector<float> result = Run(*kernel, problem, {});
    for (int64_t i = 0; i < std::ssize(result); ++i) {
      const bool is_nan = i == (kChannel * problem.input.height + kRow) * problem.input.width + kColumn;
      ASSERT_EQ(result[i], is_nan ? 0.0f : 9.0f) << kernel->name;
    }
    ++rows;
  }
  EXPECT_GT(rows, 0);
}

// A byte is a number: a token that has a NaN has some result, but no other token is touched.
TEST_F(NotANumberTest, StaysInItsTokenWhereThatBecomesBytes) {
  Problem problem = SmallProblem(Op::kConv, 1, 1, {});
  DenseMatrix matrix = Drawn(problem, false);
  Weight weight{CsrMatrix::FromDense(matrix), {}, Quantisation{DType::kInt8, {1.0f / 64}, {}}};
  int rows = 0;
  for (const Kernel* kernel : Candidates(*backend_, problem, &weight, Precision::kFloat32)) {
    if (kernel->key.weight_dtype != DType::kInt8) continue;
    ++rows;
    const std::vector<float> result = Run(*kernel, problem, weight);
    for (size_t i = 0; i < result.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) % problem.output.plane();
      const bool has_nan = at == kRow * problem.output.width + kColumn;
      ASSERT_TRUE(has_nan || !std::isnan(result[i])) << kernel->name;
    }
  }
  EXPECT_GT(rows, 0);
}

}  // namespace
}  // namespace swizzle::cpu
