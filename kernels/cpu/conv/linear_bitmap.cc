#include "kernels/cpu/conv/linear_bitmap.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "hwy/base.h"
#include "kernels/base/integers.h"
#include "kernels/cpu/conv/linear_ending.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/format/bitmap.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kTileRows = BitmapMatrix::kTileRows, kTileCols = BitmapMatrix::kTileCols;
constexpr int64_t kMostAtOnce = 8;  // requests
constexpr int64_t kLanes = 16;
static_assert(kTileRows == 2 * kLanes);

// The tiles of a row of tiles.
struct Strip {
  const uint32_t* tile_cols;
  const uint32_t* bits;  // kTileCols words a tile
  const float* values;   // kLanes more may be read than there are
  int64_t tiles;
  int64_t cols;  // of the matrix
};

}  // namespace
}  // namespace swizzle::cpu

HWY_PUSH_ATTRIBUTES("avx,avx2,fma,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl")
namespace swizzle::cpu::avx512 {
namespace {

// sums[request][row of the tile] of kBatch requests, whose inputs are `stride` apart.
template <int kBatch>
void MultiplyStrip(const Strip& strip, const float* x, int64_t stride, float* sums) {
  __m512 low[kBatch], high[kBatch];
  for (int i = 0; i < kBatch; ++i) low[i] = high[i] = _mm512_setzero_ps();
  const float* values = strip.values;
  const uint32_t* bits = strip.bits;
  for (int64_t tile = 0; tile < strip.tiles; ++tile, bits += kTileCols) {
    const int64_t first = strip.tile_cols[tile] * kTileCols;
    const int64_t cols = first + kTileCols <= strip.cols ? kTileCols : strip.cols - first;
    const float* const column = x + first;
    for (int64_t col = 0; col < cols; ++col) {
      const uint32_t word = bits[col];
      const auto low_mask = static_cast<__mmask16>(word), high_mask = static_cast<__mmask16>(word >> kLanes);
      const __m512 low_values = _mm512_maskz_expand_ps(low_mask, _mm512_loadu_ps(values));
      const __m512 high_values =
          _mm512_maskz_expand_ps(high_mask, _mm512_loadu_ps(values + _mm_popcnt_u32(word & 0xFFFF)));
      values += _mm_popcnt_u32(word);
#pragma GCC unroll 8
      for (int i = 0; i < kBatch; ++i) {
        const __m512 input = _mm512_set1_ps(column[i * stride + col]);
        low[i] = _mm512_fmadd_ps(low_values, input, low[i]);
        high[i] = _mm512_fmadd_ps(high_values, input, high[i]);
      }
    }
  }
  for (int i = 0; i < kBatch; ++i) {
    _mm512_storeu_ps(sums + i * kTileRows, low[i]);
    _mm512_storeu_ps(sums + i * kTileRows + kLanes, high[i]);
  }
}

}  // namespace
}  // namespace swizzle::cpu::avx512
HWY_POP_ATTRIBUTES

namespace swizzle::cpu {
namespace {

using StripFunction = void (*)(const Strip&, const float*, int64_t, float*);
constexpr auto kMultiplyStrip = []<size_t... kBatch>(std::index_sequence<kBatch...>) {
  return std::array<StripFunction, sizeof...(kBatch)>{avx512::MultiplyStrip<static_cast<int>(kBatch) + 1>...};
}
(std::make_index_sequence<kMostAtOnce>());

// A bitmap with the places that it implies. Immutable.
class BitmapWeight final : public PackedWeight {
 public:
  BitmapWeight(BitmapMatrix matrix, std::vector<float> bias) : matrix_(std::move(matrix)), bias_(std::move(bias)) {
    bias_.resize(matrix_.rows);
    matrix_.values.resize(matrix_.values.size() + kLanes);
    first_tile_.reserve(matrix_.row_tiles() + 1);
    int64_t row_tile = 0;
    matrix_.ForEachWord([&](int64_t of_row, int64_t col, uint32_t, int64_t value) {
      if (col % kTileCols != 0) return;
      for (; row_tile <= of_row; ++row_tile) Begin(value);
      tile_cols_.push_back(static_cast<uint32_t>(col / kTileCols));
    });
    for (; row_tile <= matrix_.row_tiles(); ++row_tile) Begin(std::ssize(matrix_.values) - kLanes);
  }

  size_t bytes() const override {
    return (matrix_.values.size() + bias_.size()) * sizeof(float) +
           (matrix_.bits.size() + tile_cols_.size()) * sizeof(uint32_t) +
           (first_tile_.size() + first_value_.size()) * sizeof(int64_t);
  }
  int64_t rows() const { return matrix_.rows; }
  int64_t cols() const { return matrix_.cols; }
  const float* bias() const { return bias_.data(); }
  Strip OfRows(int64_t row_tile) const {
    const int64_t tile = first_tile_[row_tile];
    return {tile_cols_.data() + tile, matrix_.bits.data() + tile * kTileCols,
            matrix_.values.data() + first_value_[row_tile], first_tile_[row_tile + 1] - tile, matrix_.cols};
  }

 private:
  void Begin(int64_t value) {
    first_tile_.push_back(std::ssize(tile_cols_));
    first_value_.push_back(value);
  }

  BitmapMatrix matrix_;  // with kLanes values more
  std::vector<float> bias_;
  std::vector<uint32_t> tile_cols_;                // of each tile that holds anything
  std::vector<int64_t> first_tile_, first_value_;  // of each row of tiles, and the end
};

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearBitmap(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto matrix, weight.matrix.In<BitmapMatrix>());
  return std::make_unique<BitmapWeight>(*matrix, weight.bias);
}

void RunLinearBitmap(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const BitmapWeight&>(*args.weight);
  const Problem& problem = *args.problem;
  const int64_t batch = problem.input.batch, rows = weight.rows();
  const float *const input = args.Input<float>(0), *const residuals = args.Residual<float>();
  float* const output = args.Output<float>();
  const auto run = [&](int64_t, int64_t begin, int64_t end) {
    float sums[kMostAtOnce * kTileRows];
    for (int64_t row = begin; row < end; row += kTileRows) {
      const Strip strip = weight.OfRows(row / kTileRows);
      const int64_t count = std::min(kTileRows, end - row);
      for (int64_t first = 0; first < batch; first += kMostAtOnce) {
        const int64_t requests = std::min(kMostAtOnce, batch - first);
        kMultiplyStrip[requests - 1](strip, input + first * weight.cols(), weight.cols(), sums);
        for (int64_t i = 0; i < requests; ++i) {
          std::copy_n(sums + i * kTileRows, count, output + (first + i) * rows + row);
        }
      }
    }
    for (int64_t i = 0; i < batch; ++i) {
      const float* const residual = residuals == nullptr ? nullptr : residuals + i * rows;
      FinishFeatures(problem.epilogue, weight.bias(), residual, begin, end, output + i * rows);
    }
  };
  CpuStream::From(stream).ParallelRanges(rows, run, kTileRows);
}

}  // namespace swizzle::cpu
