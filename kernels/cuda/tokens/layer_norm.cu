#include <vector>

#include "kernels/cuda/runtime/cluster.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/tokens/columns.cuh"
#include "kernels/cuda/tokens/layer_norm.h"
#include "kernels/cuda/tokens/layer_norm_short.cuh"

namespace swizzle::cuda {
namespace {

using layer_norm::kPack;
using layer_norm::Normaliser;
using layer_norm::Operands;

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
constexpr int kMostPacks = 8;  // that it holds: 1024 channels a warp

// Blocks along y are groups of channels.
template <typename Columns, typename T>
__global__ void __launch_bounds__(kColumnThreads) LayerNormColumns(const Operands<T> op) {
  Columns columns;
  const int first = blockIdx.y * op.channels;
  const int64_t offset = columns.position() * op.position_stride + first * op.channel_stride;
  const int end = columns.position() < op.positions ? op.channels : 0;
  const T* from = op.input + offset;
  const auto channels = static_cast<float>(op.channels);
  float sum = 0;
#pragma unroll 4
  for (int c = columns.first_channel(); c < end; c += Columns::kParts) sum += ToFloat(from[c * op.channel_stride]);
  sum = columns.Reduce(sum, JoinSum());
  const float mean = op.centred ? sum / channels : 0.0f;
  float rest = 0, squares = 0;
#pragma unroll 4
  for (int c = columns.first_channel(); c < end; c += Columns::kParts) {
    const float difference = ToFloat(from[c * op.channel_stride]) - mean;
    rest += difference;
    squares = fmaf(difference, difference, squares);
  }
  rest = op.centred ? columns.Reduce(rest, JoinSum()) : 0.0f;
  squares = columns.Reduce(squares, JoinSum());
  const Normaliser normalise(mean, rest, squares, channels, op.epsilon);
#pragma unroll 4
  for (int c = columns.first_channel(); c < end; c += Columns::kParts) {
    const int64_t at = c * op.channel_stride;
    op.output[offset + at] =
        FromFloat<T>(fmaf(normalise(ToFloat(from[at])), op.scales[first + c], op.biases[first + c]));
  }
}

// A warp for a token of kNhwc, whose channels are a multiple of kPack and at most 32 * kPack * kMostPacks. Scales and
// biases are asked for before the token, since they are seldom in the second cache: a model reads all it has between.
template <typename T>
__global__ void __launch_bounds__(kColumnThreads) LayerNormHeld(const __grid_constant__ Operands<T> op) {
  LetNextStart();
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
    LoadPack<kPack>(op.scales + c, scales[i]);
    LoadPack<kPack>(op.biases + c, biases[i]);
  }
  WaitForResults();
#pragma unroll
  for (int i = 0; i < kMostPacks; ++i) {
    if (first + i * kStep < op.channels) LoadPack<kPack>(op.input + offset + first + i * kStep, values[i]);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kMostPacks; ++i) {
    if (first + i * kStep >= op.channels) continue;
#pragma unroll
    for (int j = 0; j < kPack; ++j) sum += values[i][j];
  }
  sum = column.Reduce(sum, JoinSum());
  const float mean = op.centred ? sum / channels : 0.0f;
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
  rest = op.centred ? column.Reduce(rest, JoinSum()) : 0.0f;
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

// Tokens of kRows, 16 bytes a lane: kBlocks blocks, a cluster if they are several, have kPieces such neighbours, and
// share and hold their channels, kMostHeld a lane. Spare tokens of a row are computed, too.
template <typename T, int kPieces, int kThreads, int kBlocks>
class HeldRows {
 public:
  static constexpr int kTokens = 16 / sizeof(T);
  using Values = float[kTokens];

