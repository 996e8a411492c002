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

constexpr int kPack = 4;       // channels a lane moves at once
constexpr int kMostPacks = 8;  // that it holds: 1024 channels a warp

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
  } else if (positions < kNarrowPositions) {
    run(LayerNormColumns<RowColumns<kNarrowWidth>, T>, RowColumns<kNarrowWidth>::kParts);
  } else {
    run(LayerNormColumns<RowColumns<kWideWidth>, T>, RowColumns<kWideWidth>::kParts);
  }
}

SWIZZLE_INSTANTIATE(LayerNorm);

}  // namespace swizzle::cuda
