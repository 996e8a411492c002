#include "kernels/cpu/elementwise/softmax.h"

#include <algorithm>
#include <limits>

#include "kernels/base/integers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/softmax.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"
#include "kernels/cpu/simd/exponential-inl.h"
#include "kernels/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// A NaN stays one, which the others of its position would not show.
HWY_INLINE FloatVector ExpOrNan(FloatVector x) { return hn::IfThenElse(hn::Eq(x, x), Exp(x), x); }

// Some positions, each with all its channels: element (channel c, position i) at c * channel_stride + i.
struct Columns {
  const float* input;
  float* output;
  int64_t channels;
  int64_t channel_stride;
};

// The largest of each position's channels.
HWY_INLINE FloatVector LargestOf(const Columns& columns, int64_t position, int64_t count) {
  const float* in = columns.input + position;
  FloatVector largest = LoadSome(in, count);
  for (int64_t c = 1; c < columns.channels; ++c) {
    largest = hn::Max(largest, LoadSome(in + c * columns.channel_stride, count));
  }
  return largest;
}

// `count` <= kLanes neighbouring positions.
void SoftmaxAcross(const Columns& columns, int64_t position, int64_t count) {
  const FloatTag d;
  const float* in = columns.input + position;
  float* out = columns.output + position;
  const FloatVector largest = LargestOf(columns, position, count);
  FloatVector sum = hn::Zero(d);
  for (int64_t c = 0; c < columns.channels; ++c) {
    const FloatVector power = ExpOrNan(hn::Sub(LoadSome(in + c * columns.channel_stride, count), largest));
    sum = hn::Add(sum, power);
    StoreSome(power, out + c * columns.channel_stride, count);
  }
  const FloatVector scale = hn::Div(hn::Set(d, 1), sum);
  for (int64_t c = 0; c < columns.channels; ++c) {
    float* element = out + c * columns.channel_stride;
    StoreSome(hn::Mul(LoadSome(element, count), scale), element, count);
  }
}

void SoftmaxPositions(const Columns& columns, int64_t begin, int64_t end) {
  for (int64_t position = begin; position < end; position += kLanes) {
    SoftmaxAcross(columns, position, std::min(kLanes, end - position));
  }
}

HWY_INLINE void ScaleRow(float* row, int64_t length, FloatVector scale) {
  for (int64_t i = 0; i < length; i += kLanes) {
    const int64_t count = std::min(kLanes, length - i);
    StoreSome(hn::Mul(LoadSome(row + i, count), scale), row + i, count);
  }
}

// kLanes neighbouring positions of a panel, of which the first `count` are written, to rows of channels at
// columns.output. Powers become rows while they are in the first cache, and are scaled while these are in the second.
void SoftmaxToRows(const Columns& columns, int64_t position, int64_t count) {
  constexpr int64_t kTile = 64;  // channels
  const FloatTag d;
  const int64_t channels = columns.channels;
  HWY_ALIGN float powers[kTile * kLanes], scales[kLanes];
  const FloatVector largest = LargestOf(columns, position, kLanes);
  FloatVector sum = hn::Zero(d);
  for (int64_t first = 0; first < channels; first += kTile) {
    const int64_t tile = std::min(kTile, channels - first);
    const float* in = columns.input + position + first * columns.channel_stride;
    for (int64_t c = 0; c < tile; ++c) {
      const FloatVector power = ExpOrNan(hn::Sub(hn::LoadU(d, in + c * columns.channel_stride), largest));
      sum = hn::Add(sum, power);
      hn::Store(power, d, powers + c * kLanes);
    }
    TransposeHere(powers, kLanes, columns.output + first, channels, tile, count);
  }
  hn::Store(hn::Div(hn::Set(d, 1), sum), d, scales);
  for (int64_t p = 0; p < count; ++p) ScaleRow(columns.output + p * channels, channels, hn::Set(d, scales[p]));
}

