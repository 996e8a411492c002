#include "kernels/cpu/window/depthwise_dense.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/window/shifted_planes.h"
#include "kernels/cpu/window/window_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/window/depthwise_dense.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/window/halved_planes-inl.h"
#include "kernels/cpu/window/shifted_planes-inl.h"
#include "kernels/cpu/window/window_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// The columns of a window, for a group of output columns: where they are in a scratch row, and which lanes are inside
// the plane.
template <int kSize>
struct WindowColumns {
  int64_t offsets[kSize];
  FloatMask inside[kSize];
};

// Hides where a pointer comes from: the compiler would else compute the addresses of all taps ahead, and spill them.
HWY_INLINE const float* Opaque(const float* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// kLanes columns of kRows output rows, column by column of the window: its taps stay in registers, and an input row is
// loaded once for all the output rows that it touches.
template <int kSize, int kStride, int kRows>
HWY_INLINE void SquareBlock(const TileRows& shape, const float* taps, FloatVector bias,
                            const WindowColumns<kSize>& columns, const float* in, float* out) {
  const FloatTag d;
  FloatVector sums[kRows];
  SWIZZLE_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r] = bias;
  HWY_UNROLL(3)
  for (int j = 0; j < kSize; ++j) {
    FloatVector column[kSize];
    SWIZZLE_UNROLL
    for (int i = 0; i < kSize; ++i) column[i] = hn::Set(d, taps[i * kSize + j]);
    const float* from = in + columns.offsets[j];
    SWIZZLE_UNROLL
    for (int i = 0; i < (kRows - 1) * kStride + kSize; ++i) {
      const FloatVector values = hn::IfThenElseZero(columns.inside[j], hn::LoadU(d, from));
      from = Opaque(from + shape.in_pitch);
      SWIZZLE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const int tap_row = i - r * kStride;
        if (tap_row < 0 || tap_row >= kSize) continue;
        sums[r] = hn::MulAdd(values, column[tap_row], sums[r]);
      }
    }
  }
  SWIZZLE_UNROLL
  for (int r = 0; r < kRows; ++r) hn::StoreU(sums[r], d, out + r * shape.out_width);
}

// One group of columns of one plane, from the top down: see TileRows. Seven rows at a time, since the planes of most
// networks are multiples of seven high.
template <int kSize, int kStride>
HWY_INLINE void SquareGroup(const TileRows& shape, const float* taps, FloatVector bias,
                            const WindowColumns<kSize>& columns, const float* in, float* out) {
  const auto run = [&]<int kRows>() HWY_ATTR {
    SquareBlock<kSize, kStride, kRows>(shape, taps, bias, columns, in, out);
    in += int64_t{kRows} * kStride * shape.in_pitch;
    out += kRows * shape.out_width;
  };
  int64_t rows = shape.rows;
  for (; rows >= 7; rows -= 7) run.template operator()<7>();
  if (rows & 4) run.template operator()<4>();
  if (rows & 2) run.template operator()<2>();
  if (rows & 1) run.template operator()<1>();
}

template <int kSize, int kStride>
void SquarePlanes(const TileRows& shape, int64_t pad_left, const DepthwiseWeight& weight, const PlaneBatch& in,
                  const PlaneBatch& out) {
  const FloatTag d;
  for (int64_t group = 0; group < shape.groups(); ++group) {
    const int64_t column = shape.GroupColumn(group);
    WindowColumns<kSize> columns;
    for (int j = 0; j < kSize; ++j) {
      columns.offsets[j] = shape.TapOffset<kStride>(column, j - pad_left, kStride);
      columns.inside[j] = InsideColumns(d, column * kStride + j - pad_left, kStride, shape.in_width);
    }
    for (int64_t c = 0; c < in.count; ++c) {
      const FloatVector bias = hn::Set(d, weight.bias(in.first + c));
      SquareGroup<kSize, kStride>(shape, weight.taps(in.first + c), bias, columns, in.Plane(c), out.Plane(c) + column);
    }
  }
}

using SquareFunction = void (*)(const TileRows&, int64_t, const DepthwiseWeight&, const PlaneBatch&, const PlaneBatch&);

// For plain square windows of stride 1 or 2; null for any other.
SquareFunction SquareOf(const Window& window) {
  constexpr SquareFunction kFunctions[3][2] = {{SquarePlanes<3, 1>, SquarePlanes<3, 2>},
                                               {SquarePlanes<5, 1>, SquarePlanes<5, 2>},
                                               {SquarePlanes<7, 1>, SquarePlanes<7, 2>}};
  const bool plain = window.kernel_h == window.kernel_w && window.stride_h == window.stride_w && window.stride_h <= 2 &&
                     window.dilation_h == 1 && window.dilation_w == 1;
  const bool has_size = window.kernel_h % 2 == 1 && window.kernel_h >= 3 && window.kernel_h <= 7;
  return plain && has_size ? kFunctions[window.kernel_h / 2 - 1][window.stride_h - 1] : nullptr;
}

