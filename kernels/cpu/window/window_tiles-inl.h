// Gathers, scatters, the loop over the tiles of window_tiles.h and the fold of any window. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_WINDOW_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_WINDOW_TILES_INL_H_
#undef SWIZZLE_KERNELS_CPU_WINDOW_TILES_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_WINDOW_TILES_INL_H_
#endif

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"
#include "kernels/cpu/window/window_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// Channels [first, first + count) and their scratch planes, `pitch` floats apart.
struct PlaneBatch {
  int64_t first;
  int64_t count;
  float* planes;
  int64_t pitch;

  float* Plane(int64_t c) const { return planes + c * pitch; }
};

// Copies `count` neighbours to the even and odd columns' planes, the first to `to_first`. Up to a vector behind them is
// set to `rest`.
template <typename T>
HWY_INLINE void SplitColumns(const T* from, int64_t count, FloatVector rest, float* to_first, float* to_second) {
  const FloatTag d;
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    FloatVector even, odd;
    LoadPairs(from + i, even, odd);
    hn::StoreU(even, d, to_first + i / 2);
    hn::StoreU(odd, d, to_second + i / 2);
  }
  if (i == count) return;
  const int64_t left = count - i;
  const FloatVector low = LoadSome(from + i, left, rest);
  const FloatVector high = left > kLanes ? LoadFirst(d, from + i + kLanes, left - kLanes, rest) : rest;
  hn::StoreU(hn::ConcatEven(d, high, low), d, to_first + i / 2);
  hn::StoreU(hn::ConcatOdd(d, high, low), d, to_second + i / 2);
}

// Gather for split columns; the odd columns' plane stands `odd` floats behind the even ones'.
template <typename T>
HWY_INLINE void GatherSplit(std::span<const Run> runs, const T* input, float padding, const PlaneBatch& batch,
                            int64_t odd) {
  const FloatVector rest = hn::Set(FloatTag(), padding);
  for (const Run run : runs) {
    const T* from = input + run.At(batch.first);
    float* to = batch.planes + run.scratch / 2;
    const bool starts_odd = run.scratch % 2 != 0;
    for (int64_t c = 0; c < batch.count; ++c, from += run.channel_stride, to += batch.pitch) {
      SplitColumns(from, run.length, rest, starts_odd ? to + odd : to, starts_odd ? to + 1 : to + odd);
    }
  }
}

// Copies the runs of a batch of channels into their scratch planes. Up to a vector behind each run is set to `padding`;
// the next run stands later and overwrites what is its own.
template <typename T>
HWY_INLINE void Gather(std::span<const Run> runs, const T* input, float padding, const PlaneBatch& batch) {
  const FloatTag d;
  const FloatVector rest = hn::Set(d, padding);
  for (const Run run : runs) {
    const int64_t whole = run.length / kLanes * kLanes;
    const T* from = input + run.At(batch.first);
    float* to = batch.planes + run.scratch;
    for (int64_t c = 0; c < batch.count; ++c, from += run.channel_stride, to += batch.pitch) {
      for (int64_t i = 0; i < whole; i += kLanes) hn::StoreU(LoadAll(from + i), d, to + i);
      if (whole != run.length) hn::StoreU(LoadFirst(d, from + whole, run.length - whole, rest), d, to + whole);
    }
  }
}

// Copies the scratch planes of a batch to the runs of its channels, adding the residual and clamping on the way.
template <bool kResidual, typename T>
HWY_INLINE void Scatter(std::span<const Run> runs, const PlaneBatch& batch, const Epilogue& epilogue, const T* residual,
                        T* output) {
  const FloatTag d;
  const FloatVector low = hn::Set(d, epilogue.low);
  const FloatVector high = hn::Set(d, epilogue.high);
  for (const Run run : runs) {
    const int64_t whole = run.length / kLanes * kLanes;
    const int64_t rest = run.length - whole;
    const float* from = batch.planes + run.scratch;
    int64_t offset = run.At(batch.first);
    for (int64_t c = 0; c < batch.count; ++c, from += batch.pitch, offset += run.channel_stride) {
      for (int64_t i = 0; i < whole; i += kLanes) {
        FloatVector sum = hn::LoadU(d, from + i);
        if constexpr (kResidual) sum = hn::Add(sum, LoadAll(residual + offset + i));
        StoreAll(Clamp(sum, low, high), output + offset + i);
      }
      if (rest == 0) continue;
      FloatVector sum = hn::LoadU(d, from + whole);
      if constexpr (kResidual) sum = hn::Add(sum, LoadFirst(d, residual + offset + whole, rest, hn::Zero(d)));
      StoreFirst(Clamp(sum, low, high), d, output + offset + whole, rest);
    }
  }
}

