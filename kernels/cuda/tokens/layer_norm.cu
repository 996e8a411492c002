#include <vector>

#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/tokens/columns.cuh"
#include "kernels/cuda/tokens/layer_norm.h"

namespace swizzle::cuda {
namespace {

// [channels] scales, then [channels] biases, which start on a pack; fp32.
class LayerNormWeight final : public PackedWeight {
 public:
  explicit LayerNormWeight(DeviceArray<float> values) : values_(std::move(values)) {}
  size_t bytes() const override { return values_.bytes(); }
  const float* scales() const { return values_.data(); }
  const float* biases() const { return values_.data() + values_.size() / 2; }

 private:
  const DeviceArray<float> values_;
};

constexpr int kMostHeldChannels = 1024;
constexpr int64_t kFewTokens = 2048;  // below, blocks of kRows have eight: they fill more of the device
constexpr int kPack = 4;              // channels a lane moves at once
constexpr int kMostPacks = 8;         // that it holds: 1024 channels a warp

template <typename T>
struct Operands {
  const T* input;
  const float* scales;
  const float* biases;
  T* output;
  int64_t channel_stride, position_stride;
  int64_t positions;
  int channels;
  float epsilon;
};

// y = x * scale + bias brings values to mean 0 and variance 1, their rounded mean having been taken off.
struct Normaliser {
  float scale, mean;
  // Of the sums of differences from the rounded mean, and of their squares.
  __device__ Normaliser(float rounded_mean, float sum, float squares, float channels, float epsilon) {
    const float rest = sum / channels;
    const float variance = fmaxf(squares / channels - rest * rest, 0.0f);
    scale = 1 / sqrtf(variance + epsilon);
    rest_ = rest;
    mean = rounded_mean;
  }
  __device__ float operator()(float value) const { return (value - mean - rest_) * scale; }

 private:
  float rest_;
};

template <typename Columns, typename T>
__global__ void __launch_bounds__(kColumnThreads) LayerNormColumns(const Operands<T> op) {
  Columns columns;
  const int64_t offset = columns.position() * op.position_stride;
  const int end = columns.position() < op.positions ? op.channels : 0;
  const T* from = op.input + offset;
  const auto channels = static_cast<float>(op.channels);
  float sum = 0;
#pragma unroll 4
  for (int c = columns.first_channel(); c < end; c += Columns::kParts) sum += ToFloat(from[c * op.channel_stride]);
  const float mean = columns.Reduce(sum, JoinSum()) / channels;
  float rest = 0, squares = 0;
#pragma unroll 4
  for (int c = columns.first_channel(); c < end; c += Columns::kParts) {
    const float difference = ToFloat(from[c * op.channel_stride]) - mean;
    rest += difference;
    squares = fmaf(difference, difference, squares);
  }
  rest = columns.Reduce(rest, JoinSum());
  squares = columns.Reduce(squares, JoinSum());
  const Normaliser normalise(mean, rest, squares, channels, op.epsilon);
#pragma unroll 4
  for (int c = columns.first_channel(); c < end; c += Columns::kParts) {
    const int64_t at = c * op.channel_stride;
    op.output[offset + at] = FromFloat<T>(fmaf(normalise(ToFloat(from[at])), op.scales[c], op.biases[c]));
  }
}

// A warp for a token of kNhwc, whose channels are a multiple of kPack and at most 32 * kPack * kMostPacks. Scales and
// biases are asked for with the token, since they are seldom in the second cache: a model reads all it has between.
template <typename T>
__global__ void __launch_bounds__(kColumnThreads) LayerNormHeld(const Operands<T> op) {
  NhwcColumn column;
  if (column.position() >= op.positions) return;
  const int64_t offset = column.position() * op.position_stride;
  const auto channels = static_cast<float>(op.channels);
  const int first = threadIdx.x % 32 * kPack;
  constexpr int kStep = 32 * kPack;
  float values[kMostPacks][kPack], scales[kMostPacks][kPack], biases[kMostPacks][kPack];
#pragma unroll
  for (int i = 0; i < kMostPacks; ++i) {
    const int c = first + i * kStep;
    if (c >= op.channels) continue;
    LoadPack<kPack>(op.input + offset + c, values[i]);
    LoadPack<kPack>(op.scales + c, scales[i]);
    LoadPack<kPack>(op.biases + c, biases[i]);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kMostPacks; ++i) {
    if (first + i * kStep >= op.channels) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) sum += values[i][j];
  }
  const float mean = column.Reduce(sum, JoinSum()) / channels;
  float rest = 0, squares = 0;
#pragma unroll
  for (int i = 0; i < kMostPacks; ++i) {
    if (first + i * kStep >= op.channels) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float difference = values[i][j] - mean;
      rest += difference;
      squares = fmaf(difference, difference, squares);
    }
  }
  rest = column.Reduce(rest, JoinSum());
  squares = column.Reduce(squares, JoinSum());
  const Normaliser normalise(mean, rest, squares, channels, op.epsilon);
#pragma unroll
  for (int i = 0; i < kMostPacks; ++i) {
    const int c = first + i * kStep;
    if (c >= op.channels) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) values[i][j] = fmaf(normalise(values[i][j]), scales[i][j], biases[i][j]);
    StorePack<kPack>(values[i], op.output + offset + c);
  }
}

