#include "kernels/cuda/elementwise/channels.h"
#include "kernels/cuda/runtime/byte_element.cuh"
#include "kernels/cuda/runtime/instantiate.h"

namespace swizzle::cuda {
namespace {

// `rows` runs of `length` elements, each `pitch` elements behind the one before.
template <typename T>
struct Runs {
  int64_t rows, length;
  const T* from;
  int64_t from_pitch;
  T* to;
  int64_t to_pitch;
};

template <typename T>
void Copy(const Runs<T>& runs, Stream& stream) {
  constexpr size_t kBytes = sizeof(T);
  if (runs.from == runs.to) return;
  if (runs.rows == 1) {  // pitches of more than 2^31 bytes are refused
    cudaMemcpyAsync(runs.to, runs.from, runs.length * kBytes, cudaMemcpyDeviceToDevice, QueueOf(stream));
    return;
  }
  cudaMemcpy2DAsync(runs.to, runs.to_pitch * kBytes, runs.from, runs.from_pitch * kBytes, runs.length * kBytes,
                    runs.rows, cudaMemcpyDeviceToDevice, QueueOf(stream));
}

// Elements of a channel in layouts in which all of a batch lie together, and else 1.
int64_t ChannelElements(const Extent& extent, Layout layout) {
  if (layout == Layout::kRows) return RowStride(extent.positions());
  return layout == Layout::kBatched ? RowStride(BatchedPositions(extent)) : 1;
}

}  // namespace

bool ConcatsChannels(const Problem& problem) { return !problem.parts().of_planes; }

bool AcceptsConcat(const Problem& problem) { return ConcatsChannels(problem) || problem.to.layout == Layout::kNhwc; }

template <Layout kLayout, DType kDType>
void RunConcat(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Extent& output = args.problem->output;
  const ConcatParts& parts = args.problem->parts();
  // Of what the parts are of: how much stands side by side for each channel or position, and how often.
  const int64_t unit = parts.of_planes ? output.channels : ChannelElements(output, kLayout);
  const int64_t rows = parts.of_planes ? output.batch : kLayout == Layout::kNhwc ? output.positions() : 1;
  const int64_t pitch = (parts.of_planes ? output.plane() : args.output.PitchOr(output.channels)) * unit;
  T* to = args.Output<T>();
  for (int i = 0; i < parts.count; ++i) {
    const int64_t length = parts.sizes[i] * unit;
    Copy<T>({rows, length, args.Input<T>(i), args.inputs[i].PitchOr(length), to, pitch}, stream);
    to += length;
  }
}

template <Layout kLayout, DType kDType>
void RunSlice(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Problem& problem = *args.problem;
  const int64_t unit = ChannelElements(problem.output, kLayout);
  const int64_t length = problem.output.channels * unit;
  Copy<T>({kLayout == Layout::kNhwc ? problem.output.positions() : 1, length,
           args.Input<T>(0) + problem.channel_range().first * unit,
           args.inputs[0].PitchOr(problem.input.channels) * unit, args.Output<T>(), args.output.PitchOr(length)},
          stream);
}

SWIZZLE_INSTANTIATE(RunConcat);
SWIZZLE_INSTANTIATE(RunSlice);
SWIZZLE_INSTANTIATE_HALF_TYPES(RunConcat, Layout::kBatched);
SWIZZLE_INSTANTIATE_HALF_TYPES(RunSlice, Layout::kBatched);
SWIZZLE_INSTANTIATE_OF_BYTES(RunConcat);
SWIZZLE_INSTANTIATE_OF_BYTES(RunSlice);

}  // namespace swizzle::cuda