void SoftmaxPanelsToRows(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const float* const input = args.Input<float>(0);
  float* const output = args.Output<float>();
  const PanelGrid grid(extent.positions());
  const int64_t positions = extent.positions();
  CpuStream::From(stream).ParallelRanges(CeilDiv(positions, kLanes), [&](int64_t, int64_t first, int64_t last) {
    for (int64_t position = first * kLanes; position < std::min(last * kLanes, positions); position += kLanes) {
      const int64_t panel = grid.PanelOf(position), begin = grid.Begin(panel);
      const Columns columns{input + begin * extent.channels, output + position * extent.channels, extent.channels,
                            grid.Width(panel)};
      SoftmaxToRows(columns, position - begin, std::min(kLanes, positions - position));
    }
  });
}

void SoftmaxPanels(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const float* const input = args.Input<float>(0);
  float* const output = args.Output<float>();
  const PanelGrid grid(extent.positions());
  CpuStream::From(stream).ParallelRanges(
      grid.padded_positions() / kPositionUnit, [&](int64_t, int64_t first, int64_t last) {
        for (int64_t unit = first; unit < last; ++unit) {
          const int64_t position = unit * kPositionUnit;
          const int64_t panel = grid.PanelOf(position);
          const int64_t begin = grid.Begin(panel);
          const int64_t offset = begin * extent.channels;
          const Columns columns{input + offset, output + offset, extent.channels, grid.Width(panel)};
          SoftmaxPositions(columns, position - begin, position - begin + kPositionUnit);
        }
      });
}

void SoftmaxNchw(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const int64_t image_floats = extent.channels * extent.plane();
  const float* const inputs = args.Input<float>(0);
  float* const outputs = args.Output<float>();
  CpuStream::From(stream).ParallelRanges(extent.batch, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t image = first; image < last; ++image) {
      const float* input = inputs + image * image_floats;
      float* output = outputs + image * image_floats;
      if (extent.plane() == 1) {
        SoftmaxRow(input, extent.channels, output);
      } else {
        SoftmaxPositions({input, output, extent.channels, extent.plane()}, 0, extent.plane());
      }
    }
  });
}

}  // namespace

void SoftmaxRow(const float* row, int64_t length, float* result) {
  const FloatTag d;
  const FloatVector least = hn::Set(d, -std::numeric_limits<float>::infinity());
  const int64_t whole = length / kLanes * kLanes;
  const int64_t rest = length - whole;
  FloatVector largest = rest == 0 ? least : LoadFirst(d, row + whole, rest, least);
  for (int64_t i = 0; i < whole; i += kLanes) largest = hn::Max(largest, hn::LoadU(d, row + i));
  largest = hn::MaxOfLanes(d, largest);
  FloatVector sum = hn::Zero(d);
  for (int64_t i = 0; i < whole; i += kLanes) {
    const FloatVector power = ExpOrNan(hn::Sub(hn::LoadU(d, row + i), largest));
    sum = hn::Add(sum, power);
    hn::StoreU(power, d, result + i);
  }
  if (rest != 0) {
    const FloatVector power = ExpOrNan(hn::Sub(LoadFirst(d, row + whole, rest, largest), largest));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(rest)), power));
    StoreFirst(power, d, result + whole, rest);
  }
  ScaleRow(result, length, hn::Div(hn::Set(d, 1), hn::SumOfLanes(d, sum)));
}

void Softmax(const KernelArgs& args, Stream& stream) {
  if (args.problem->from.layout == Layout::kNchw) return SoftmaxNchw(args, stream);
  args.problem->to.layout == Layout::kPanels ? SoftmaxPanels(args, stream) : SoftmaxPanelsToRows(args, stream);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsSoftmax(const Problem& problem) { return problem.epilogue == Epilogue{}; }

bool AcceptsSoftmaxToRows(const Problem& problem) { return AcceptsSoftmax(problem) && problem.input.plane() == 1; }

void SoftmaxRow(const float* row, int64_t length, float* result) {
  static const auto widest = Widest(N_AVX3::SoftmaxRow, N_AVX2::SoftmaxRow, N_EMU128::SoftmaxRow);
  widest(row, length, result);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
