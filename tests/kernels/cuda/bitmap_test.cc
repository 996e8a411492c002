// Products that are sparse on both sides against sums in double precision: every tile, depths that meet often, seldom
// and never, edges, what they write for the next product, and convolutions whose X is unfolded by bitmaps.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/base/integers.h"
#include "kernels/base/layout.h"
#include "kernels/cuda/conv/bitmap/bitmap_planes.h"
#include "kernels/cuda/conv/bitmap/bitmap_product.h"

namespace swizzle::cuda {
namespace {

constexpr DType kF16 = DType::kFloat16, kBf16 = DType::kBFloat16;

uint16_t BitsOf(float value, DType dtype) { return dtype == kF16 ? HalfOfFloat(value) : Bfloat16OfFloat(value); }
float FloatOf(uint16_t bits, DType dtype) { return dtype == kF16 ? FloatOfHalf(bits) : FloatOfBfloat16(bits); }

// Whole numbers of small magnitude, which both types hold.
std::vector<float> Draw(int64_t count, double density, std::mt19937& random) {
  std::bernoulli_distribution is_kept(density);
  std::vector<float> values(count);
  for (float& value : values) {
    if (is_kept(random)) value = static_cast<float>(1 + random() % 4) * (random() % 2 == 0 ? 1.0f : -1.0f);
  }
  return values;
}

template <typename T>
DeviceArray<T> Upload(const std::vector<T>& values) {
  return *DeviceArray<T>::Upload(values);
}

template <typename T>
std::vector<T> Download(const T* from, size_t count) {
  std::vector<T> values(count);
  EXPECT_EQ(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
  return values;
}

// [rows][stride] of 16-bit elements in kRows; what lies past `columns` is not to be read as numbers.
std::vector<uint16_t> InRows(const std::vector<float>& values, int64_t rows, int64_t columns, DType dtype) {
  const int64_t stride = RowStride(columns);
  std::vector<uint16_t> bits(rows * stride, uint16_t{0x7FFF});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      bits[row * stride + column] = BitsOf(values[row * columns + column], dtype);
    }
  }
  return bits;
}

// An operand of X as the matrix it stands for, [depth][strips * 32].
std::vector<float> Decode(const BitmapView& view, size_t value_count, DType dtype) {
  const size_t words = static_cast<size_t>(view.depth) * view.strips;
  const auto word = Download(view.words, words);
  const auto alive = Download(view.alive, words / 32);
  const auto values = Download(view.values, value_count);
  std::vector<float> matrix(words * kStripLanes);
  for (int64_t strip = 0; strip < view.strips; ++strip) {
    for (int64_t k = 0; k < view.depth; ++k) {
      const BitmapWord w = word[strip * view.depth + k];
      EXPECT_EQ(alive[(strip * view.depth + k) / 32] >> k % 32 & 1, w.bits != 0 ? 1u : 0u);
      size_t at = w.first;
      for (uint32_t bits = w.bits; bits != 0; bits &= bits - 1) {
        matrix[(k * view.strips + strip) * kStripLanes + std::countr_zero(bits)] = FloatOf(values[at++], dtype);
      }
    }
  }
  return matrix;
}

struct Case {
  int64_t m, k, n;
  double w_density, x_density;
};

class BitmapProductTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "there is no GPU";
  }
};

