#include "kernels/cpu/layout/convert.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/integers.h"
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/bfloat16.h"
#include "kernels/cpu/simd/transpose.h"

namespace swizzle::cpu {
namespace {

void CopyRows(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * to_stride, from + r * from_stride, columns * sizeof(float));
}

void CopySlab(const Slab& from, const float* input, const Slab& to, float* output, int64_t channels,
              int64_t positions) {
  input += from.offset;
  output += to.offset;
  if (from.position_stride == 1 && to.position_stride == 1) {
    CopyRows(input, from.channel_stride, output, to.channel_stride, channels, positions);
  } else if (from.channel_stride == 1 && to.channel_stride == 1) {
    CopyRows(input, from.position_stride, output, to.position_stride, positions, channels);
  } else if (from.position_stride == 1) {
    Transpose(input, from.channel_stride, output, to.position_stride, channels, positions);
  } else {
    Transpose(input, from.position_stride, output, to.channel_stride, positions, channels);
  }
}

void ZeroPaddingChannels(const Slab& slab, float* output, int64_t channels, int64_t positions) {
  for (int64_t p = 0; p < positions; ++p) {
    float* block = output + slab.offset + p * slab.position_stride;
    std::fill(block + channels, block + kBlockChannels, 0.0f);
  }
}

// Some channels and positions of a slab of bfloat16, as floats: the positions of a channel are neighbours in panels. A
// slab of a panel has kMaxPanelWidth positions at most.
class WidenedSlab {
 public:
  explicit WidenedSlab(int64_t positions) : slab_{0, kMaxPanelWidth, 1, positions} {}
  const Slab& slab() const { return slab_; }
  float* values() { return values_; }

  void Load(const Slab& from, const Bfloat16* input, int64_t channels) {
    input += from.offset;
    for (int64_t c = 0; c < channels; ++c) {
      Widen(input + c * from.channel_stride, slab_.positions, values_ + c * kMaxPanelWidth);
    }
  }
  void Store(const Slab& to, Bfloat16* output, int64_t channels) const {
    output += to.offset;
    for (int64_t c = 0; c < channels; ++c) {
      Round(values_ + c * kMaxPanelWidth, slab_.positions, output + c * to.channel_stride);
    }
  }

 private:
  const Slab slab_;
  alignas(kBufferAlignment) float values_[kBlockChannels * kMaxPanelWidth];
};

// Positions [position, end) of up to 16 channels from `channel` on.
void ConvertBlock(const KernelArgs& args, int64_t position, int64_t end, int64_t channel) {
  const Problem& problem = *args.problem;
  const int64_t channels = std::min(kBlockChannels, problem.input.channels - channel);
  while (position < end) {
    const Slab from = SlabAt(problem.input, problem.from.layout, position, channel);
    const Slab to = SlabAt(problem.input, problem.to.layout, position, channel);
    const int64_t positions = std::min({from.positions, to.positions, end - position});
    if (IsBfloat16(problem.from)) {
      WidenedSlab widened(positions);
      widened.Load(from, args.Input<Bfloat16>(0), channels);
      CopySlab(widened.slab(), widened.values(), to, args.Output<float>(), channels, positions);
    } else if (IsBfloat16(problem.to)) {
      WidenedSlab widened(positions);
      CopySlab(from, args.Input<float>(0), widened.slab(), widened.values(), channels, positions);
      widened.Store(to, args.Output<Bfloat16>(), channels);
    } else {
      CopySlab(from, args.Input<float>(0), to, args.Output<float>(), channels, positions);
    }
    if (problem.to.layout == Layout::kBlocked16) ZeroPaddingChannels(to, args.Output<float>(), channels, positions);
    position += positions;
  }
}

}  // namespace

bool AcceptsConvert(const Problem& problem) { return problem.epilogue == Epilogue{}; }

void Convert(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const int64_t piece = extent.plane() == 1 ? kMaxPanelWidth : extent.plane();
  const int64_t blocks = CeilDiv(extent.channels, kBlockChannels);
  const int64_t pieces = CeilDiv(extent.positions(), piece);
  CpuStream::From(stream).ParallelRanges(pieces * blocks, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t position = item / blocks * piece;
      ConvertBlock(args, position, std::min(position + piece, extent.positions()), item % blocks * kBlockChannels);
    }
  });
}

void TransposeNchw(const KernelArgs& args, Stream& stream) {
  constexpr int64_t kRows = 64;
  const Extent& extent = args.problem->input;
  const int64_t rows = extent.channels, columns = extent.plane();
  const int64_t pieces = CeilDiv(rows, kRows);
  const float* const input = args.Input<float>(0);
  float* const output = args.Output<float>();
  CpuStream::From(stream).ParallelRanges(extent.batch * pieces, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / pieces * rows * columns;
      const int64_t row = item % pieces * kRows;
      Transpose(input + image + row * columns, columns, output + image + row, rows, std::min(kRows, rows - row),
                columns);
    }
  });
}

}  // namespace swizzle::cpu
