#include <vector>

#include "kernels/base/half_bits.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/tokens/embedding.h"

namespace swizzle::cuda {
namespace {

constexpr int kTile = 64;  // tokens and channels of kRows
constexpr int kThreads = 256;

// [rows][channels].
template <typename T>
class EmbeddingTable final : public PackedWeight {
 public:
  EmbeddingTable(DeviceArray<T> table, int64_t table_rows) : rows(table_rows), values(std::move(table)) {}
  size_t bytes() const override { return values.bytes(); }

  const int64_t rows;
  const DeviceArray<T> values;
};

// A token's row is indices[token] + offset.
struct Rows {
  const int32_t* indices;
  int64_t offset;
  int64_t count;
  __device__ int64_t Of(int64_t token) const {
    const int64_t row = indices[token] + offset;
    return row < 0 ? 0 : row >= count ? count - 1 : row;
  }
};

// A block for 64 tokens by 64 channels at a time, turned in shared memory, so that a warp reads and writes runs of 128
// bytes (of halves). kPack channels are read at once; tokens are written 16 bytes at once, a row's spare ones with
// them.
template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    EmbedRows(const T* table, Rows rows, T* output, int tokens, int channels, int64_t row_stride) {
  constexpr int kWritten = 16 / sizeof(T), kPacks = kTile / kPack, kWrites = kTile / kWritten;
  constexpr int kPadding = 4 / sizeof(T);      // packs of neighbouring channels begin in other banks
  __shared__ T tile[kTile][kTile + kPadding];  // [channel][token]
  LetNextStart();
  WaitForResults();
  const int first_token = blockIdx.x * kTile;
  for (int first_channel = blockIdx.y * kTile; first_channel < channels; first_channel += gridDim.y * kTile) {
#pragma unroll
    for (int i = threadIdx.x; i < kTile * kPacks; i += kThreads) {
      const int token = i / kPacks, channel = i % kPacks * kPack;
      if (first_token + token >= tokens || first_channel + channel >= channels) continue;
      const T* const from = table + rows.Of(first_token + token) * channels + first_channel + channel;
      const auto pack = *reinterpret_cast<const Pack<T, kPack>*>(from);
#pragma unroll
      for (int j = 0; j < kPack; ++j) tile[channel + j][token] = pack.values[j];
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.x; i < kTile * kWrites; i += kThreads) {
      const int channel = i / kWrites, token = i % kWrites * kWritten;
      if (first_token + token >= row_stride || first_channel + channel >= channels) continue;
      Pack<T, kWritten> pack;
#pragma unroll
      for (int j = 0; j < kWritten; ++j) pack.values[j] = tile[channel][token + j];
      T* const to = output + (first_channel + channel) * row_stride + first_token + token;
      *reinterpret_cast<Pack<T, kWritten>*>(to) = pack;
    }
    __syncthreads();
  }
}

template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    EmbedNhwc(const T* table, Rows rows, T* output, int64_t packs, int packs_each) {
  LetNextStart();
  WaitForResults();
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (item >= packs) return;
  const int64_t token = item / packs_each, pack = item % packs_each;
  using P = Pack<T, kPack>;
  reinterpret_cast<P*>(output)[item] = reinterpret_cast<const P*>(table)[rows.Of(token) * packs_each + pack];
}

}  // namespace

template <Layout kLayout, DType kDType>
StatusOr<std::unique_ptr<PackedWeight>> PrepareEmbedding(const Weight& weight, const Problem&) {
  using T = Element<kDType>;
  DenseMatrix matrix = weight.ToDense();
  std::vector<T> values;
  if constexpr (kDType == DType::kFloat32) {
    values = std::move(matrix.values);
  } else {
    values.resize(matrix.values.size());
    StoreHalves(matrix.values, kDType, std::as_writable_bytes(std::span(values)).data());
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<T>::Upload(values));
  return std::make_unique<EmbeddingTable<T>>(std::move(uploaded), matrix.rows);
}

template <Layout kLayout, DType kDType>
void Embedding(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Problem& problem = *args.problem;
  const Lookup& lookup = problem.lookup();
  const auto& table = static_cast<const EmbeddingTable<T>&>(*args.weight);
  const int64_t tokens = problem.output.batch, channels = problem.output.channels;
  const Rows rows{lookup.by_position ? args.sequences->positions.data() : args.Input<int32_t>(0),
                  lookup.by_position ? lookup.offset : 0, table.rows};
  const T* values = table.values.data();
  const cudaStream_t queue = QueueOf(stream);
  constexpr int kPack = 16 / sizeof(T);
  if constexpr (kLayout == Layout::kRows) {
    const LaunchGrid grid(CeilDiv(tokens, kTile), CeilDiv(channels, kTile));
    auto* kernel = channels % kPack == 0 ? EmbedRows<kPack, T> : EmbedRows<1, T>;
    LaunchDependent(kernel, grid, kThreads, 0, queue, values, rows, args.Output<T>(), static_cast<int>(tokens),
                    static_cast<int>(channels), RowStride(tokens));
  } else {
    const int pack = channels % kPack == 0 ? kPack : 1;
    const int64_t packs_each = channels / pack, packs = tokens * packs_each;
    auto* kernel = pack == 1 ? EmbedNhwc<1, T> : EmbedNhwc<kPack, T>;
    LaunchDependent(kernel, LaunchGrid::OfThreads(packs, kThreads), kThreads, 0, queue, values, rows, args.Output<T>(),
                    packs, static_cast<int>(packs_each));
  }
}

SWIZZLE_INSTANTIATE(Embedding);

#define SWIZZLE_INSTANTIATE_PREPARE(layout, dtype) \
  template StatusOr<std::unique_ptr<PackedWeight>> PrepareEmbedding<layout, dtype>(const Weight&, const Problem&)
SWIZZLE_INSTANTIATE_PREPARE(Layout::kRows, DType::kFloat32);
SWIZZLE_INSTANTIATE_PREPARE(Layout::kRows, DType::kFloat16);
SWIZZLE_INSTANTIATE_PREPARE(Layout::kRows, DType::kBFloat16);
SWIZZLE_INSTANTIATE_PREPARE(Layout::kNhwc, DType::kFloat32);
SWIZZLE_INSTANTIATE_PREPARE(Layout::kNhwc, DType::kFloat16);
SWIZZLE_INSTANTIATE_PREPARE(Layout::kNhwc, DType::kBFloat16);

}  // namespace swizzle::cuda
