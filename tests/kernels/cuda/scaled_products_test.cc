// Products of weights whose rows share columns, scaled and added to what is there: Y = alpha * W X + beta * Y + bias,
// as libraries' sparse products have it; plans ask for 1 and 1 alone. Whole numbers and powers of two, so that FP16
// holds every result. Skipped where there is no GPU of sm_90.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/base/layout.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"

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

// Vectors of so many rows, in a fifth of the columns.
DenseMatrix DrawVectors(int64_t rows, int64_t cols, int64_t vector_rows, std::mt19937& random) {
  DenseMatrix matrix{rows, cols, std::vector<float>(rows * cols)};
  std::vector<char> kept(cols);
  for (int64_t i = 0; i < rows * cols; ++i) {
    if (i % (vector_rows * cols) < cols) kept[i % cols] = random() % 5 == 0;
    if (kept[i % cols] != 0) matrix.values[i] = random() % 2 == 0 ? 1.0f : -1.0f;
  }
  return matrix;
}

struct Drawn {
  Drawn(DenseMatrix matrix, int64_t n, std::mt19937& random)
      : columns(n), stride(RowStride(n)), weight(std::move(matrix)), bias(weight.rows) {
    for (float& value : bias) value = static_cast<float>(random() % 5) - 2;
    x.resize(weight.cols * stride), y.resize(weight.rows * stride);
    for (uint16_t& value : x) value = HalfOfFloat(static_cast<float>(random() % 5) - 2);
    for (uint16_t& value : y) value = HalfOfFloat(static_cast<float>(random() % 9) - 4);
  }
  float Expected(int64_t row, int64_t column, float alpha, float beta) const {
    float sum = 0;
    for (int64_t k = 0; k < weight.cols; ++k) {
      const float value = weight.values[row * weight.cols + k];
      if (value != 0) sum += value * FloatOfHalf(x[k * stride + column]);
    }
    return alpha * sum + beta * FloatOfHalf(y[row * stride + column]) + bias[row];
  }

  int64_t columns, stride;
  DenseMatrix weight;
  std::vector<float> bias;
  std::vector<uint16_t> x, y;
};

// Every `step`-th column is looked at.
void ExpectScaled(const Drawn& drawn, float alpha, float beta, void (*queue)(const GroupOperands&),
                  int64_t vector_rows = RowGroups::kRows, int64_t step = 1) {
  const auto matrix = ShflBwMatrix::FromDense(drawn.weight, vector_rows, RowsInOrder(drawn.weight.rows));
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
  for (int64_t row = 0; row < drawn.weight.rows; ++row) {
    for (int64_t column = row % step; column < drawn.columns; column += step) {
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
template <int kWidth>
void QueuePairTiles(const GroupOperands& operands) {
  QueuePairs<kWidth>(operands, Multiprocessors(), nullptr);
}
void QueueFew(const GroupOperands& operands) { QueueFewColumns(operands, Multiprocessors(), nullptr); }

bool HasHopper() {
  int count = 0, major = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) {
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  }
  return major == kHopper;
}

// A CTA has several tiles, of every width, in rings that hold a tile and that do not.
TEST(ScaledProductsTest, PairsOfManyTiles) {
  if (!HasHopper()) GTEST_SKIP() << "no GPU of sm_90";
  std::mt19937 random(5);
  for (const auto& [cols, vector_rows] : {std::pair<int64_t, int64_t>{300, 128}, {300, 256}, {1500, 128}}) {
    const Drawn drawn(DrawVectors(1024, cols, vector_rows, random), 9000, random);
    for (const float beta : {0.0f, 1.0f}) {
      SCOPED_TRACE(Concat(cols, " columns, vectors of ", vector_rows, ", beta ", beta));
      ExpectScaled(drawn, 1, beta, QueuePairTiles<64>, vector_rows, 61);
      ExpectScaled(drawn, 1, beta, QueuePairTiles<128>, vector_rows, 61);
      ExpectScaled(drawn, 1, beta, QueuePairTiles<192>, vector_rows, 61);
      ExpectScaled(drawn, 1, beta, QueuePairTiles<256>, vector_rows, 61);
    }
  }
}

// Tiles of 16 and of 32 rows, of few columns and many, with steps enough for blocks of 16 warps.
TEST(ScaledProductsTest, FewColumnsOfDeepWeights) {
  if (!HasHopper()) GTEST_SKIP() << "no GPU of sm_90";
  constexpr int kFewRowsFor = 10'000;  // multiprocessors
  std::mt19937 random(11);
  for (const int64_t columns : {7, 16, 24, 40, 100}) {
    const Drawn drawn(DrawVectors(192, 5000, 64, random), columns, random);
    for (const float beta : {0.0f, 1.0f}) {
      SCOPED_TRACE(Concat(columns, " columns, beta ", beta));
      ExpectScaled(drawn, 1, beta, [](const GroupOperands& operands) { QueueFewColumns(operands, 1, nullptr); });
      ExpectScaled(drawn, 1, beta,
                   [](const GroupOperands& operands) { QueueFewColumns(operands, kFewRowsFor, nullptr); });
    }
  }
}

TEST(ScaledProductsTest, AlphaAndBeta) {
  if (!HasHopper()) GTEST_SKIP() << "no GPU of sm_90";
  constexpr struct { float alpha, beta; } kScales[] = {{1, 1}, {0.5f, 2}, {-2, 0}, {0, 0.5f}, {2, -1}};
  for (const int64_t columns : {40, 272}) {
    std::mt19937 random(3);
    const Drawn drawn(DrawMixedBlocks(200, 330, random), columns, random);
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
