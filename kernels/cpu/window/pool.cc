#include "kernels/cpu/window/pool.h"

#include <limits>

#include "kernels/base/integers.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/window/window_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/window/pool.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/window/window_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The first and one past the last tap of a window along one axis that fall inside the plane.
struct TapRange {
  TapRange(int64_t output, int64_t stride, int64_t pad, int64_t dilation, int64_t kernel, int64_t size) {
    const int64_t first = output * stride - pad;
    begin = first >= 0 ? 0 : CeilDiv(-first, dilation);
    end = std::max(begin, std::min(kernel, first < size ? CeilDiv(size - first, dilation) : 0));
  }
  int64_t begin;
  int64_t end;
};

TapRange Rows(const Problem& problem, int64_t y) {
  const Window& window = problem.window();
  return {y, window.stride_h, window.pad_top, window.dilation_h, window.kernel_h, problem.input.height};
}

TapRange Columns(const Problem& problem, int64_t x) {
  const Window& window = problem.window();
  return {x, window.stride_w, window.pad_left, window.dilation_w, window.kernel_w, problem.input.width};
}

// What the sum of the window at output (y, x) is multiplied with.
float AverageScale(const Problem& problem, const TapRange& rows, const TapRange& columns) {
  const int64_t inside = (rows.end - rows.begin) * (columns.end - columns.begin);
  const Window& window = problem.window();
  const int64_t count = window.count_include_pad ? window.taps() : inside;
  return count == 0 ? 0.0f : 1.0f / static_cast<float>(count);
}

struct MaxPoolOp {
  const Problem& problem;
  const WindowTiles& tiles;
  float padding = kLowest;

  void BeginTile(const Tile&, float*) const {}
  void ComputePlanes(const Tile& tile, const float*, const PlaneBatch& in, const PlaneBatch& out) const {
    const auto larger = [](FloatVector sum, int64_t, FloatVector values) HWY_ATTR { return hn::Max(sum, values); };
    const FloatVector lowest = hn::Set(FloatTag(), kLowest);
    const TileRows shape(problem, tiles, tile);
    for (int64_t c = 0; c < in.count; ++c) {
      FoldPlane(problem.window(), shape, WindowFold{lowest, lowest, larger}, in.Plane(c), out.Plane(c));
    }
  }
};

struct AveragePoolOp {
  const Problem& problem;
  const WindowTiles& tiles;
  float padding = 0;

  // The scale of every output, laid out as an output plane.
  void BeginTile(const Tile& tile, float* scales) const {
    std::fill_n(scales, tiles.out_floats(), 0.0f);
    for (int64_t y = 0; y < tile.rows; ++y) {
      for (int64_t x = 0; x < problem.output.width; ++x) {
        scales[y * problem.output.width + x] =
            AverageScale(problem, Rows(problem, tile.first_row + y), Columns(problem, x));
      }
    }
  }

  void ComputePlanes(const Tile& tile, const float* scales, const PlaneBatch& in, const PlaneBatch& out) const {
    const FloatTag d;
    const auto add = [](FloatVector sum, int64_t, FloatVector values) HWY_ATTR { return hn::Add(sum, values); };
    const TileRows shape(problem, tiles, tile);
    for (int64_t c = 0; c < in.count; ++c) {
      float* plane = out.Plane(c);
      FoldPlane(problem.window(), shape, WindowFold{hn::Zero(d), hn::Zero(d), add}, in.Plane(c), plane);
      for (int64_t i = 0; i < tile.rows * problem.output.width; i += kLanes) {
        hn::StoreU(hn::Mul(hn::LoadU(d, plane + i), hn::LoadU(d, scales + i)), d, plane + i);
      }
    }
  }
};

// Folds one channel's runs into one value.
template <bool kMax, typename T>
HWY_INLINE float FoldRuns(std::span<const Run> runs, const T* input, int64_t channel) {
  const FloatTag d;
  const FloatVector neutral = hn::Set(d, kMax ? kLowest : 0.0f);
  const auto fold = [](FloatVector a, FloatVector b) HWY_ATTR {
    if constexpr (kMax) return hn::Max(a, b);
    return hn::Add(a, b);
  };
  FloatVector sum = neutral;
  for (const Run& run : runs) {
    const T* from = input + run.At(channel);
    int64_t i = 0;
    for (; i + kLanes <= run.length; i += kLanes) sum = fold(sum, LoadAll(from + i));
    if (i < run.length) sum = fold(sum, LoadFirst(d, from + i, run.length - i, neutral));
  }
  return hn::GetLane(kMax ? hn::MaxOfLanes(d, sum) : hn::SumOfLanes(d, sum));
}