// Tokens of kRows in half precision, eight a lane: a block has kOctets of eight neighbours, whose channels its warps
// share and hold, kMostHeld a lane. Spare tokens of a row are computed, too.
template <typename T, int kOctets>
class HeldRows {
 public:
  static constexpr int kTokens = 8;
  static constexpr int kLanes = 32 / kOctets;  // of a warp, that share a token
  static constexpr int kWarps = kColumnThreads / 32;
  static constexpr int kParts = kLanes * kWarps;  // threads that share a token
  static constexpr int kMostHeld = kMostHeldChannels / kParts;

  __device__ explicit HeldRows(const Operands<T>& op)
      : op_(op), octet_(threadIdx.x % kOctets), channel_(threadIdx.x / kOctets) {
    const int64_t offset = (int64_t{blockIdx.x} * kOctets + octet_) * kTokens;
    from_ = op.input + offset, to_ = op.output + offset;
#pragma unroll
    for (int i = 0; i < kMostHeld; ++i) {
      if (Has(i)) held_[i] = *reinterpret_cast<const Pack<T, kTokens>*>(from_ + At(i));
    }
  }

  // sums[j] = the sum over token j's channels of f(value, j), in all threads that share it.
  template <typename Function>
  __device__ void SumChannels(float (&sums)[kTokens], const Function& f) {
#pragma unroll
    for (float& sum : sums) sum = 0;
#pragma unroll
    for (int i = 0; i < kMostHeld; ++i) {
      if (!Has(i)) continue;
#pragma unroll
      for (int j = 0; j < kTokens; ++j) sums[j] += f(ToFloat(held_[i].values[j]), j);
    }
    Join(sums);
  }

  // f(value, token) in place of each value, scaled and biased.
  template <typename Function>
  __device__ void Store(const Function& f) {
#pragma unroll
    for (int i = 0; i < kMostHeld; ++i) {
      if (!Has(i)) continue;
      const float scale = op_.scales[Channel(i)], bias = op_.biases[Channel(i)];
      float values[kTokens];
#pragma unroll
      for (int j = 0; j < kTokens; ++j) values[j] = fmaf(f(ToFloat(held_[i].values[j]), j), scale, bias);
      StorePack<kTokens>(values, to_ + At(i));
    }
  }

 private:
  // Joins the sums of the threads that share tokens. Lanes halve what they hold as often as they can: 8 to 9 shuffles
  // instead of 32 to 40.
  __device__ void Join(float (&sums)[kTokens]) const {
    __shared__ float parts[kWarps][kOctets][kTokens];
    __shared__ alignas(16) float totals[kOctets][kTokens];
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 16, left = kTokens / 2; left > 0; step /= 2, left /= 2) {
      const bool upper = (lane & step) != 0;
#pragma unroll
      for (int j = 0; j < left; ++j) {
        const float sent = upper ? sums[j] : sums[j + left];
        sums[j] = (upper ? sums[j + left] : sums[j]) + __shfl_xor_sync(0xffffffffu, sent, step);
      }
    }
#pragma unroll
    for (int step = 2; step >= kOctets; step /= 2) sums[0] += __shfl_xor_sync(0xffffffffu, sums[0], step);
    if (lane % 4 < kOctets) parts[threadIdx.x / 32][octet_][lane / 16 * 4 + lane / 8 % 2 * 2 + lane / 4 % 2] = sums[0];
    __syncthreads();
    if (threadIdx.x < kOctets * kTokens) {
      const int octet = threadIdx.x / kTokens, token = threadIdx.x % kTokens;
      float total = 0;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) total += parts[warp][octet][token];
      totals[octet][token] = total;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kTokens; ++j) sums[j] = totals[octet_][j];
  }

  __device__ int Channel(int i) const { return channel_ + i * kParts; }
  __device__ bool Has(int i) const { return Channel(i) < op_.channels; }
  __device__ int64_t At(int i) const { return Channel(i) * op_.channel_stride; }

  const Operands<T>& op_;
  const int octet_, channel_;
  const T* from_;
  T* to_;
  Pack<T, kTokens> held_[kMostHeld];
};

