#include "kernels/cpu/window/resize.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/integers.h"
#include "kernels/cpu/window/resized_planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/window/resize.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/window/window_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE FloatVector Mix(FloatVector first, FloatVector second, FloatVector weight) {
  const FloatVector one = hn::Set(FloatTag(), 1.0f);
  return hn::MulAdd(second, weight, hn::Mul(first, hn::Sub(one, weight)));
}

// What all bands of a call have in common.
struct Axes {
  Axes(const Problem& problem, const ResizedPlanes& planes, std::span<std::byte> workspace)
      : rows(planes.Rows(workspace)),
        columns(planes.Columns(workspace)),
        from_width(problem.input.width),
        to_width(problem.output.width),
        linear(problem.resampling().linear) {
    doubles_columns = to_width == 2 * from_width;
    for (int64_t x = 0; doubles_columns && x < to_width; ++x) {
      doubles_columns = columns.first[x] == x / 2 && columns.second[x] == x / 2;
    }
  }

  const AxisTaps rows, columns;
  const int64_t from_width, to_width;
  const bool linear;
  bool doubles_columns;  // each is there twice
};

HWY_INLINE FloatVector Gathered(const float* row, const int32_t* at) {
  return hn::GatherIndex(FloatTag(), row, hn::LoadU(hn::RebindToSigned<FloatTag>(), at));
}

// Each element twice.
void DoubleColumns(const float* row, int64_t width, float* to) {
  const FloatTag d;
  const int64_t whole = width / kLanes * kLanes;
  for (int64_t x = 0; x < whole; x += kLanes) {
    const FloatVector values = LoadAll(row + x);
    hn::StoreInterleaved2(values, values, d, to + 2 * x);
  }
  for (int64_t x = whole; x < width; ++x) to[2 * x] = to[2 * x + 1] = row[x];
}

// One row of the output from one of the input.
void ResizeColumns(const Axes& axes, const float* row, float* to) {
  if (axes.doubles_columns) return DoubleColumns(row, axes.from_width, to);
  for (int64_t x = 0; x < axes.to_width; x += kLanes) {
    FloatVector values = Gathered(row, axes.columns.first + x);
    if (axes.linear) {
      values = Mix(values, Gathered(row, axes.columns.second + x), LoadAll(axes.columns.weight + x));
    }
    StoreSome(values, to + x, axes.to_width - x);
  }
}

void MixRows(const float* first, const float* second, float weight, int64_t width, float* to) {
  const FloatVector weights = hn::Set(FloatTag(), weight);
  for (int64_t x = 0; x < width; x += kLanes) {
    StoreAll(Mix(LoadSome(first + x, width - x), LoadSome(second + x, width - x), weights), to + x);
  }
}

// `from` begins with the band's first input row, `to` with its first output row.
void ResizeRows(const Axes& axes, const ResizeBand& band, const float* from, float* row, float* to) {
  for (int64_t y = 0; y < band.rows; ++y, to += axes.to_width) {
    const int64_t at = band.first + y;
    const float* const first = from + (axes.rows.first[at] - band.from_first) * axes.from_width;
    if (!axes.linear) {
      const bool again = y > 0 && axes.rows.first[at] == axes.rows.first[at - 1];
      if (again) {
        std::memcpy(to, to - axes.to_width, static_cast<size_t>(axes.to_width) * sizeof(float));
      } else {
        ResizeColumns(axes, first, to);
      }
      continue;
    }
    const float* const second = from + (axes.rows.second[at] - band.from_first) * axes.from_width;
    MixRows(first, second, axes.rows.weight[at], axes.from_width, row);
    ResizeColumns(axes, row, to);
  }
}

// Where kDirect, which is in kNchw, rows are read and written in place.
template <bool kDirect, typename T>
void ResizePlanes(const KernelArgs& args, Stream& stream) {
  constexpr int64_t kChannelsPerItem = 16;
  const Problem& problem = *args.problem;
  const ResizedPlanes planes(problem);
  planes.FillTaps(args.workspace);
  const Axes axes(problem, planes, args.workspace);
  const int64_t channels = problem.output.channels, groups = CeilDiv(channels, kChannelsPerItem);
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  CpuStream::From(stream).ParallelRanges(planes.count() * groups, [&](int64_t slot, int64_t begin, int64_t end) {
    const ResizedPlanes::Slot own = planes.SlotOf(args.workspace, slot);
    for (int64_t item = begin; item < end; ++item) {
      const ResizeBand band = planes.BandAt(item / groups, axes.rows);
      const auto from_runs = planes.FromRuns(band, own.from_runs), to_runs = planes.ToRuns(band, own.to_runs);
      const int64_t first = item % groups * kChannelsPerItem;
      for (int64_t c = first; c < std::min(first + kChannelsPerItem, channels); ++c) {
        if constexpr (kDirect) {
          ResizeRows(axes, band, input + from_runs[0].At(c), own.row, output + to_runs[0].At(c));
        } else {
          Gather(from_runs, input, 0.0f, PlaneBatch{c, 1, own.from, 0});
          ResizeRows(axes, band, own.from, own.row, own.to);
          Scatter<false, T>(to_runs, PlaneBatch{c, 1, own.to, 0}, problem.epilogue, nullptr, output);
        }
      }
    }
  });
}

// One output row of one block of 16 channels.
void ResizeBlockRow(const Axes& axes, int64_t y, const float* plane, float* to) {
  const FloatTag d;
  const float* const upper = plane + axes.rows.first[y] * axes.from_width * kBlockChannels;
  const float* const lower = plane + axes.rows.second[y] * axes.from_width * kBlockChannels;
  const FloatVector down = hn::Set(d, axes.rows.weight[y]);
  for (int64_t x = 0; x < axes.to_width; ++x, to += kBlockChannels) {
    const int64_t left = axes.columns.first[x] * kBlockChannels, right = axes.columns.second[x] * kBlockChannels;
    const FloatVector across = hn::Set(d, axes.columns.weight[x]);
    for (int64_t lane = 0; lane < kBlockChannels; lane += kLanes) {
      FloatVector values = hn::Load(d, upper + left + lane);
      if (axes.linear) {
        values = Mix(values, hn::Load(d, lower + left + lane), down);
        const FloatVector others = Mix(hn::Load(d, upper + right + lane), hn::Load(d, lower + right + lane), down);
        values = Mix(values, others, across);
      }
      hn::Store(values, d, to + lane);
    }
  }
}

void ResizeBlocked16(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const ResizedPlanes planes(problem);
  planes.FillTaps(args.workspace);
  const Axes axes(problem, planes, args.workspace);
  const int64_t blocks = problem.output.batch * CeilDiv(problem.output.channels, kBlockChannels);
  const int64_t height = problem.output.height;
  const float* const input = args.Input<float>(0);
  float* const output = args.Output<float>();
  CpuStream::From(stream).ParallelRanges(blocks * height, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      ResizeBlockRow(axes, item % height, input + item / height * problem.input.plane() * kBlockChannels,
                     output + item * axes.to_width * kBlockChannels);
    }
  });
}

}  // namespace

void Resize(const KernelArgs& args, Stream& stream) {
  const Storage& storage = args.problem->to;
  if (storage.layout == Layout::kBlocked16) return ResizeBlocked16(args, stream);
  if (storage.layout == Layout::kNchw) return ResizePlanes<true, float>(args, stream);
  IsBfloat16(storage) ? ResizePlanes<false, Bfloat16>(args, stream) : ResizePlanes<false, float>(args, stream);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

size_t ResizeWorkspaceBytes(const Problem& problem) { return ResizedPlanes(problem).WorkspaceBytes(); }

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