void ExpectSums(const Case& c, DType dtype, BitmapTile tile, bool sparse_x) {
  SCOPED_TRACE(Concat(c.m, "x", c.k, "x", c.n, " of ", c.w_density, " and ", c.x_density, ", ", DTypeName(dtype),
                      tile == BitmapTile::k64 ? ", tiles of 64" : ", of 128", sparse_x ? ", sparse X" : ", dense X"));
  std::mt19937 random(7);
  const std::vector<float> w = Draw(c.m * c.k, c.w_density, random), x = Draw(c.k * c.n, c.x_density, random);
  const std::vector<float> bias = Draw(c.m, 1, random), residual = Draw(c.m * c.n, 1, random);
  const int64_t stride = RowStride(c.n);
  const auto weight = *BitmapStrips::Make(BitmapMatrix::FromDense({c.m, c.k, w}), bias, dtype);
  const auto x_rows = Upload(InRows(x, c.k, c.n, dtype)), residual_rows = Upload(InRows(residual, c.m, c.n, dtype));
  auto y_rows = Upload(std::vector<uint16_t>(c.m * stride, uint16_t{0x7FFF}));
  auto encoded_x = *BitmapActivations::Make(c.k, CeilDiv(c.n, int64_t{kStripLanes}));
  auto encoded_y = *BitmapActivations::Make(c.m, CeilDiv(c.n, int64_t{kStripLanes}));
  QueueEncode(x_rows.data(), c.k, c.n, stride, *encoded_x, nullptr);
  const BitmapView sparse = encoded_x->view();
  BitmapProduct product = {.weight = weight.get(),
                           .dtype = dtype,
                           .sparse = sparse_x ? &sparse : nullptr,
                           .x = x_rows.data(),
                           .residual = residual_rows.data(),
                           .y = y_rows.data(),
                           .encoded = encoded_y.get(),
                           .stride = stride,
                           .columns = c.n,
                           .epilogue = {.low = 0}};
  QueueBitmapProduct(product, tile, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
  const auto y = Download<uint16_t>(y_rows.data(), y_rows.size());
  std::vector<float> expected(c.m * c.n);
  for (int64_t row = 0; row < c.m; ++row) {
    for (int64_t column = 0; column < c.n; ++column) {
      double sum = bias[row] + residual[row * c.n + column];
      for (int64_t k = 0; k < c.k; ++k) sum += double{w[row * c.k + k]} * x[k * c.n + column];
      expected[row * c.n + column] = FloatOf(BitsOf(std::max(static_cast<float>(sum), 0.0f), dtype), dtype);
      ASSERT_EQ(FloatOf(y[row * stride + column], dtype), expected[row * c.n + column]) << row << ", " << column;
    }
  }
  const BitmapView view = encoded_y->view();
  const auto decoded = Decode(view, static_cast<size_t>(view.depth) * view.strips * kStripLanes, dtype);
  for (int64_t row = 0; row < view.depth; ++row) {
    for (int64_t column = 0; column < view.strips * kStripLanes; ++column) {
      const bool inside = row < c.m && column < c.n;
      ASSERT_EQ(decoded[row * view.strips * kStripLanes + column], inside ? expected[row * c.n + column] : 0.0f)
          << row << ", " << column << " of what the next product reads";
    }
  }
}

TEST_F(BitmapProductTest, EqualsSums) {
  constexpr Case kCases[] = {
      {64, 64, 64, .3, .3},       {1, 1, 1, 1, 1},           {33, 70, 45, .5, .1},        {130, 300, 140, .1, .1},
      {128, 4096, 128, .01, .01}, {70, 8200, 100, .01, .02}, {200, 512, 300, .002, .002}, {64, 96, 32, 0, .5},
      {96, 64, 64, .5, 0},        {64, 128, 96, 1, 1}};
  for (const Case& c : kCases) {
    for (const BitmapTile tile : {BitmapTile::k64, BitmapTile::k128}) {
      for (const bool sparse_x : {true, false}) {
        ASSERT_NO_FATAL_FAILURE(ExpectSums(c, kF16, tile, sparse_x));
      }
    }
  }
  ASSERT_NO_FATAL_FAILURE(ExpectSums(kCases[3], kBf16, BitmapTile::k64, true));
  ASSERT_NO_FATAL_FAILURE(ExpectSums(kCases[3], kBf16, BitmapTile::k128, true));
}

TEST_F(BitmapProductTest, EncodesWhatIsThere) {
  std::mt19937 random(3);
  constexpr int64_t kRows = 75, kColumns = 147, kStride = RowStride(kColumns);
  std::vector<float> x = Draw(kRows * kColumns, .4, random);
  x[5] = -0.0f;
  const auto rows = Upload(InRows(x, kRows, kColumns, kF16));
  auto encoded = *BitmapActivations::Make(kRows, CeilDiv(kColumns, int64_t{kStripLanes}));
  QueueEncode(rows.data(), kRows, kColumns, kStride, *encoded, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const BitmapView view = encoded->view();
  const auto decoded = Decode(view, static_cast<size_t>(view.depth) * view.strips * kStripLanes, kF16);
  for (int64_t row = 0; row < view.depth; ++row) {
    for (int64_t column = 0; column < view.strips * kStripLanes; ++column) {
      const bool inside = row < kRows && column < kColumns;
      ASSERT_EQ(decoded[row * view.strips * kStripLanes + column], inside ? x[row * kColumns + column] : 0.0f);
    }
  }
}

struct Planes {
  int64_t channels, images, height, width, filters;
  Window window;
};

float InputAt(const std::vector<float>& input, const Planes& p, int64_t channel, int64_t image, int64_t y, int64_t x) {
  if (y < 0 || y >= p.height || x < 0 || x >= p.width) return 0;
  return input[((channel * p.images + image) * p.height + y) * p.width + x];
}

// A convolution of 3x3 that reads what `before` makes.
Problem NextProblem(const Problem& before, int stride) {
  Problem problem = before;
  problem.input = problem.output = before.output;
  problem.output.height = (before.output.height - 1) / stride + 1;
  problem.output.width = (before.output.width - 1) / stride + 1;
  problem.attributes = Window{.kernel_h = 3,
                              .kernel_w = 3,
                              .stride_h = stride,
                              .stride_w = stride,
                              .pad_top = 1,
                              .pad_left = 1,
                              .pad_bottom = 1,
                              .pad_right = 1};
  return problem;
}

// The product, clamped at 0, leaves as what the next convolution reads and as nothing else: as `y` would be encoded.
void ExpectPlanes(BitmapProduct product, BitmapTile tile, const Problem& next, const std::vector<uint16_t>& y) {
  const auto planes = *BitmapPlanes::Make(next);
  const PlanesTarget target = planes->target();
  product.y = nullptr;
  product.planes = target;
  product.epilogue.low = 0;
  const int64_t lines = next.input.channels * target.rows_of_channel * target.phases;
  const auto words = static_cast<size_t>(lines * target.row_words);
  ASSERT_EQ(cudaMemset(target.bits, 0x5A, words * sizeof(uint32_t)), cudaSuccess);
  QueueBitmapProduct(product, tile, nullptr);
  const auto bits = Download<uint32_t>(target.bits, words);
  const auto values = Download<uint16_t>(target.values, words * kStripLanes);
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t phase = line % target.phases, row = line / target.phases % target.rows_of_channel;
    const int64_t channel = line / target.phases / target.rows_of_channel;
    size_t at = line * target.row_words * kStripLanes;
    for (int64_t i = 0; i < target.row_words * kStripLanes; ++i) {
      const int64_t x = phase + i * target.phases;
      const uint16_t element = x < target.width ? y[channel * product.stride + row * target.width + x] : 0;
      const bool holds = FloatOf(element, kF16) > 0;
      ASSERT_EQ(bits[line * target.row_words + i / 32] >> i % 32 & 1, holds ? 1u : 0u) << line << ", " << x;
      if (!holds) continue;
      ASSERT_EQ(values[at++], element) << line << ", " << x;
    }
  }
}

void RunConvolution(const Planes& p, double density) {
  const Window& window = p.window;
  SCOPED_TRACE(Concat(p.channels, "x", p.height, "x", p.width, ", stride ", window.stride_w, ", zeros ", 1 - density));
  const int64_t out_h =
      (p.height + window.pad_top + window.pad_bottom - window.dilation_h * (window.kernel_h - 1) - 1) /
          window.stride_h +
      1;
  const int64_t out_w =
      (p.width + window.pad_left + window.pad_right - window.dilation_w * (window.kernel_w - 1) - 1) / window.stride_w +
      1;
  std::mt19937 random(5);
  const int64_t positions = p.images * p.height * p.width, outputs = p.images * out_h * out_w;
  const int64_t cols = p.channels * window.taps();
  const std::vector<float> input = Draw(p.channels * positions, density, random);
  const std::vector<float> w = Draw(p.filters * cols, .3, random);
  Problem problem;
  problem.op = Op::kConv;
  problem.input = {.batch = p.images, .channels = p.channels, .height = p.height, .width = p.width};
  problem.output = {.batch = p.images, .channels = p.filters, .height = out_h, .width = out_w};
  problem.attributes = window;
  const auto weight = *BitmapStrips::Make(BitmapMatrix::FromDense({p.filters, cols, w}), {}, kF16);
  const auto planes = *BitmapPlanes::Make(problem);
  const auto rows = Upload(InRows(input, p.channels, positions, kF16));
  const int64_t stride = RowStride(outputs);
  auto y_rows = Upload(std::vector<uint16_t>(p.filters * stride, uint16_t{0x7FFF}));
  planes->QueueEncode(rows.data(), nullptr);
  planes->QueueUnfold(nullptr);
  const BitmapView columns = planes->columns();
  for (const BitmapTile tile : {BitmapTile::k64, BitmapTile::k128}) {
    const BitmapProduct product = {.weight = weight.get(),
                                   .dtype = kF16,
                                   .sparse = &columns,
                                   .x = nullptr,
                                   .residual = nullptr,
                                   .y = y_rows.data(),
                                   .stride = stride,
                                   .columns = outputs};
    QueueBitmapProduct(product, tile, nullptr);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
    const auto y = Download<uint16_t>(y_rows.data(), y_rows.size());
    for (const int stride_of_next : {1, 2}) {
      if (LeavesAsPlanes(out_w, tile)) ExpectPlanes(product, tile, NextProblem(problem, stride_of_next), y);
    }
    for (int64_t filter = 0; filter < p.filters; ++filter) {
      for (int64_t at = 0; at < outputs; ++at) {
        const int64_t image = at / (out_h * out_w), oy = at / out_w % out_h, ox = at % out_w;
        double sum = 0;
        for (int64_t k = 0; k < cols; ++k) {
          const int64_t tap = k % window.taps(), i = tap / window.kernel_w, j = tap % window.kernel_w;
          sum += double{w[filter * cols + k]} * InputAt(input, p, k / window.taps(), image,
                                                        oy * window.stride_h - window.pad_top + i * window.dilation_h,
                                                        ox * window.stride_w - window.pad_left + j * window.dilation_w);
        }
        ASSERT_EQ(FloatOf(y[filter * stride + at], kF16), static_cast<float>(sum)) << filter << ", " << at;
      }
    }
  }
}

TEST_F(BitmapProductTest, ConvolutionsByBitmaps) {
  const Window same = {.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  Window halved = same, wide = same, far = same, shorter = same;
  halved.stride_h = halved.stride_w = 2;
  wide.kernel_w = 5, wide.pad_left = wide.pad_right = 2;
  far.dilation_h = far.dilation_w = 2, far.pad_top = far.pad_bottom = far.pad_left = far.pad_right = 2;
  shorter.stride_h = shorter.stride_w = 3, shorter.pad_left = 0;
  for (const double density : {1.0, .25}) {
    ASSERT_NO_FATAL_FAILURE(RunConvolution({8, 1, 12, 56, 40, same}, density));
    ASSERT_NO_FATAL_FAILURE(RunConvolution({5, 2, 7, 33, 20, halved}, density));
    ASSERT_NO_FATAL_FAILURE(RunConvolution({3, 2, 9, 70, 33, wide}, density));
    ASSERT_NO_FATAL_FAILURE(RunConvolution({4, 1, 9, 64, 16, far}, density));
    ASSERT_NO_FATAL_FAILURE(RunConvolution({4, 3, 7, 7, 16, shorter}, density));
  }
}

}  // namespace
}  // namespace swizzle::cuda
