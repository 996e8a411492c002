#include <vector>

#include "kernels/base/half_bits.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/tokens/embedding.h"

namespace swizzle::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // threads down a tile

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

// A block for 32 tokens by 32 channels at a time, turned in shared memory.
template <typename T>
__global__ void __launch_bounds__(kTile* kTileRows)
    EmbedRows(const T* table, Rows rows, T* output, int tokens, int channels, int64_t row_stride) {
  __shared__ T tile[kTile][kTile + 1];  // a column of it lies in 32 banks
  LetNextStart();
  WaitForResults();
  const int first_token = blockIdx.x * kTile;
  for (int first_channel = blockIdx.y * kTile; first_channel < channels; first_channel += gridDim.y * kTile) {
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      const int token = first_token + i, channel = first_channel + threadIdx.x;
      if (token < tokens && channel < channels) tile[i][threadIdx.x] = table[rows.Of(token) * channels + channel];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      const int token = first_token + threadIdx.x, channel = first_channel + i;
      if (token < tokens && channel < channels) output[channel * row_stride + token] = tile[threadIdx.x][i];
    }
    __syncthreads();
  }
}

template <int kPack, typename T>
__global__ void __launch_bounds__(kTile* kTileRows)
    EmbedNhwc(const T* table, Rows rows, T* output, int64_t packs, int packs_each) {
  LetNextStart();
  WaitForResults();
  const int64_t item = int64_t{blockIdx.x} * (kTile * kTileRows) + threadIdx.x;
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
  if constexpr (kLayout == Layout::kRows) {
    const LaunchGrid grid(CeilDiv(tokens, kTile), CeilDiv(channels, kTile));
    LaunchDependent(EmbedRows<T>, grid, dim3(kTile, kTileRows), 0, queue, values, rows, args.Output<T>(),
                    static_cast<int>(tokens), static_cast<int>(channels), RowStride(tokens));
  } else {
    constexpr int kPack = 16 / sizeof(T);
    constexpr int kThreads = kTile * kTileRows;
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
