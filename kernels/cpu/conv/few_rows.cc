#include "kernels/cpu/conv/few_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/few_rows.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/simd/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// Element (row, i) of a is at row * step + i * along.
struct Steps {
  explicit Steps(const SgemmOperand& a) : step(a.transposed ? 1 : a.stride), along(a.transposed ? a.stride : 1) {}

  int64_t step, along;
};

// kRows rows by kVectors vectors of columns from `j` on, of which the last has `last` columns.
template <int kRows, int kVectors>
void MultiplyColumns(const FewRowsProduct& p, int64_t j, int64_t last) {
  const FloatTag d;
  const Steps a(p.a);
  FloatVector sums[kRows][kVectors];
  SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
    SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  for (int64_t i = 0; i < p.k; ++i) {
    const float* const from = p.b.data + i * p.b.stride + j;
    SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) {
      const bool whole = v + 1 < kVectors || last == kLanes;
      const FloatVector b =
          whole ? hn::LoadU(d, from + v * kLanes) : LoadFirst(d, from + v * kLanes, last, hn::Zero(d));
      SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
        sums[r][v] = hn::MulAdd(hn::Set(d, p.a.data[r * a.step + i * a.along]), b, sums[r][v]);
      }
    }
  }
  SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
    float* const to = p.c + r * p.c_stride + j;
    SWIZZLE_UNROLL for (int v = 0; v + 1 < kVectors; ++v) hn::StoreU(sums[r][v], d, to + v * kLanes);
    StoreFirst(sums[r][kVectors - 1], d, to + (kVectors - 1) * kLanes, last);
  }
}

template <int kRows>
void MultiplyPlain(const FewRowsProduct& p) {
  constexpr int kVectors = kRows == 1 ? 8 : 4;
  int64_t j = 0;
  for (; j + kVectors * kLanes <= p.n; j += kVectors * kLanes) MultiplyColumns<kRows, kVectors>(p, j, kLanes);
  for (; j < p.n; j += kLanes) MultiplyColumns<kRows, 1>(p, j, std::min<int64_t>(kLanes, p.n - j));
}

// kRows rows by kColumns columns from `j` on, where columns lie one element after another.
template <int kRows, int kColumns>
void MultiplyDots(const FewRowsProduct& p, int64_t j) {
  const FloatTag d;
  FloatVector sums[kRows][kColumns];
  SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
    SWIZZLE_UNROLL for (int c = 0; c < kColumns; ++c) sums[r][c] = hn::Zero(d);
  }
  const auto add = [&](int64_t i, const auto& load) HWY_ATTR {
    FloatVector a[kRows];
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) a[r] = load(p.a.data + r * p.a.stride + i);
    SWIZZLE_UNROLL for (int c = 0; c < kColumns; ++c) {
      const FloatVector b = load(p.b.data + (j + c) * p.b.stride + i);
      SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) sums[r][c] = hn::MulAdd(a[r], b, sums[r][c]);
    }
  };
  const int64_t whole = p.k / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    add(i, [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); });
  }
  if (whole < p.k) {
    add(whole, [&](const float* from) HWY_ATTR { return LoadFirst(d, from, p.k - whole, hn::Zero(d)); });
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) p.c[r * p.c_stride + j + c] = hn::GetLane(hn::SumOfLanes(d, sums[r][c]));
  }
}

template <int kRows>
void MultiplyTransposed(const FewRowsProduct& p) {
  constexpr int kColumns = 4;
  int64_t j = 0;
  for (; j + kColumns <= p.n; j += kColumns) MultiplyDots<kRows, kColumns>(p, j);
  for (; j < p.n; ++j) MultiplyDots<kRows, 1>(p, j);
}

template <int kRows>
void Multiply(const FewRowsProduct& p) {
  return p.b.transposed ? MultiplyTransposed<kRows>(p) : MultiplyPlain<kRows>(p);
}

}  // namespace

void MultiplyFewRows(const FewRowsProduct& product) {
  if (product.m == 1) return Multiply<1>(product);
  if (product.m == 2) return Multiply<2>(product);
  return product.m == 3 ? Multiply<3>(product) : Multiply<4>(product);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool HasFewRows(const FewRowsProduct& product) {
  constexpr int64_t kMostRows = 4;
  const SgemmOperand& a = product.a;
  return product.m <= kMostRows && (!product.b.transposed || !a.transposed || (product.m == 1 && a.stride == 1));
}

void MultiplyFewRows(const FewRowsProduct& product) {
  static const auto widest = Widest(N_AVX3::MultiplyFewRows, N_AVX2::MultiplyFewRows, N_EMU128::MultiplyFewRows);
  widest(product);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