template <typename T, int kOctets>
__global__ void __launch_bounds__(kColumnThreads) LayerNormHeldRows(const Operands<T> op) {
  using Rows = HeldRows<T, kOctets>;
  Rows rows(op);
  const auto channels = static_cast<float>(op.channels);
  float means[Rows::kTokens], squares[Rows::kTokens];
  rows.SumChannels(means, [](float value, int) { return value; });
#pragma unroll
  for (float& mean : means) mean /= channels;
  rows.SumChannels(squares, [&](float value, int j) { return (value - means[j]) * (value - means[j]); });
#pragma unroll
  for (int j = 0; j < Rows::kTokens; ++j) {
    squares[j] = Normaliser(means[j], 0.0f, squares[j], channels, op.epsilon).scale;
  }
  rows.Store([&](float value, int j) { return (value - means[j]) * squares[j]; });
}

// In kRows; `run` launches a kernel of so many threads a token.
template <typename T>
void RunRows(const Operands<T>& op, cudaStream_t queue, const auto& run) {
  if constexpr (sizeof(T) == 2) {
    const auto run_held = [&]<int kOctets>() {
      const LaunchGrid grid(CeilDiv(op.positions, int64_t{kOctets * HeldRows<T, kOctets>::kTokens}));
      LayerNormHeldRows<T, kOctets><<<grid, kColumnThreads, 0, queue>>>(op);
    };
    if (op.channels <= kMostHeldChannels) {
      return op.positions < kFewTokens ? run_held.template operator()<1>() : run_held.template operator()<2>();
    }
  }
  if (op.positions < kNarrowPositions)
    return run(LayerNormColumns<RowColumns<kNarrowWidth>, T>, RowColumns<kNarrowWidth>::kParts);
  run(LayerNormColumns<RowColumns<kWideWidth>, T>, RowColumns<kWideWidth>::kParts);
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PrepareLayerNorm(const Weight& weight, const Problem&) {
  const DenseMatrix scales = weight.ToDense();
  const int64_t half = CeilDiv(scales.rows, kPack) * kPack;
  std::vector<float> values(2 * half);
  std::copy(scales.values.begin(), scales.values.end(), values.begin());
  std::copy(weight.bias.begin(), weight.bias.end(), values.begin() + half);
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<float>::Upload(values));
  return std::make_unique<LayerNormWeight>(std::move(uploaded));
}

template <Layout kLayout, DType kDType>
void LayerNorm(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Problem& problem = *args.problem;
  const int64_t positions = problem.input.positions(), channels = problem.input.channels;
  const auto& weight = static_cast<const LayerNormWeight&>(*args.weight);
  const bool rows = kLayout == Layout::kRows;
  const Operands<T> op{args.Input<T>(0),
                       weight.scales(),
                       weight.biases(),
                       args.Output<T>(),
                       rows ? RowStride(positions) : 1,
                       rows ? 1 : channels,
                       positions,
                       static_cast<int>(channels),
                       problem.normalisation().epsilon};
  const auto run = [&](auto* kernel, int64_t threads_each) {
    kernel<<<LaunchGrid::OfThreads(positions * threads_each, kColumnThreads), kColumnThreads, 0, QueueOf(stream)>>>(op);
  };
  if constexpr (kLayout == Layout::kNhwc) {
    const bool held = channels % kPack == 0 && channels <= 32 * kPack * kMostPacks;
    run(held ? LayerNormHeld<T> : LayerNormColumns<NhwcColumn, T>, NhwcColumn::kParts);
  } else {
    RunRows(op, QueueOf(stream), run);
  }
}

SWIZZLE_INSTANTIATE(LayerNorm);

}  // namespace swizzle::cuda
