#include "kernels/cpu/int8/convert_bytes.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/integers.h"
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/transpose_bytes.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {
namespace {

// Whatever the operand is, rows of a block's channels go by way of one of these.
struct Block {
  static constexpr int64_t kElements = kBlockChannels * kMaxPanelWidth;
  alignas(kBufferAlignment) float reals[kElements];
  alignas(kBufferAlignment) uint8_t bytes[kElements];
};

// Whether a slab's channels are neighbours, and so many that it goes in blocks of TransposeBytes.
bool GoesInBlocks(const Slab& slab, int64_t channels) {
  static_assert(kBlockChannels == kTransposedBytes);
  return slab.channel_stride == 1 && channels == kBlockChannels;
}

template <typename T>
void LoadRows(const Slab& slab, const T* from, int64_t channels, int64_t positions, T* rows) {
  from += slab.offset;
  int64_t begin = 0;
  if constexpr (sizeof(T) == 1) {
    for (; GoesInBlocks(slab, channels) && begin + kTransposedBytes <= positions; begin += kTransposedBytes) {
      TransposeBytes(from + begin * slab.position_stride, slab.position_stride, rows + begin, kMaxPanelWidth);
    }
  }
  for (int64_t c = 0; c < channels; ++c, from += slab.channel_stride, rows += kMaxPanelWidth) {
    if (slab.position_stride == 1) {
      std::memcpy(rows, from, positions * sizeof(T));
    } else {
      for (int64_t p = begin; p < positions; ++p) rows[p] = from[p * slab.position_stride];
    }
  }
}

template <typename T>
void StoreRows(const T* rows, const Slab& slab, T* to, int64_t channels, int64_t positions) {
  to += slab.offset;
  int64_t begin = 0;
  if constexpr (sizeof(T) == 1) {
    for (; GoesInBlocks(slab, channels) && begin + kTransposedBytes <= positions; begin += kTransposedBytes) {
      TransposeBytes(rows + begin, kMaxPanelWidth, to + begin * slab.position_stride, slab.position_stride);
    }
  }
  for (int64_t c = 0; c < channels; ++c, to += slab.channel_stride, rows += kMaxPanelWidth) {
    if (slab.position_stride == 1) {
      std::memcpy(to, rows, positions * sizeof(T));
    } else {
      for (int64_t p = begin; p < positions; ++p) to[p * slab.position_stride] = rows[p];
    }
  }
}

void ZeroPaddingChannels(const Slab& slab, float* output, int64_t channels, int64_t positions) {
  for (int64_t p = 0; p < positions; ++p) {
    float* const block = output + slab.offset + p * slab.position_stride;
    std::fill(block + channels, block + kBlockChannels, 0.0f);
  }
}

// To the clamp, where there is one.
void Hold(const Problem& problem, int64_t count, uint8_t* bytes) {
  if (!problem.epilogue.Clamps()) return;
  const OutputSteps steps = StepsOf(problem);
  if (steps.low == 0 && steps.high == 255) return;
  const auto low = static_cast<uint8_t>(steps.low), high = static_cast<uint8_t>(steps.high);
  for (int64_t i = 0; i < count; ++i) bytes[i] = std::clamp(bytes[i], low, high);
}

// Positions of up to kBlockChannels channels, as far as both slabs reach. Rows of the block are kMaxPanelWidth apart.
void ConvertSlab(const KernelArgs& args, const ByteCells& cells, const Slab& from, const Slab& to, int64_t channels,
                 int64_t positions, Block& block) {
  const Problem& problem = *args.problem;
  const bool reads_bytes = problem.from.dtype == DType::kUint8, writes_bytes = problem.to.dtype == DType::kUint8;
  const int64_t count = (channels - 1) * kMaxPanelWidth + positions;
  if (reads_bytes) {
    LoadRows(from, args.Input<uint8_t>(0), channels, positions, block.bytes);
  } else {
    LoadRows(from, args.Input<float>(0), channels, positions, block.reals);
  }
  if (!reads_bytes) cells.quantise(block.reals, count, *problem.epilogue.requantise, block.bytes);
  if (!reads_bytes) Hold(problem, count, block.bytes);
  if (writes_bytes) return StoreRows(block.bytes, to, args.Output<uint8_t>(), channels, positions);
  cells.dequantise(block.bytes, count, problem.inputs_as[0], block.reals);
  StoreRows(block.reals, to, args.Output<float>(), channels, positions);
  if (problem.to.layout == Layout::kBlocked16) ZeroPaddingChannels(to, args.Output<float>(), channels, positions);
}

// Both operands have the elements in the same order.
void ConvertInOrder(const KernelArgs& args, const ByteCells& cells, Stream& stream) {
  const Problem& problem = *args.problem;
  const auto run = [&](int64_t, int64_t begin, int64_t end) {
    if (problem.to.dtype == DType::kUint8) {
      uint8_t* const to = args.Output<uint8_t>() + begin;
      cells.quantise(args.Input<float>(0) + begin, end - begin, *problem.epilogue.requantise, to);
      Hold(problem, end - begin, to);
    } else {
      cells.dequantise(args.Input<uint8_t>(0) + begin, end - begin, problem.inputs_as[0], args.Output<float>() + begin);
    }
  };
  CpuStream::From(stream).ParallelRanges(LayoutElements(problem.input, Layout::kNchw), run, int64_t{2} << 10);
}

}  // namespace

bool AcceptsConvertBytes(const Problem& problem) {
  const auto known = [](Storage storage, const Quantised& as) {
    return storage.dtype == DType::kFloat32 || as.dtype == storage.dtype;
  };
  Epilogue plain;
  plain.requantise = problem.epilogue.requantise;
  const Quantised output = problem.epilogue.requantise.value_or(Quantised());
  if (problem.epilogue != plain || !known(problem.from, problem.inputs_as[0]) || !known(problem.to, output)) {
    return false;
  }
  // Between layouts of bytes none is computed anew.
  return problem.from.dtype != problem.to.dtype || problem.inputs_as[0] == output;
}

bool AcceptsRoundToBytes(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  return problem.inputs_as[0].dtype == DType::kFloat32 && WritesBytes(problem, problem.to.layout) &&
         !epilogue.function && !epilogue.residual;
}

template <const ByteCells& kCells>
void ConvertBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  if (problem.from.layout == problem.to.layout) return ConvertInOrder(args, kCells, stream);
  const Extent& extent = problem.input;
  const int64_t blocks = CeilDiv(extent.channels, kBlockChannels);
  const int64_t pieces = FullPanels(extent.positions());
  CpuStream::From(stream).ParallelRanges(pieces * blocks, [&](int64_t, int64_t begin, int64_t end) {
    Block block = {};
    for (int64_t item = begin; item < end; ++item) {
      const int64_t channel = item % blocks * kBlockChannels;
      const int64_t channels = std::min(kBlockChannels, extent.channels - channel);
      const int64_t last = std::min((item / blocks + 1) * kMaxPanelWidth, extent.positions());
      for (int64_t position = item / blocks * kMaxPanelWidth, count; position < last; position += count) {
        const Slab from = SlabAt(extent, problem.from.layout, position, channel);
        const Slab to = SlabAt(extent, problem.to.layout, position, channel);
        count = std::min({from.positions, to.positions, last - position});
        ConvertSlab(args, kCells, from, to, channels, count, block);
      }
    }
  });
}

template void ConvertBytes<vnni::kByteCells>(const KernelArgs&, Stream&);
template void ConvertBytes<N_AVX3::kByteCells>(const KernelArgs&, Stream&);
template void ConvertBytes<N_AVX2::kByteCells>(const KernelArgs&, Stream&);
template void ConvertBytes<N_EMU128::kByteCells>(const KernelArgs&, Stream&);

}  // namespace swizzle::cpu