  __device__ explicit HeldRows(const Operands<T>& op)
      : op_(op), piece_(threadIdx.x % kPieces), rank_(blockIdx.x % kBlocks) {
    if constexpr (kBlocks > 1) ArriveAtCluster();
    channel_ = rank_ * kSharers + threadIdx.x / kPieces;
#pragma unroll
    for (int i = 0; i < kMostHeld; ++i) {
      if (Has(i)) scales_[i] = op.scales[Channel(i)], biases_[i] = op.biases[Channel(i)];
    }
    WaitForResults();
    offset_ = channel_ * op.channel_stride + (int64_t{blockIdx.x / kBlocks} * kPieces + piece_) * kTokens;
#pragma unroll
    for (int i = 0; i < kMostHeld; ++i) {
      if (Has(i)) held_[i] = *reinterpret_cast<const Pack<T, kTokens>*>(op.input + At(i));
    }
  }

  // Of each of the lane's tokens: its mean, rounded, what is left of it, and what brings differences from both to
  // variance 1.
  __device__ void Find(Values& means, Values& rests, Values& factors) const {
    __shared__ Shared shared;
    const auto count = static_cast<float>(CountOf(rank_));
    const float inverse = count == 0 || !op_.centred ? 0.0f : 1 / count;  // 0: differences are from 0
    SumChannels(shared, shared.sums, [](float value, int) { return value; });
#pragma unroll
    for (int j = 0; j < kTokens; ++j) means[j] = shared.sums[piece_ * kTokens + j] * inverse;
    SumChannels(shared, shared.squares, [&](float value, int j) { return (value - means[j]) * (value - means[j]); });
    if constexpr (kHasRests) SumChannels(shared, shared.rests, [&](float value, int j) { return value - means[j]; });
    const int token = threadIdx.x;
    const bool joins = token < kPieces * kTokens;
    float2 own, rest = {};
    if (joins) own = {shared.sums[token] * inverse, shared.squares[token]};
    if (kHasRests && joins && op_.centred) rest.x = shared.rests[token];
    if constexpr (kBlocks > 1) {
      WaitForCluster();  // all blocks have begun
      for (int rank = 0; rank < kBlocks && joins; ++rank) {
        StoreAtPeer(&shared.moments[rank_][token], rank, own);
        if constexpr (kHasRests) StoreAtPeer(&shared.left[rank_][token], rank, rest);
      }
      ArriveAtCluster();
      WaitForCluster();
    } else if (joins) {
      shared.moments[0][token] = own;
      if constexpr (kHasRests) shared.left[0][token] = rest;
    }
    if (joins) Join(shared, token);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kTokens; ++j) {
      const float4 found = shared.found[piece_ * kTokens + j];
      means[j] = found.x, rests[j] = found.y, factors[j] = found.z;
    }
  }

  // Each value normalised, scaled and biased.
  __device__ void Store(const Values& means, const Values& rests, const Values& factors) const {
#pragma unroll
    for (int i = 0; i < kMostHeld; ++i) {
      if (!Has(i)) continue;
      Values values;
#pragma unroll
      for (int j = 0; j < kTokens; ++j) {
        const float difference = ToFloat(held_[i].values[j]) - means[j] - rests[j];
        values[j] = fmaf(difference * factors[j], scales_[i], biases_[i]);
      }
      StorePack<kTokens>(values, op_.output + At(i));
    }
  }

 private:
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kSharers = kThreads / kPieces;  // threads of a block that share a token
  static constexpr int kParts = kSharers * kBlocks;
  static constexpr int kMostHeld = CeilDiv(kMostHeldChannels, kParts);
  // Whether what rounding leaves of a mean would show in the result.
  static constexpr bool kHasRests = sizeof(T) == sizeof(float);

  struct Shared {
    float parts[kWarps][kPieces * kTokens];
    float sums[kPieces * kTokens], squares[kPieces * kTokens];
    float rests[kHasRests ? kPieces * kTokens : 1];
    float2 moments[kBlocks][kPieces * kTokens];  // of each block's channels: mean, squares of differences from it
    float2 left[kHasRests ? kBlocks : 1][kPieces * kTokens];  // the sum of these differences
    float4 found[kPieces * kTokens];                          // mean, rest, factor
  };

