#include "kernels/cpu/depthwise_dense_f32.h"

#include "kernels/cpu/window_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise_dense_f32.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/small_planes-inl.h"
#include "kernels/cpu/window_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// One plane's taps, spread over vectors.
struct Taps3x3 {
  Taps3x3(FloatTag d, const float* weights, float plane_bias) : bias(hn::Set(d, plane_bias)) {
    SWIZZLE_UNROLL
    for (int i = 0; i < 9; ++i) taps[i] = hn::Set(d, weights[i]);
  }
  FloatVector taps[9];
  FloatVector bias;
};

// A window's three columns, for a group of output columns: where they are in a scratch row, and which lanes are inside
// the plane.
struct Columns3x3 {
  int64_t offsets[3];
  FloatMask inside[3];
};

// Hides where a pointer comes from: the compiler would else compute the addresses of all taps ahead, and spill them.
HWY_INLINE const float* Opaque(const float* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// kLanes columns of kRows output rows: an input row is loaded once for all the output rows that it touches.
template <int kStride, int kRows>
HWY_INLINE void Block3x3(const TileRows& shape, const Taps3x3& weights, const Columns3x3& columns, const float* in,
                         float* out) {
  const FloatTag d;
  FloatVector sums[kRows];
  SWIZZLE_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r] = weights.bias;
  SWIZZLE_UNROLL
  for (int i = 0; i < (kRows - 1) * kStride + 3; ++i) {
    FloatVector values[3];
    SWIZZLE_UNROLL
    for (int j = 0; j < 3; ++j) {
      values[j] = hn::IfThenElseZero(columns.inside[j], hn::LoadU(d, in + columns.offsets[j]));
    }
    in = Opaque(in + shape.in_pitch);
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int tap_row = i - r * kStride;
      if (tap_row < 0 || tap_row > 2) continue;
      SWIZZLE_UNROLL
      for (int j = 0; j < 3; ++j) sums[r] = hn::MulAdd(values[j], weights.taps[3 * tap_row + j], sums[r]);
    }
  }
  SWIZZLE_UNROLL
  for (int r = 0; r < kRows; ++r) hn::StoreU(sums[r], d, out + r * shape.out_width);
}

// One group of columns of one plane, from the top down: see TileRows.
template <int kStride>
HWY_INLINE void Group3x3(const TileRows& shape, const Taps3x3& weights, const Columns3x3& columns, const float* in,
                         float* out) {
  int64_t rows = shape.rows;
  for (; rows >= 4; rows -= 4, in += 4 * kStride * shape.in_pitch, out += 4 * shape.out_width) {
    Block3x3<kStride, 4>(shape, weights, columns, in, out);
  }
  if (rows == 3) Block3x3<kStride, 3>(shape, weights, columns, in, out);
  if (rows == 2) Block3x3<kStride, 2>(shape, weights, columns, in, out);
  if (rows == 1) Block3x3<kStride, 1>(shape, weights, columns, in, out);
}

template <int kStride>
void Planes3x3(const TileRows& shape, int64_t pad_left, const DepthwiseWeight& weight, const PlaneBatch& in,
               const PlaneBatch& out) {
  const FloatTag d;
  for (int64_t group = 0; group < shape.groups(); ++group) {
    const int64_t column = shape.GroupColumn(group);
    Columns3x3 columns;
    SWIZZLE_UNROLL
    for (int j = 0; j < 3; ++j) {
      columns.offsets[j] = shape.TapOffset<kStride>(column, j - pad_left, kStride);
      columns.inside[j] = InsideColumns(d, column * kStride + j - pad_left, kStride, shape.in_width);
    }
    for (int64_t c = 0; c < in.count; ++c) {
      const Taps3x3 weights(d, weight.taps(in.first + c), weight.bias(in.first + c));
      Group3x3<kStride>(shape, weights, columns, in.Plane(c), out.Plane(c) + column);
    }
  }
}

