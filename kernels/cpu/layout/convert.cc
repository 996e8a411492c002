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
template <Layout kFrom, Layout kTo>
void ConvertBlock(const KernelArgs& args, int64_t position, int64_t end, int64_t channel) {
  const Extent& extent = args.problem->input;
  const int64_t channels = std::min(kBlockChannels, extent.channels - channel);
  while (position < end) {
    const Slab from = SlabAt(extent, kFrom, position, channel);
    const Slab to = SlabAt(extent, kTo, position, channel);
    const int64_t positions = std::min({from.positions, to.positions, end - position});
    if (IsBfloat16(*args.problem, kFrom)) {
      WidenedSlab widened(positions);
      widened.Load(from, InputAs<Bfloat16>(args, 0), channels);
      CopySlab(widened.slab(), widened.values(), to, args.output, channels, positions);
    } else if (IsBfloat16(*args.problem, kTo)) {
      WidenedSlab widened(positions);
      CopySlab(from, args.inputs[0], widened.slab(), widened.values(), channels, positions);
      widened.Store(to, OutputAs<Bfloat16>(args), channels);
    } else {
      CopySlab(from, args.inputs[0], to, args.output, channels, positions);
    }
    if (kTo == Layout::kBlocked16) ZeroPaddingChannels(to, args.output, channels, positions);
    position += positions;
  }
}

}  // namespace

bool AcceptsConvert(const Problem& problem) { return problem.epilogue == Epilogue{}; }

template <Layout kFrom, Layout kTo>
void Convert(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const int64_t piece = extent.plane() == 1 ? kMaxPanelWidth : extent.plane();
  const int64_t blocks = CeilDiv(extent.channels, kBlockChannels);
  const int64_t pieces = CeilDiv(extent.positions(), piece);
  CpuStream::From(stream).ParallelRanges(pieces * blocks, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t position = item / blocks * piece;
      ConvertBlock<kFrom, kTo>(args, position, std::min(position + piece, extent.positions()),
                               item % blocks * kBlockChannels);
    }
  });
}

void TransposeNchw(const KernelArgs& args, Stream& stream) {
  constexpr int64_t kRows = 64;
  const Extent& extent = args.problem->input;
  const int64_t rows = extent.channels, columns = extent.plane();
  const int64_t pieces = CeilDiv(rows, kRows);
  CpuStream::From(stream).ParallelRanges(extent.batch * pieces, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / pieces * rows * columns;
      const int64_t row = item % pieces * kRows;
      Transpose(args.inputs[0] + image + row * columns, columns, args.output + image + row, rows,
                std::min(kRows, rows - row), columns);
    }
  });
}

template void Convert<Layout::kNchw, Layout::kPanels>(const KernelArgs&, Stream&);
template void Convert<Layout::kNchw, Layout::kBlocked16>(const KernelArgs&, Stream&);
template void Convert<Layout::kPanels, Layout::kNchw>(const KernelArgs&, Stream&);
template void Convert<Layout::kPanels, Layout::kBlocked16>(const KernelArgs&, Stream&);
template void Convert<Layout::kBlocked16, Layout::kNchw>(const KernelArgs&, Stream&);
template void Convert<Layout::kBlocked16, Layout::kPanels>(const KernelArgs&, Stream&);

}  // namespace swizzle::cpu