  __device__ int Channel(int i) const { return channel_ + i * kParts; }
  __device__ bool Has(int i) const { return Channel(i) < op_.channels; }
  __device__ int64_t At(int i) const { return offset_ + i * kParts * op_.channel_stride; }
  // The channels of a block.
  __device__ int CountOf(int rank) const {
    int count = 0;
#pragma unroll
    for (int i = 0; i < kMostHeld; ++i) count += max(0, min(kSharers, op_.channels - rank * kSharers - i * kParts));
    return count;
  }

  // to[each of the block's tokens] = the sum over the block's channels of f(value, token of the lane's).
  template <typename Function>
  __device__ void SumChannels(Shared& shared, float* to, const Function& f) const {
    Values sums = {};
#pragma unroll
    for (int i = 0; i < kMostHeld; ++i) {
      if (!Has(i)) continue;
#pragma unroll
      for (int j = 0; j < kTokens; ++j) sums[j] += f(ToFloat(held_[i].values[j]), j);
    }
    // Lanes halve what they hold while they can: fewer shuffles than for each token.
    constexpr int kHalvings = kTokens == 8 && kPieces <= 4 ? 3 : 2, kLeft = kTokens >> kHalvings;
    int token = piece_ * kTokens;
#pragma unroll
    for (int halving = 0; halving < kHalvings; ++halving) {
      const int left = kTokens / 2 >> halving, step = 16 >> halving;
      const bool upper = (threadIdx.x & step) != 0;
#pragma unroll
      for (int j = 0; j < left; ++j) {
        const float sent = upper ? sums[j] : sums[j + left];
        sums[j] = (upper ? sums[j + left] : sums[j]) + __shfl_xor_sync(0xffffffffu, sent, step);
      }
      token += upper ? left : 0;
    }
#pragma unroll
    for (int step = 16 >> kHalvings; step >= kPieces; step /= 2) {
      sums[0] += __shfl_xor_sync(0xffffffffu, sums[0], step);
    }
#pragma unroll
    for (int j = 0; j < kLeft; ++j) shared.parts[threadIdx.x / 32][token + j] = sums[j];
    __syncthreads();
    if (threadIdx.x < kPieces * kTokens) {
      float total = 0;
#pragma unroll
      for (const auto& warp : shared.parts) total += warp[threadIdx.x];
      to[threadIdx.x] = total;
    }
    __syncthreads();
  }

  // What is found of a token, of what all blocks have (Chan, Golub and LeVeque, section 1); in FP32 as differences from
  // the first block's mean, which is rounded alike everywhere.
  __device__ void Join(Shared& shared, int token) const {
    const auto channels = static_cast<float>(op_.channels);
    const float reference = kHasRests ? shared.moments[0][token].x : 0.0f;
    float mean = 0, squares = 0;
#pragma unroll
    for (int rank = 0; rank < kBlocks; ++rank) {
      mean += (shared.moments[rank][token].x - reference) * CountOf(rank);
      if constexpr (kHasRests) mean += shared.left[rank][token].x;
    }
    mean /= channels;
#pragma unroll
    for (int rank = 0; rank < kBlocks; ++rank) {
      const float2 moments = shared.moments[rank][token];
      const float apart = moments.x - reference - mean;
      squares += moments.y + CountOf(rank) * apart * apart;
      if constexpr (kHasRests) squares += 2 * apart * shared.left[rank][token].x;
    }
    const float factor = 1 / sqrtf(fmaxf(squares / channels, 0.0f) + op_.epsilon);
    shared.found[token] = kHasRests ? float4{reference, mean, factor, 0} : float4{mean, 0, factor, 0};
  }