// The scratch planes of one tile as the computing loops see them. Outputs are computed in groups of kLanes columns:
// where a row is longer the last group overlaps its neighbour; where it is shorter the spare lanes spill into the next
// row, so a group's rows are computed from the top down.
struct TileRows {
  TileRows(const Problem& problem, const WindowTiles& tiles, const Tile& tile)
      : rows(tile.rows),
        in_width(problem.input.width),
        in_pitch(tiles.in_pitch()),
        odd(tiles.in_floats() / 2),
        out_width(problem.output.width) {}

  int64_t groups() const { return CeilDiv(out_width, kLanes); }
  int64_t GroupColumn(int64_t group) const {
    return std::max<int64_t>(0, std::min(group * kLanes, out_width - kLanes));
  }
  // Where the tap that looks at input column kStride * (output column) + shift finds the values of output columns from
  // `column` on, in a scratch plane's first row. kStride is the stride where it is 1 or 2, else 0.
  template <int kStride>
  HWY_INLINE int64_t TapOffset(int64_t column, int64_t shift, [[maybe_unused]] int64_t stride) const {
    if constexpr (kStride == 1) return column + shift;
    if constexpr (kStride == 2) return column + (shift >> 1) + ((shift & 1) != 0 ? odd : 0);
    return column * stride + shift;
  }

  int64_t rows;
  int64_t in_width;
  int64_t in_pitch;
  int64_t odd;
  int64_t out_width;
};

// Lanes whose input column, first + lane * stride, is inside [0, width).
HWY_INLINE FloatMask InsideColumns(FloatTag d, int64_t first, int64_t stride, int64_t width) {
  const int64_t begin = first >= 0 ? 0 : CeilDiv(-first, stride);
  const int64_t end = first >= width ? 0 : CeilDiv(width - first, stride);
  const FloatMask before_end = hn::FirstN(d, static_cast<size_t>(std::min(end, kLanes)));
  const FloatMask before_begin = hn::FirstN(d, static_cast<size_t>(std::min(begin, kLanes)));
  return hn::AndNot(before_begin, before_end);
}

// The values of one tap for kLanes outputs: neighbours, unless the stride is neither 1 nor 2.
template <int kStride>
HWY_INLINE FloatVector LoadTap(FloatTag d, const float* from, [[maybe_unused]] int64_t stride) {
  if constexpr (kStride != 0) return hn::LoadU(d, from);
  const hn::RebindToSigned<FloatTag> di;
  return hn::GatherIndex(d, from, hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(stride))));
}

// How outputs come from the taps of a window: sum = fold(sum, tap, values), from `first` on; `outside` is the value of
// taps beside the plane.
template <class Fold>
struct WindowFold {
  FloatVector first;
  FloatVector outside;
  Fold fold;
};
template <class Fold>
WindowFold(FloatVector, FloatVector, Fold) -> WindowFold<Fold>;

// kLanes columns, from `column` on, of kRows output rows of any window.
template <int kStride, int kRows, class Fold>
HWY_INLINE void FoldRows(const Window& window, const TileRows& shape, const WindowFold<Fold>& folding, int64_t column,
                         const float* in, float* out) {
  const FloatTag d;
  FloatVector sums[kRows];
  SWIZZLE_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r] = folding.first;
  for (int64_t j = 0; j < window.kernel_w; ++j) {
    const int64_t shift = j * window.dilation_w - window.pad_left;
    const FloatMask inside = InsideColumns(d, column * window.stride_w + shift, window.stride_w, shape.in_width);
    const float* tap = in + shape.TapOffset<kStride>(column, shift, window.stride_w);
    for (int64_t i = 0; i < window.kernel_h; ++i) {
      SWIZZLE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const float* from = tap + (int64_t{r} * window.stride_h + i * window.dilation_h) * shape.in_pitch;
        const FloatVector values = LoadTap<kStride>(d, from, window.stride_w);
        sums[r] = folding.fold(sums[r], i * window.kernel_w + j, hn::IfThenElse(inside, values, folding.outside));
      }
    }
  }
  SWIZZLE_UNROLL
  for (int r = 0; r < kRows; ++r) hn::StoreU(sums[r], d, out + r * shape.out_width + column);
}

template <int kStride, class Fold>
HWY_INLINE void FoldPlaneStrided(const Window& window, const TileRows& shape, const WindowFold<Fold>& folding,
                                 const float* in, float* out) {
  constexpr int kRows = 4;
  const int64_t row_step = window.stride_h * shape.in_pitch;
  for (int64_t group = 0; group < shape.groups(); ++group) {
    const int64_t column = shape.GroupColumn(group);
    int64_t row = 0;
    for (; row + kRows <= shape.rows; row += kRows) {
      FoldRows<kStride, kRows>(window, shape, folding, column, in + row * row_step, out + row * shape.out_width);
    }
    for (; row < shape.rows; ++row) {
      FoldRows<kStride, 1>(window, shape, folding, column, in + row * row_step, out + row * shape.out_width);
    }
  }
}

