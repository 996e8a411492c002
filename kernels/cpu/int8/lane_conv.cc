#include "kernels/cpu/int8/lane_conv.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/base/integers.h"
#include "kernels/cpu/int8/lane_cells.h"
#include "kernels/cpu/runtime/cache_sizes.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kVector = 64;
constexpr int64_t kMost = LanePositions::kMost;

// Whether two positions are a vector.
bool IsPaired(const Problem& problem) {
  return problem.window().IsPointwise() && problem.input.channels == LaneWeight::kUnit &&
         problem.output.positions() % 2 == 0;
}

// Whether windows are the input's own rows.
bool IsDirect(const Problem& problem) {
  const int64_t channels = problem.input.channels;
  return problem.window().IsPointwise() && (channels == kVector || IsPaired(problem));
}

int64_t UnitsOf(const Problem& problem) { return LaneWeight::UnitsOf(problem.input.channels, problem.window().taps()); }

// Units of a part: the windows of a task then leave a quarter of the first cache to the steps and the sums.
int64_t MostUnits() { return std::max<int64_t>(HostCacheSizes().first * 3 / 4 / (kMost * kVector) + 1, 2); }

// A thread's part of the workspace: what taps outside the plane read, windows, sums that wait.
struct Slot {
  explicit Slot(const Problem& problem)
      : outside(RoundUp(problem.input.channels, kVector)),
        windows(LaneWeight::WindowsOf(std::min(UnitsOf(problem), MostUnits())) * kMost * kVector),
        sums(UnitsOf(problem) <= MostUnits() ? 0 : RoundUp(problem.output.channels, LaneChunk::kRows) * kMost * 4) {}
  int64_t bytes() const { return outside + windows + sums; }

  int64_t outside, windows, sums;  // bytes
};

// Bits of the taps along one side that are inside it.
uint32_t TapsInside(int64_t first, int64_t taps, int64_t dilation, int64_t size) {
  uint32_t inside = 0;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t at = first + tap * dilation;
    inside |= uint32_t{at >= 0 && at < size} << tap;
  }
  return inside;
}

bool PadsNothing(const Window& window) {
  return window.pad_top == 0 && window.pad_left == 0 && window.pad_bottom == 0 && window.pad_right == 0;
}

// What `count` positions from `first` on read.
std::array<LanePlace, kMost> PlacesOf(const Problem& problem, const uint8_t* input, int64_t first, int64_t count) {
  const Window& window = problem.window();
  const Extent &from = problem.input, &to = problem.output;
  int64_t image = first / to.plane(), row = first % to.plane() / to.width, column = first % to.width;
  std::array<LanePlace, kMost> places;
  const bool is_inside = PadsNothing(window);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t y = row * window.stride_h - window.pad_top, x = column * window.stride_w - window.pad_left;
    places[i].first = input + (image * from.plane() + y * from.width + x) * from.channels;
    if (is_inside) {
      places[i].rows = places[i].columns = ~uint32_t{0};
    } else {
      places[i].rows = TapsInside(y, window.kernel_h, window.dilation_h, from.height);
      places[i].columns = TapsInside(x, window.kernel_w, window.dilation_w, from.width);
    }
    if (++column < to.width) continue;
    column = 0;
    if (++row < to.height) continue;
    row = 0;
    ++image;
  }
  return places;
}

// What a thread needs to compute tasks of one convolution.
class LaneTasks {
 public:
  LaneTasks(const KernelArgs& args, int64_t slot)
      : args_(args),
        weight_(static_cast<const LaneWeight&>(*args.weight)),
        steps_(StepsOf(*args.problem)),
        slot_(*args.problem),
        outside_(reinterpret_cast<uint8_t*>(args.workspace.data()) + slot * slot_.bytes()),
        fill_(FillOf(*args.problem, outside_)) {
    std::memset(outside_, args.problem->inputs_as[0].zero_point, slot_.outside);
    positions_.channels = args.problem->output.channels;
    positions_.paired = IsPaired(*args.problem);
    positions_.sums = reinterpret_cast<int32_t*>(outside_ + slot_.outside + slot_.windows);
  }