  const Operands<T>& op_;
  const int piece_, rank_;
  int channel_;
  int64_t offset_;
  Pack<T, kTokens> held_[kMostHeld];
  float scales_[kMostHeld], biases_[kMostHeld];
};

template <typename T, int kPieces, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads) LayerNormHeldRows(const __grid_constant__ Operands<T> op) {
  LetNextStart();
  using Rows = HeldRows<T, kPieces, kThreads, kBlocks>;
  const Rows rows(op);
  typename Rows::Values means, rests, factors;
  rows.Find(means, rests, factors);
  rows.Store(means, rests, factors);
}

template <typename T, int kPieces, int kThreads, int kBlocks>
void QueueHeldRows(const Operands<T>& op, Stream& stream) {
  const int64_t tiles = CeilDiv(op.positions, int64_t{kPieces} * HeldRows<T, kPieces, kThreads, kBlocks>::kTokens);
  LaunchInClusters(LayerNormHeldRows<T, kPieces, kThreads, kBlocks>, LaunchGrid(tiles * kBlocks), kThreads, kBlocks, 0,
                   QueueOf(stream), op);
}

// In kRows; `run` launches a kernel of so many threads a token.
template <typename T>
void RunRows(const Operands<T>& op, Stream& stream, const auto& run) {
  constexpr int64_t kLine = 128 / sizeof(T);
  if (op.channels <= kMostHeldChannels && op.groups == 1) {
    if (!HasClusters()) return QueueHeldRows<T, 1, 256, 1>(op, stream);
    // Whole lines of the second cache where rows begin with one. PERFORMANCE.md has the designs' times.
    const int64_t lines = op.channel_stride % kLine == 0 ? CeilDiv(op.positions, kLine) : 0;
    if (lines >= 128) return QueueHeldRows<T, 8, 512, 1>(op, stream);
    if (lines >= 32) return QueueHeldRows<T, 8, 512, 2>(op, stream);
    if (sizeof(T) == sizeof(float) && lines > 0) return QueueHeldRows<T, 8, 256, 4>(op, stream);
    return QueueHeldRows<T, 2, 256, 4>(op, stream);
  }
  if (op.positions < kNarrowPositions)
    return run(LayerNormColumns<RowColumns<kNarrowWidth>, T>, RowColumns<kNarrowWidth>::kParts);
  run(LayerNormColumns<RowColumns<kWideWidth>, T>, RowColumns<kWideWidth>::kParts);
}

}  // namespace

bool AcceptsLayerNorm(const Problem& problem) {
  return !problem.epilogue.residual && problem.normalisation().groups <= LaunchGrid::kMostDown;
}

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
  const int groups = problem.normalisation().groups;
  const Operands<T> op{args.Input<T>(0),
                       weight.scales(),
                       weight.biases(),
                       args.Output<T>(),
                       rows ? RowStride(positions) : 1,
                       rows ? 1 : channels,
                       positions,
                       static_cast<int>(channels / groups),
                       groups,
                       problem.normalisation().epsilon,
                       problem.normalisation().centred};
  const auto run = [&](auto* kernel, int64_t threads_each) {
    const LaunchGrid grid(CeilDiv(positions * threads_each, int64_t{kColumnThreads}), groups);
    kernel<<<grid, kColumnThreads, 0, QueueOf(stream)>>>(op);
  };
  if constexpr (kLayout == Layout::kNhwc) {
    if (groups == 1 && layer_norm::LaunchShort(op, stream)) return;
    const bool held = groups == 1 && channels % kPack == 0 && channels <= 32 * kPack * kMostPacks;
    if (!held) return run(LayerNormColumns<NhwcColumn, T>, NhwcColumn::kParts);
    LaunchDependent(LayerNormHeld<T>, LaunchGrid::OfThreads(positions * NhwcColumn::kParts, kColumnThreads),
                    kColumnThreads, 0, QueueOf(stream), op);
  } else {
    RunRows(op, stream, run);
  }
}

SWIZZLE_INSTANTIATE(LayerNorm);

}  // namespace swizzle::cuda
