// Products of weights whose rows share columns, scaled and added to what is there: Y = alpha * W X + beta * Y + bias,
// as libraries' sparse products have it; plans ask for 1 and 1 alone. Whole numbers and powers of two, so that FP16
// holds every result. Skipped where there is no GPU of sm_90.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/base/layout.h"
#include "kernels/cuda/conv/conv_shfl_bw.h"

namespace swizzle::cuda {
namespace {

constexpr int kHopper = 9;

// Blocks of 16x16 and entries beside them.
DenseMatrix DrawMixedBlocks(int64_t rows, int64_t cols, std::mt19937& random) {
  DenseMatrix matrix{rows, cols, std::vector<float>(rows * cols)};
  std::vector<char> full((rows / 16 + 1) * (cols / 16 + 1));
  for (char& block : full) block = random() % 4 == 0;
  for (int64_t i = 0; i < rows * cols; ++i) {
    const bool in_block = full[i / cols / 16 * (cols / 16 + 1) + i % cols / 16] != 0;
    if (in_block || random() % 50 == 0) matrix.values[i] = random() % 2 == 0 ? 1.0f : -1.0f;
  }
  return matrix;
}

struct Drawn {
  explicit Drawn(int64_t n) : columns(n), stride(RowStride(n)) {
    std::mt19937 random(3);
    weight = DrawMixedBlocks(kRows, kCols, random);
    for (float& value : bias) value = static_cast<float>(random() % 5) - 2;
    x.resize(kCols * stride), y.resize(kRows * stride);
    for (uint16_t& value : x) value = HalfOfFloat(static_cast<float>(random() % 5) - 2);
    for (uint16_t& value : y) value = HalfOfFloat(static_cast<float>(random() % 9) - 4);
  }
  float Expected(int64_t row, int64_t column, float alpha, float beta) const {
    float sum = 0;
    for (int64_t k = 0; k < kCols; ++k) {
      sum += weight.values[row * kCols + k] * FloatOfHalf(x[k * stride + column]);
    }
    return alpha * sum + beta * FloatOfHalf(y[row * stride + column]) + bias[row];
  }

  static constexpr int64_t kRows = 200, kCols = 330;
  int64_t columns, stride;
  DenseMatrix weight;
  std::vector<float> bias = std::vector<float>(kRows);
  std::vector<uint16_t> x, y;
};

void ExpectScaled(const Drawn& drawn, float alpha, float beta, void (*queue)(const GroupOperands&)) {
  std::vector<uint32_t> in_order(Drawn::kRows);
  std::iota(in_order.begin(), in_order.end(), 0u);
  const auto matrix = ShflBwMatrix::FromDense(drawn.weight, RowGroups::kRows, in_order);
  const auto groups = *RowGroups::Make(matrix, drawn.bias, DType::kFloat16);
  const auto x = *DeviceArray<uint16_t>::Upload(drawn.x);
  auto y = *DeviceArray<uint16_t>::Upload(drawn.y);
  queue({.weight = groups.get(),
         .dtype = DType::kFloat16,
         .x = x.data(),
         .residual = beta == 0 ? nullptr : y.data(),
         .y = y.data(),
         .stride = drawn.stride,
         .columns = drawn.columns,
         .alpha = alpha,
         .beta = beta});
  std::vector<uint16_t> actual(drawn.y.size());
  ASSERT_EQ(cudaMemcpy(actual.data(), y.data(), y.bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
  for (int64_t row = 0; row < Drawn::kRows; ++row) {
    for (int64_t column = 0; column < drawn.columns; ++column) {
      ASSERT_EQ(FloatOfHalf(actual[row * drawn.stride + column]), drawn.Expected(row, column, alpha, beta))
          << "(" << row << ", " << column << ")";
    }
  }
}

int Multiprocessors() {
  int multiprocessors = 0;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  return multiprocessors;
}

template <int kWidth>
void QueueTiles(const GroupOperands& operands) {
  QueueGroups<kWidth>(operands, Multiprocessors(), nullptr);
}
void QueueFew(const GroupOperands& operands) { QueueFewColumns(operands, Multiprocessors(), nullptr); }

TEST(ScaledProductsTest, AlphaAndBeta) {
  int count = 0, major = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) {
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  }
  if (major != kHopper) GTEST_SKIP() << "no GPU of sm_90";
  constexpr struct { float alpha, beta; } kScales[] = {{1, 1}, {0.5f, 2}, {-2, 0}, {0, 0.5f}, {2, -1}};
  for (const int64_t columns : {40, 272}) {
    const Drawn drawn(columns);
    for (const auto& [alpha, beta] : kScales) {
      SCOPED_TRACE(Concat(columns, " columns, alpha ", alpha, ", beta ", beta));
      ExpectScaled(drawn, alpha, beta, QueueTiles<64>);
      ExpectScaled(drawn, alpha, beta, QueueTiles<128>);
      ExpectScaled(drawn, alpha, beta, QueueTiles<256>);
      ExpectScaled(drawn, alpha, beta, QueueFew);
    }
  }
}

}  // namespace
}  // namespace swizzle::cuda
