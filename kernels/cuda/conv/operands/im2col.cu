#include <algorithm>

#include "kernels/cuda/conv/operands/im2col.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kMostChannelBlocks = 1024;
constexpr int64_t kMostLines = 4096;

struct Gather {
  int channels, height, width, out_height, out_width;
  int64_t positions;   // of the output
  int64_t row_stride;  // of the input; in kNhwc from one position to the next
  Window window;
};

// A thread takes one output position and every gridDim.y-th channel. Only moves bits: T is as wide as an element.
template <typename T>
__global__ void GatherTaps(Gather gather, const T* input, int64_t begin, int64_t count, T* columns) {
  const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= count) return;
  const int64_t position = min(begin + at, gather.positions - 1);
  const int64_t image = position / (gather.out_height * gather.out_width);
  const int in_plane = static_cast<int>(position - image * gather.out_height * gather.out_width);
  const int out_y = in_plane / gather.out_width, out_x = in_plane - out_y * gather.out_width;
  const Window& window = gather.window;
  const int top = out_y * window.stride_h - window.pad_top, left = out_x * window.stride_w - window.pad_left;
  const int taps = window.kernel_h * window.kernel_w;
  for (int channel = blockIdx.y; channel < gather.channels; channel += gridDim.y) {
    const T* const plane = input + channel * gather.row_stride + image * gather.height * gather.width;
    T* to = columns + int64_t{channel} * taps * count + at;
    for (int i = 0; i < window.kernel_h; ++i) {
      const int y = top + i * window.dilation_h;
      for (int j = 0; j < window.kernel_w; ++j, to += count) {
        const int x = left + j * window.dilation_w;
        const bool inside = y >= 0 && y < gather.height && x >= 0 && x < gather.width;
        *to = inside ? plane[y * gather.width + x] : T{0};
      }
    }
  }
}

// A thread takes one pack of channels at one tap, and every gridDim.y-th line of blockDim.y positions. T is a pack.
template <typename T>
__global__ void GatherPacks(Gather gather, const T* input, int64_t begin, int64_t count, T* columns) {
  const int across = blockIdx.x * blockDim.x + threadIdx.x;  // gather.channels and row_stride count packs
  const Window& window = gather.window;
  const int packs = gather.channels * window.kernel_h * window.kernel_w;
  if (across >= packs) return;
  const int tap = across / gather.channels, channel = across - tap * gather.channels;
  const int i = tap / window.kernel_w, j = tap - i * window.kernel_w;
  for (int64_t at = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; at < count; at += int64_t{gridDim.y} * blockDim.y) {
    const int64_t position = begin + at, image = position / (gather.out_height * gather.out_width);
    const int in_plane = static_cast<int>(position - image * gather.out_height * gather.out_width);
    const int out_y = in_plane / gather.out_width, out_x = in_plane - out_y * gather.out_width;
    const int y = out_y * window.stride_h - window.pad_top + i * window.dilation_h;
    const int x = out_x * window.stride_w - window.pad_left + j * window.dilation_w;
    const bool inside = y >= 0 && y < gather.height && x >= 0 && x < gather.width;
    const int64_t from = ((image * gather.height + y) * gather.width + x) * gather.row_stride + channel;
    columns[at * packs + across] = inside ? input[from] : T{};
  }
}

Gather GatherOf(const Problem& problem) {
  const Extent &in = problem.input, &out = problem.output;
  return {static_cast<int>(in.channels), static_cast<int>(in.height),
          static_cast<int>(in.width),    static_cast<int>(out.height),
          static_cast<int>(out.width),   out.positions(),
          RowStride(in.positions()),     problem.window()};
}

template <typename T>
void GatherPacksAs(const Problem& problem, const Operand& input, const ColumnBlock& block, Stream& stream) {
  Gather gather = GatherOf(problem);
  const auto packs_of = [&](int64_t elements) { return elements * ElementBytes(problem.to.dtype) / sizeof(T); };
  gather.channels = static_cast<int>(packs_of(problem.input.channels));
  gather.row_stride = static_cast<int64_t>(packs_of(input.PitchOr(problem.input.channels)));
  const int packs = gather.channels * problem.window().taps();
  const dim3 threads(32, kThreads / 32);
  const LaunchGrid grid(CeilDiv(packs, threads.x), std::min(CeilDiv(block.count, threads.y), kMostLines));
  GatherPacks<T><<<grid, threads, 0, QueueOf(stream)>>>(gather, static_cast<const T*>(input.data), block.begin,
                                                        block.count, static_cast<T*>(block.columns));
}

template <typename T>
void GatherAs(const Problem& problem, const Operand& input, const ColumnBlock& block, Stream& stream) {
  const LaunchGrid grid(CeilDiv(block.count, kThreads), std::min(problem.input.channels, kMostChannelBlocks));
  GatherTaps<T><<<grid, kThreads, 0, QueueOf(stream)>>>(GatherOf(problem), static_cast<const T*>(input.data),
                                                        block.begin, block.count, static_cast<T*>(block.columns));
}

}  // namespace

void GatherColumns(const Problem& problem, const Operand& input, const ColumnBlock& block, Stream& stream) {
  if (ElementBytes(problem.to.dtype) == 2) return GatherAs<uint16_t>(problem, input, block, stream);
  return GatherAs<uint32_t>(problem, input, block, stream);
}

void GatherColumnsNhwc(const Problem& problem, const Operand& input, const ColumnBlock& block, Stream& stream) {
  if (problem.input.channels * ElementBytes(problem.to.dtype) % sizeof(uint4) == 0) {
    return GatherPacksAs<uint4>(problem, input, block, stream);
  }
  if (ElementBytes(problem.to.dtype) == 2) return GatherPacksAs<uint16_t>(problem, input, block, stream);
  return GatherPacksAs<uint32_t>(problem, input, block, stream);
}

const void* AllColumns(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  if (problem.window().IsPointwise()) return args.inputs[0].data;
  void* const columns = args.workspace.data();
  GatherColumns(problem, args.inputs[0], {0, RowStride(problem.output.positions()), columns}, stream);
  return columns;
}

}  // namespace swizzle::cuda