struct DepthwiseOp {
  const Problem& problem;
  const WindowTiles& tiles;
  const DepthwiseWeight& weight;
  float padding = 0;

  void BeginTile(const Tile&, float*) const {}
  void ComputePlanes(const Tile& tile, const float*, const PlaneBatch& in, const PlaneBatch& out) const {
    const TileRows shape(problem, tiles, tile);
    if (const SquareFunction square = SquareOf(problem.window()); square != nullptr) {
      return square(shape, problem.window().pad_left, weight, in, out);
    }
    for (int64_t c = 0; c < in.count; ++c) AnyWindow(shape, in.first + c, in.Plane(c), out.Plane(c));
  }

  void AnyWindow(const TileRows& shape, int64_t channel, const float* in, float* out) const {
    const FloatTag d;
    const auto multiply_add = [d, taps = weight.taps(channel)](FloatVector sum, int64_t tap, FloatVector values)
                                  HWY_ATTR { return hn::MulAdd(values, hn::Set(d, taps[tap]), sum); };
    FoldPlane(problem.window(), shape, WindowFold{hn::Set(d, weight.bias(channel)), hn::Zero(d), multiply_add}, in,
              out);
  }
};

}  // namespace

void Depthwise(const KernelArgs& args, Stream& stream) {
#if HWY_TARGET == HWY_AVX3
  if (args.problem->to == Storage{Layout::kPanels, DType::kFloat32}) {
    const auto& weight = static_cast<const DepthwiseWeight&>(*args.weight);
    if (!weight.masks().empty()) return RunShiftedPlanes(args, stream);
    if (!weight.halved().units.empty()) return RunHalvedPlanes(args, stream);
  }
#endif
  const WindowTiles tiles(*args.problem);
  const DepthwiseOp op{*args.problem, tiles, static_cast<const DepthwiseWeight&>(*args.weight)};
  RunTiles(args, stream, tiles, op);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool IsSame3x3(const Problem& problem) {
  const Window& window = problem.window();
  return window.kernel_h == 3 && window.kernel_w == 3 && window.stride_h == 1 && window.stride_w == 1 &&
         window.dilation_h == 1 && window.dilation_w == 1 && window.pad_top == 1 && window.pad_left == 1 &&
         problem.input.height == problem.output.height && problem.input.width == problem.output.width;
}

DepthwiseWeight::DepthwiseWeight(const Weight& weight, const Problem& problem) : pitch_(weight.cols() + 1) {
  const DenseMatrix matrix = weight.ToDense();
  std::vector<float> values(static_cast<size_t>(matrix.rows * pitch_));
  for (int64_t row = 0; row < matrix.rows; ++row) {
    std::copy_n(matrix.values.begin() + row * matrix.cols, matrix.cols, values.begin() + row * pitch_);
    if (!weight.bias.empty()) values[(row + 1) * pitch_ - 1] = weight.bias[row];
  }
  values_ = std::make_shared<const std::vector<float>>(std::move(values));
  PlanPlanes(problem);
}

DepthwiseWeight::DepthwiseWeight(const DepthwiseWeight& other, const Problem& problem)
    : pitch_(other.pitch_), shared_(true), values_(other.values_) {
  PlanPlanes(problem);
}

void DepthwiseWeight::PlanPlanes(const Problem& problem) {
  if (!(DetectFeatures() & kAvx512) || IsBfloat16(problem.to)) return;
  if (IsSame3x3(problem)) masks_ = PlaneMasks(problem.input.height, problem.input.width);
  if (IsHalved3x3(problem)) halved_ = PlanHalvedPlanes(problem);
}

bool AcceptsDepthwise(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  return !epilogue.function || (!epilogue.residual && !epilogue.Clamps());
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwise(const Weight& weight, const Problem& problem) {
  return std::make_unique<DepthwiseWeight>(weight, problem);
}

StatusOr<SharedWeight> DepthwiseForPlane(const SharedWeight& form, const Problem& problem) {
  return std::make_shared<const DepthwiseWeight>(static_cast<const DepthwiseWeight&>(*form), problem);
}

size_t DepthwiseWorkspaceBytes(const Problem& problem) {
  size_t bytes = std::max(WindowTiles(problem).WorkspaceBytes(), ShiftedWorkspaceBytes(problem));
  if (IsHalved3x3(problem)) bytes = std::max(bytes, HalvedWorkspaceBytes(problem));
  return bytes * problem.threads;
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
