#include <vector>

#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/tokens/permute_tokens.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

// The place in its sequence that a token's values come from, by its own.
class PlaceTable final : public PackedWeight {
 public:
  explicit PlaceTable(DeviceArray<int32_t> table) : places(std::move(table)) {}
  size_t bytes() const override { return places.bytes(); }

  const DeviceArray<int32_t> places;
};

struct Places {
  const int32_t* table;
  const int32_t* positions;
  int64_t length, tokens;

  // The token, of the batch's, that `token` takes its values from.
  __device__ int64_t SourceOf(int64_t token) const {
    const int64_t position = positions[token];
    const int64_t source = token - position + table[min(max(position, int64_t{0}), length - 1)];
    return min(max(source, int64_t{0}), tokens - 1);
  }
};

// A thread for a pack of a token's channels.
template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    PermuteNhwc(const T* input, T* output, const __grid_constant__ Places places, FastDivider per_token,
                int64_t packs_each) {
  LetNextStart();
  WaitForResults();
  const auto item = static_cast<uint32_t>(int64_t{blockIdx.x} * kThreads + threadIdx.x);
  uint32_t token = item;
  const uint32_t pack = per_token.Split(token);
  if (token >= places.tokens) return;
  using P = Pack<T, kPack>;
  reinterpret_cast<P*>(output)[item] = reinterpret_cast<const P*>(input)[places.SourceOf(token) * packs_each + pack];
}

// A thread for a token of some channels, each a row of `stride` elements.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    PermuteRows(const T* input, T* output, const __grid_constant__ Places places, int channels, int64_t stride) {
  LetNextStart();
  WaitForResults();
  const int64_t token = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (token >= places.tokens) return;
  const int64_t source = places.SourceOf(token);
#pragma unroll 4
  for (int channel = blockIdx.y; channel < channels; channel += gridDim.y) {
    output[channel * stride + token] = input[channel * stride + source];
  }
}

}  // namespace

bool AcceptsPermuteTokens(const Problem& problem) { return CountsFit(problem); }

StatusOr<std::unique_ptr<PackedWeight>> PreparePermuteTokens(const Weight& weight, const Problem&) {
  const DenseMatrix matrix = weight.ToDense();
  const std::vector<int32_t> places(matrix.values.begin(), matrix.values.end());
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<int32_t>::Upload(places));
  return std::make_unique<PlaceTable>(std::move(uploaded));
}

template <Layout kLayout, DType kDType>
void PermuteTokens(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const auto& table = static_cast<const PlaceTable&>(*args.weight);
  const int64_t tokens = args.problem->input.batch, channels = args.problem->input.channels;
  const Places places{table.places.data(), args.sequences->positions.data(), static_cast<int64_t>(table.places.size()),
                      tokens};
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  const cudaStream_t queue = QueueOf(stream);
  if constexpr (kLayout == Layout::kRows) {
    constexpr int kChannelsEach = 8;
    const LaunchGrid grid(CeilDiv(tokens, int64_t{kThreads}), CeilDiv(channels, int64_t{kChannelsEach}));
    LaunchDependent(PermuteRows<T>, grid, kThreads, 0, queue, input, output, places, static_cast<int>(channels),
                    RowStride(tokens));
  } else {
    constexpr int kWide = 16 / sizeof(T);
    const int pack = channels % kWide == 0 ? kWide : 1;
    const int64_t packs_each = channels / pack;
    auto* const kernel = pack == 1 ? PermuteNhwc<1, T> : PermuteNhwc<kWide, T>;
    LaunchDependent(kernel, LaunchGrid::OfThreads(tokens * packs_each, kThreads), kThreads, 0, queue, input, output,
                    places, FastDivider(packs_each), packs_each);
  }
}

SWIZZLE_INSTANTIATE(PermuteTokens);

}  // namespace swizzle::cuda