  // Chunks [begin, end) of `count` positions.
  void Run(int64_t first, int64_t count, int64_t begin, int64_t end) {
    const int64_t channels = positions_.channels;
    positions_.count = count;
    positions_.output = args_.Output<uint8_t>() + first * channels;
    if (args_.problem->epilogue.residual) positions_.residual = args_.Residual<uint8_t>() + first * channels;
    const auto* const input = args_.Input<uint8_t>(0);
    const bool is_direct = IsDirect(*args_.problem);
    std::array<LanePlace, kMost> places;
    if (!is_direct) places = PlacesOf(*args_.problem, input, first, count);
    for (int64_t part = 0; part < weight_.parts(); ++part) {
      positions_.windows = is_direct ? input + first * args_.problem->input.channels : Fill(part, places.data(), count);
      for (int64_t chunk = begin; chunk < end; ++chunk) RunLanes(weight_.Chunk(part, chunk), positions_, steps_);
    }
  }

 private:
  static LaneFill FillOf(const Problem& problem, const uint8_t* outside) {
    const Window& window = problem.window();
    return {.outside = outside,
            .channels = problem.input.channels,
            .kernel_h = window.kernel_h,
            .kernel_w = window.kernel_w,
            .row_bytes = window.dilation_h * problem.input.width * problem.input.channels,
            .column_bytes = window.dilation_w * problem.input.channels,
            .is_inside = PadsNothing(window)};
  }
  const uint8_t* Fill(int64_t part, const LanePlace* places, int64_t count) {
    uint8_t* const windows = outside_ + slot_.outside;
    fill_.first_unit = weight_.FirstUnit(part);
    fill_.units = weight_.FirstUnit(part + 1) - fill_.first_unit;
    FillWindows(fill_, places, count, windows);
    return windows;
  }

  const KernelArgs& args_;
  const LaneWeight& weight_;
  const OutputSteps steps_;
  const Slot slot_;
  uint8_t* const outside_;
  LaneFill fill_;
  LanePositions positions_;
};

}  // namespace

bool AcceptsLaneConv(const Problem& problem) {
  return ReadsBytes(problem, Layout::kNhwc) && WritesBytes(problem, Layout::kNhwc) && !problem.epilogue.function &&
         (!problem.epilogue.residual || problem.inputs_as[1].dtype == DType::kUint8) &&
         problem.window().kernel_h <= LaneFill::kMostTaps && problem.window().kernel_w <= LaneFill::kMostTaps &&
         UnitsOf(problem) <= std::numeric_limits<uint16_t>::max();
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareLaneConv(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  return std::make_unique<LaneWeight>(bytes, problem.input.channels, MostUnits());
}

size_t LaneConvWorkspaceBytes(const Problem& problem) { return problem.threads * Slot(problem).bytes(); }

void LaneConv(const KernelArgs& args, Stream& stream) {
  constexpr int64_t kCellsPerThread = 4;
  const Problem& problem = *args.problem;
  const int64_t chunks = static_cast<const LaneWeight&>(*args.weight).chunks();
  const int64_t all = problem.output.positions(), blocks = CeilDiv(all, kMost);
  const int64_t together = IsPaired(problem) ? 2 : 1, groups = all / together;  // of positions, which are not cut
  const int64_t slices = std::min(chunks, CeilDiv(kCellsPerThread * problem.threads, blocks));
  const auto run_range = [&](int64_t slot, int64_t begin, int64_t end) {
    LaneTasks tasks(args, slot);
    for (int64_t cell = begin, last; cell < end; cell = last) {  // neighbouring slices of a block at once
      const int64_t block = cell / slices;
      last = std::min((block + 1) * slices, end);
      const int64_t first = groups * block / blocks * together;
      tasks.Run(first, groups * (block + 1) / blocks * together - first, chunks * (cell - block * slices) / slices,
                chunks * (last - block * slices) / slices);
    }
  };
  CpuStream::From(stream).ParallelRanges(blocks * slices, run_range);
}

}  // namespace swizzle::cpu