// A window that is the plane: one output for each channel and image.
template <bool kMax, typename T>
void RunGlobal(const KernelArgs& args, Stream& stream) {
  constexpr int64_t kChannelsPerItem = 64;
  const Problem& problem = *args.problem;
  const Layout layout = problem.to.layout;
  const T* const input = args.Input<T>(0);
  T* const outputs = args.Output<T>();
  const int64_t plane = problem.input.plane();
  const float scale = kMax ? 1.0f : 1.0f / static_cast<float>(plane);
  const int64_t items_per_image = CeilDiv(problem.input.channels, kChannelsPerItem);
  const size_t slot_bytes = PoolWorkspaceBytes(problem) / problem.threads;
  CpuStream::From(stream).ParallelRanges(
      problem.input.batch * items_per_image, [&](int64_t slot, int64_t begin, int64_t end) {
        Run* room = reinterpret_cast<Run*>(args.workspace.data() + slot * slot_bytes);
        for (int64_t item = begin; item < end; ++item) {
          const int64_t image = item / items_per_image;
          const std::span<const Run> runs(room, AppendRuns(problem.input, layout, image, 0, plane, 0, room));
          Run output;
          AppendRuns(problem.output, layout, image, 0, 1, 0, &output);
          const int64_t first = item % items_per_image * kChannelsPerItem;
          for (int64_t c = first; c < std::min(first + kChannelsPerItem, problem.input.channels); ++c) {
            const float value = FoldRuns<kMax>(runs, input, c) * scale;
            const float clamped = std::min(std::max(value, problem.epilogue.low), problem.epilogue.high);
            StoreFloat(clamped, outputs + output.At(c));
          }
        }
      });
}

bool IsGlobal(const Problem& problem) {
  const Window& window = problem.window();
  return window.kernel_h == problem.input.height && window.kernel_w == problem.input.width && window.dilation_h == 1 &&
         window.dilation_w == 1 && problem.output.plane() == 1 && window.pad_top == 0 && window.pad_left == 0;
}

// One output position of one block of 16 channels.
template <bool kMax>
HWY_INLINE void PoolBlock(const Problem& problem, const TapRange& rows, const TapRange& columns, const float* from,
                          float* to) {
  const FloatTag d;
  const Window& window = problem.window();
  const float scale = kMax ? 1.0f : AverageScale(problem, rows, columns);
  for (int64_t lane = 0; lane < 16; lane += kLanes) {
    FloatVector sum = hn::Set(d, kMax ? kLowest : 0.0f);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const int64_t position = i * window.dilation_h * problem.input.width + j * window.dilation_w;
        const FloatVector values = hn::Load(d, from + position * 16 + lane);
        sum = kMax ? hn::Max(sum, values) : hn::Add(sum, values);
      }
    }
    const FloatVector scaled = kMax ? sum : hn::Mul(sum, hn::Set(d, scale));
    hn::Store(Clamp(scaled, hn::Set(d, problem.epilogue.low), hn::Set(d, problem.epilogue.high)), d, to + lane);
  }
}

template <bool kMax>
void RunPoolBlocked16(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const Window& window = problem.window();
  const Extent& output = problem.output;
  const int64_t blocks = output.batch * CeilDiv(output.channels, 16);
  const float* const planes = args.Input<float>(0);
  float* const outputs = args.Output<float>();
  CpuStream::From(stream).ParallelRanges(blocks * output.height, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t block = item / output.height;
      const int64_t y = item % output.height;
      const TapRange rows = Rows(problem, y);
      const float* plane = planes + block * problem.input.plane() * 16;
      for (int64_t x = 0; x < output.width; ++x) {
        const int64_t corner =
            (y * window.stride_h - window.pad_top) * problem.input.width + x * window.stride_w - window.pad_left;
        float* to = outputs + (block * output.plane() + y * output.width + x) * 16;
        PoolBlock<kMax>(problem, rows, Columns(problem, x), plane + corner * 16, to);
      }
    }
  });
}

template <bool kMax>
void RunPool(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  if (problem.to.layout == Layout::kBlocked16) return RunPoolBlocked16<kMax>(args, stream);
  if (IsGlobal(problem)) {
    if (IsBfloat16(problem.to)) return RunGlobal<kMax, Bfloat16>(args, stream);
    return RunGlobal<kMax, float>(args, stream);
  }
  const WindowTiles tiles(problem);
  if constexpr (kMax) {
    RunTiles(args, stream, tiles, MaxPoolOp{problem, tiles});
  } else {
    RunTiles(args, stream, tiles, AveragePoolOp{problem, tiles});
  }
}

}  // namespace

void MaxPool(const KernelArgs& args, Stream& stream) { RunPool<true>(args, stream); }
void AveragePool(const KernelArgs& args, Stream& stream) { RunPool<false>(args, stream); }

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsPool(const Problem& problem) { return !problem.epilogue.residual && AcceptsElementwise(problem); }

size_t PoolWorkspaceBytes(const Problem& problem) {
  if (problem.to.layout == Layout::kBlocked16) return 0;
  const size_t runs = RoundUp(MaxRuns(problem.input.plane()) * sizeof(Run), kBufferAlignment);
  return std::max(WindowTiles(problem).WorkspaceBytes(), runs) * problem.threads;
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