// 0 where the window is not a plain 3x3 of stride 1 or 2.
int Stride3x3(const Window& window) {
  const bool plain = window.kernel_h == 3 && window.kernel_w == 3 && window.dilation_h == 1 && window.dilation_w == 1 &&
                     window.stride_h == window.stride_w;
  return plain && window.stride_h <= 2 ? window.stride_h : 0;
}

struct DepthwiseOp {
  const Problem& problem;
  const WindowTiles& tiles;
  const DepthwiseWeight& weight;
  float padding = 0;

  void BeginTile(const Tile&, float*) const {}
  void ComputePlanes(const Tile& tile, const float*, const PlaneBatch& in, const PlaneBatch& out) const {
    const TileRows shape(problem, tiles, tile);
    switch (Stride3x3(problem.window)) {
      case 1:
        return Planes3x3<1>(shape, problem.window.pad_left, weight, in, out);
      case 2:
        return Planes3x3<2>(shape, problem.window.pad_left, weight, in, out);
      default:
        for (int64_t c = 0; c < in.count; ++c) AnyWindow(shape, in.first + c, in.Plane(c), out.Plane(c));
    }
  }

  void AnyWindow(const TileRows& shape, int64_t channel, const float* in, float* out) const {
    const FloatTag d;
    const auto multiply_add = [d, taps = weight.taps(channel)](FloatVector sum, int64_t tap, FloatVector values)
                                  HWY_ATTR { return hn::MulAdd(values, hn::Set(d, taps[tap]), sum); };
    FoldPlane(problem.window, shape, WindowFold{hn::Set(d, weight.bias(channel)), hn::Zero(d), multiply_add}, in, out);
  }
};

void RunDepthwise(const KernelArgs& args, Stream& stream, Layout layout) {
  const WindowTiles tiles(*args.problem);
  const DepthwiseOp op{*args.problem, tiles, static_cast<const DepthwiseWeight&>(*args.weight)};
  RunTiles(args, stream, layout, tiles, op);
}

}  // namespace

void DepthwisePanels(const KernelArgs& args, Stream& stream) {
#if HWY_TARGET == HWY_AVX3
  if (FitsSmallPlanes(*args.problem)) return RunSmallPlanes(args, stream);
#endif
  RunDepthwise(args, stream, Layout::kPanels);
}
void DepthwiseNchw(const KernelArgs& args, Stream& stream) { RunDepthwise(args, stream, Layout::kNchw); }

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool IsSame3x3(const Problem& problem) {
  const Window& window = problem.window;
  return window.kernel_h == 3 && window.kernel_w == 3 && window.stride_h == 1 && window.stride_w == 1 &&
         window.dilation_h == 1 && window.dilation_w == 1 && window.pad_top == 1 && window.pad_left == 1 &&
         problem.input.height == problem.output.height && problem.input.width == problem.output.width &&
         problem.input.plane() <= kMaxPanelWidth;
}

bool FitsSmallPlanes(const Problem& problem) {
  const bool one_panel = problem.input.positions() <= kMaxPanelWidth;
  return IsSame3x3(problem) && (one_panel || kPositionUnit % problem.input.plane() == 0);
}

DepthwiseWeight::DepthwiseWeight(const Weight& weight, const Problem& problem)
    : pitch_(weight.cols() + 1), values_(weight.rows() * pitch_) {
  const DenseMatrix matrix = weight.ToDense();
  for (int64_t row = 0; row < matrix.rows; ++row) {
    std::copy_n(matrix.values.begin() + row * matrix.cols, matrix.cols, values_.begin() + row * pitch_);
    if (!weight.bias.empty()) values_[(row + 1) * pitch_ - 1] = weight.bias[row];
  }
  if (IsSame3x3(problem)) masks_ = PlaneMasks(problem.input.height, problem.input.width);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwise(const Weight& weight, const Problem& problem) {
  return std::make_unique<DepthwiseWeight>(weight, problem);
}

size_t DepthwiseWorkspaceBytes(const Problem& problem) {
  return WindowTiles(problem).WorkspaceBytes() * problem.threads;
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
