#include "kernels/cuda/elementwise/softmax.h"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/tokens/columns.cuh"

namespace swizzle::cuda {
namespace {

// Where (channel, position) lies; in elements.
struct Strides {
  int64_t channel, position;
};

template <typename Columns, typename T>
__global__ void __launch_bounds__(kColumnThreads)
    SoftmaxColumns(const T* input, T* output, Strides strides, int64_t positions, int channels) {
  Columns columns;
  const bool inside = columns.position() < positions;
  const int64_t offset = columns.position() * strides.position;
  const int end = inside ? channels : 0;
  const T* from = input + offset;
  float largest = JoinMax::kStart;
  for (int c = columns.first_channel(); c < end; c += Columns::kParts) {
    largest = fmaxf(largest, ToFloat(from[c * strides.channel]));
  }
  largest = columns.Reduce(largest, JoinMax());
  float sum = 0;
  for (int c = columns.first_channel(); c < end; c += Columns::kParts) {
    sum += expf(ToFloat(from[c * strides.channel]) - largest);
  }
  const float scale = 1 / columns.Reduce(sum, JoinSum());
  for (int c = columns.first_channel(); c < end; c += Columns::kParts) {
    const int64_t at = c * strides.channel;
    output[offset + at] = FromFloat<T>(expf(ToFloat(from[at]) - largest) * scale);
  }
}

}  // namespace

bool AcceptsSoftmax(const Problem& problem) { return problem.epilogue == Epilogue{}; }

template <Layout kLayout, DType kDType>
void Softmax(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Extent& extent = args.problem->input;
  const int64_t positions = extent.positions();
  const auto run = [&](auto* kernel, int64_t threads_each, Strides strides) {
    kernel<<<LaunchGrid::OfThreads(positions * threads_each, kColumnThreads), kColumnThreads, 0, QueueOf(stream)>>>(
        args.Input<T>(0), args.Output<T>(), strides, positions, static_cast<int>(extent.channels));
  };
  if constexpr (kLayout == Layout::kNhwc) {
    run(SoftmaxColumns<NhwcColumn, T>, NhwcColumn::kParts, {1, extent.channels});
  } else if (positions < kNarrowPositions) {
    using Columns = RowColumns<kNarrowWidth>;
    run(SoftmaxColumns<Columns, T>, Columns::kParts, {RowStride(positions), 1});
  } else {
    using Columns = RowColumns<kWideWidth>;
    run(SoftmaxColumns<Columns, T>, Columns::kParts, {RowStride(positions), 1});
  }
}

SWIZZLE_INSTANTIATE(Softmax);

}  // namespace swizzle::cuda