template <class Fold>
void FoldPlane(const Window& window, const TileRows& shape, const WindowFold<Fold>& folding, const float* in,
               float* out) {
  switch (window.stride_w) {
    case 1:
      return FoldPlaneStrided<1>(window, shape, folding, in, out);
    case 2:
      return FoldPlaneStrided<2>(window, shape, folding, in, out);
    default:
      return FoldPlaneStrided<0>(window, shape, folding, in, out);
  }
}

// Sets the rows above and below the input plane in the scratch planes of a batch. Gather leaves them alone, or writes
// more of the same.
HWY_INLINE void PadRows(const WindowTiles& tiles, const Tile& tile, float padding, float* planes) {
  const FloatTag d;
  for (const auto& [begin, end] : tiles.PaddingOf(tile)) {
    for (int64_t c = 0; c < tiles.channel_batch(); ++c) {
      float* plane = planes + c * tiles.in_floats() + tiles.in_front();
      for (int64_t i = begin; i < end; i += kLanes) {
        hn::StoreU(hn::Set(d, padding), d, plane + i);
        if (tiles.split()) hn::StoreU(hn::Set(d, padding), d, plane + tiles.in_floats() / 2 + i);
      }
    }
  }
}

// Computes and scatters the planes of a batch that has been gathered.
template <typename T, class WindowOp>
HWY_INLINE void FinishBatch(const KernelArgs& args, const WindowTiles& tiles, const Tile& tile,
                            const TileWorkspace& workspace, std::span<const Run> runs, const PlaneBatch& in,
                            const WindowOp& op) {
  const Epilogue& epilogue = args.problem->epilogue;
  const PlaneBatch out{in.first, in.count, workspace.out, tiles.out_floats()};
  op.ComputePlanes(tile, workspace.shared, in, out);
  if (epilogue.function) {  // of what is neither added to nor clamped (AcceptsDepthwise)
    const int64_t count = tile.rows * args.problem->output.width;
    for (int64_t c = 0; c < out.count; ++c) ApplyFunction(*epilogue.function, out.Plane(c), count);
  }
  if (epilogue.residual) {
    Scatter<true, T>(runs, out, epilogue, args.Residual<T>(), args.Output<T>());
  } else {
    Scatter<false, T>(runs, out, epilogue, nullptr, args.Output<T>());
  }
}

// Solves a problem of elements T, whose input and output are stored alike, tile by tile. `op.padding` is what stands
// above and below the plane; op.BeginTile(tile, shared) may fill what all channels of a tile share;
// op.ComputePlanes(tile, shared, in, out) turns scratch planes into others.
template <typename T, class WindowOp>
void RunTilesOf(const KernelArgs& args, Stream& stream, const WindowTiles& tiles, const WindowOp& op) {
  const Layout layout = args.problem->to.layout;
  const auto run_items = [&](int64_t slot, int64_t begin, int64_t end) {
    const TileWorkspace workspace(tiles, args.workspace, slot);
    std::span<const Run> in_runs, out_runs;
    Tile tile{};
    for (int64_t item = begin; item < end; ++item) {
      const int64_t batch = item % tiles.channel_batches();
      if (item == begin || batch == 0) {
        tile = tiles.At(item / tiles.channel_batches());
        in_runs = tiles.InputRuns(tile, layout, workspace.in_runs);
        out_runs = tiles.OutputRuns(tile, layout, workspace.out_runs);
        PadRows(tiles, tile, op.padding, workspace.in);
        op.BeginTile(tile, workspace.shared);
      }
      const int64_t first = batch * tiles.channel_batch();
      const int64_t count = std::min(tiles.channel_batch(), args.problem->output.channels - first);
      const PlaneBatch in{first, count, workspace.in + tiles.in_front(), tiles.in_floats()};
      if (tiles.split()) {
        GatherSplit(in_runs, args.Input<T>(0), op.padding, in, tiles.in_floats() / 2);
      } else {
        Gather(in_runs, args.Input<T>(0), op.padding, in);
      }
      FinishBatch<T>(args, tiles, tile, workspace, out_runs, in, op);
    }
  };
  CpuStream::From(stream).ParallelRanges(tiles.count() * tiles.channel_batches(), run_items);
}

template <class WindowOp>
void RunTiles(const KernelArgs& args, Stream& stream, const WindowTiles& tiles, const WindowOp& op) {
  if (IsBfloat16(args.problem->to)) return RunTilesOf<Bfloat16>(args, stream, tiles, op);
  RunTilesOf<float>(args, stream, tiles, op);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
