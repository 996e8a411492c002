#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/tokens/token_reduction.h"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;

// Where (channel, token) lies in the input, (channel, sequence) in the output; in elements.
template <typename T>
struct Operands {
  const T* input;
  T* output;
  int64_t in_channel, in_token, out_channel, out_sequence;
  int64_t channels, sequences;
  const int32_t* begins;
  const float* key_bias;  // or null
};

template <typename T>
__global__ void Select(const Operands<T> op, int64_t wanted) {
  LetNextStart();
  WaitForResults();
  const int64_t item = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (item >= op.channels * op.sequences) return;
  const int64_t sequence = item / op.channels, channel = item % op.channels;
  const int64_t begin = op.begins[sequence], end = op.begins[sequence + 1];
  int64_t token = wanted + (wanted < 0 ? end : begin);
  if (token < begin || token >= end) token = end - 1;
  T* to = op.output + channel * op.out_channel + sequence * op.out_sequence;
  *to = begin < end ? op.input[channel * op.in_channel + token * op.in_token] : FromFloat<T>(0);
}

// The sum and the count of a sequence's tokens that count, of one channel, from `first` on in steps of `step`. Eight
// are asked for at a time, whether they count or not.
struct Tally {
  float sum = 0;
  float count = 0;

  template <typename T>
  __device__ void Add(const Operands<T>& op, int64_t sequence, int64_t channel, int first, int step) {
    constexpr int kAtOnce = 8;
    const int64_t end = op.begins[sequence + 1];
    const T* from = op.input + channel * op.in_channel;
    for (int64_t token = op.begins[sequence] + first; token < end; token += kAtOnce * step) {
      T values[kAtOnce];
      float biases[kAtOnce] = {};
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int64_t at = min(token + i * step, end - 1);
        values[i] = from[at * op.in_token];
        if (op.key_bias != nullptr) biases[i] = op.key_bias[at];
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const bool counts = token + i * step < end && biases[i] == 0;
        sum += counts ? ToFloat(values[i]) : 0.0f;
        count += counts ? 1.0f : 0.0f;
      }
    }
  }
  __device__ float Mean() const { return count == 0 ? 0.0f : sum / count; }
};

// kRows: a warp for a channel of a sequence.
template <typename T>
__global__ void __launch_bounds__(kWarp* kWarps) MeanRows(const Operands<T> op) {
  LetNextStart();
  WaitForResults();
  const int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (item >= op.channels * op.sequences) return;
  const int64_t sequence = item % op.sequences, channel = item / op.sequences;
  const int lane = threadIdx.x % kWarp;
  Tally tally;
  tally.Add(op, sequence, channel, lane, kWarp);
  tally.sum = SumOfLanes(tally.sum);
  tally.count = SumOfLanes(tally.count);
  if (lane == 0) op.output[channel * op.out_channel + sequence * op.out_sequence] = FromFloat<T>(tally.Mean());
}

// kNhwc: a block for 32 channels of a sequence; its warps share the tokens.
template <typename T>
__global__ void __launch_bounds__(kWarp* kWarps) MeanNhwc(const Operands<T> op, int64_t channel_blocks) {
  __shared__ Tally parts[kWarps][kWarp];
  LetNextStart();
  WaitForResults();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t sequence = blockIdx.x / channel_blocks, channel = blockIdx.x % channel_blocks * kWarp + lane;
  const bool inside = channel < op.channels;
  Tally tally;
  if (inside) tally.Add(op, sequence, channel, warp, kWarps);
  parts[warp][lane].sum = tally.sum;
  parts[warp][lane].count = tally.count;
  __syncthreads();
  if (warp != 0 || !inside) return;
  for (int i = 1; i < kWarps; ++i) {
    tally.sum += parts[i][lane].sum;
    tally.count += parts[i][lane].count;
  }
  op.output[channel * op.out_channel + sequence * op.out_sequence] = FromFloat<T>(tally.Mean());
}

template <typename T>
Operands<T> MakeOperands(const KernelArgs& args, Layout layout) {
  const Extent& input = args.problem->input;
  const int64_t sequences = args.problem->output.batch;
  const Sequences& view = *args.sequences;
  Operands<T> op{args.Input<T>(0),       args.Output<T>(),
                 RowStride(input.batch), 1,
                 RowStride(sequences),   1,
                 input.channels,         sequences,
                 view.begins.data(),     view.key_bias.empty() ? nullptr : view.key_bias.data()};
  if (layout == Layout::kNhwc) {
    op.in_channel = op.out_channel = 1;
    op.in_token = op.out_sequence = input.channels;
  }
  return op;
}

}  // namespace

template <Layout kLayout, DType kDType>
void SelectToken(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  constexpr int kThreads = 128;
  const auto op = MakeOperands<T>(args, kLayout);
  LaunchDependent(Select<T>, LaunchGrid::OfThreads(op.channels * op.sequences, kThreads), kThreads, 0, QueueOf(stream),
                  op, args.problem->token_choice().token);
}

template <Layout kLayout, DType kDType>
void MeanTokens(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const auto op = MakeOperands<T>(args, kLayout);
  if constexpr (kLayout == Layout::kRows) {
    LaunchDependent(MeanRows<T>, LaunchGrid::OfThreads(op.channels * op.sequences, kWarps), kWarp * kWarps, 0,
                    QueueOf(stream), op);
  } else {
    const int64_t blocks = CeilDiv(op.channels, kWarp);
    LaunchDependent(MeanNhwc<T>, LaunchGrid(blocks * op.sequences), kWarp * kWarps, 0, QueueOf(stream), op, blocks);
  }
}

SWIZZLE_INSTANTIATE(SelectToken);
SWIZZLE_INSTANTIATE(MeanTokens);

}  // namespace swizzle::cuda
