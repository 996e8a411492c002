#include <vector>

#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/tokens/plane_tokens.h"
#include "kernels/format/transpose.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

// What is added to the tokens of a sequence: [channels][length] for kRows, [length][channels] for kNhwc.
class AddedVectors final : public PackedWeight {
 public:
  AddedVectors(DeviceArray<float> table, int64_t tokens) : length(tokens), values(std::move(table)) {}
  size_t bytes() const override { return values.bytes(); }

  const int64_t length;
  const DeviceArray<float> values;
};

struct Planes {
  const float* added;
  FastDivider by_length;
  int length, before;  // tokens of a sequence, and those of them that have no position
  int plane, rows;     // positions of a row, and rows of the batch
  int64_t tokens;

  // Where a token lies in its sequence.
  __device__ int PlaceOf(uint32_t token, uint32_t& row) const {
    row = token;
    return static_cast<int>(by_length.Split(row));
  }
  // The position, of the batch's, that a token has; none: below 0.
  __device__ int64_t PositionOf(uint32_t row, int place) const {
    return place < before || row >= static_cast<uint32_t>(rows) ? -1 : int64_t{row} * plane + place - before;
  }
};

// A thread for a pack of a token's channels.
template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads) AddToNhwc(const T* input, T* output, const __grid_constant__ Planes planes,
                                                      FastDivider per_token, int64_t packs_each) {
  LetNextStart();
  WaitForResults();
  const auto item = static_cast<uint32_t>(int64_t{blockIdx.x} * kThreads + threadIdx.x);
  uint32_t token = item;
  const int64_t channel = int64_t{per_token.Split(token)} * kPack;
  if (token >= planes.tokens) return;
  uint32_t row;
  const int place = planes.PlaceOf(token, row);
  const int64_t position = planes.PositionOf(row, place);
  const int64_t channels = packs_each * kPack;
  float sum[kPack], values[kPack];
  LoadPack<kPack>(planes.added + place * channels + channel, sum);
  if (position >= 0) {
    LoadPack<kPack>(input + position * channels + channel, values);
#pragma unroll
    for (int i = 0; i < kPack; ++i) sum[i] += values[i];
  }
  StorePack<kPack>(sum, output + int64_t{item} * kPack);
}

// A thread for a token of some channels, each a row of the two strides' elements.
template <typename T>
__global__ void __launch_bounds__(kThreads) AddToRows(const T* input, T* output, const __grid_constant__ Planes planes,
                                                      int channels, int64_t from_stride, int64_t to_stride) {
  LetNextStart();
  WaitForResults();
  const int64_t token = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (token >= planes.tokens) return;
  uint32_t row;
  const int place = planes.PlaceOf(static_cast<uint32_t>(token), row);
  const int64_t position = planes.PositionOf(row, place);
#pragma unroll 4
  for (int channel = blockIdx.y; channel < channels; channel += gridDim.y) {
    float sum = planes.added[int64_t{channel} * planes.length + place];
    if (position >= 0) sum += ToFloat(input[channel * from_stride + position]);
    output[channel * to_stride + token] = FromFloat<T>(sum);
  }
}

}  // namespace

bool AcceptsPlaneTokens(const Problem& problem) { return CountsFit(problem); }

template <Layout kLayout>
StatusOr<std::unique_ptr<PackedWeight>> PreparePlaneTokens(const Weight& weight, const Problem&) {
  DenseMatrix matrix = weight.ToDense();
  if constexpr (kLayout == Layout::kRows) matrix.values = Transposed(matrix.values, matrix.rows, matrix.cols);
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<float>::Upload(matrix.values));
  return std::make_unique<AddedVectors>(std::move(uploaded), matrix.rows);
}

template <Layout kLayout, DType kDType>
void PlaneTokens(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Problem& problem = *args.problem;
  const auto& table = static_cast<const AddedVectors&>(*args.weight);
  const int64_t tokens = problem.output.batch, channels = problem.output.channels, plane = problem.input.plane();
  const Planes planes{table.values.data(),
                      FastDivider(table.length),
                      static_cast<int>(table.length),
                      static_cast<int>(table.length - plane),
                      static_cast<int>(plane),
                      static_cast<int>(problem.input.batch),
                      tokens};
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  const cudaStream_t queue = QueueOf(stream);
  if constexpr (kLayout == Layout::kRows) {
    constexpr int kChannelsEach = 8;
    const LaunchGrid grid(CeilDiv(tokens, int64_t{kThreads}), CeilDiv(channels, int64_t{kChannelsEach}));
    LaunchDependent(AddToRows<T>, grid, kThreads, 0, queue, input, output, planes, static_cast<int>(channels),
                    RowStride(problem.input.positions()), RowStride(tokens));
  } else {
    constexpr int kWide = 16 / sizeof(T);
    const int pack = channels % kWide == 0 ? kWide : 1;
    const int64_t packs_each = channels / pack;
    auto* const kernel = pack == 1 ? AddToNhwc<1, T> : AddToNhwc<kWide, T>;
    LaunchDependent(kernel, LaunchGrid::OfThreads(tokens * packs_each, kThreads), kThreads, 0, queue, input, output,
                    planes, FastDivider(packs_each), packs_each);
  }
}

SWIZZLE_INSTANTIATE(PlaneTokens);

template StatusOr<std::unique_ptr<PackedWeight>> PreparePlaneTokens<Layout::kRows>(const Weight&, const Problem&);
template StatusOr<std::unique_ptr<PackedWeight>> PreparePlaneTokens<Layout::kNhwc>(const Weight&, const Problem&);

}  // namespace swizzle::cuda
