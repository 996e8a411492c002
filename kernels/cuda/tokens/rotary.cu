#include <algorithm>

#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/tokens/rotary.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

// [positions][2 * pairs], see Rotation; fp32.
class RotaryTable final : public PackedWeight {
 public:
  RotaryTable(DeviceArray<float> table, int64_t positions) : rows(positions), values(std::move(table)) {}
  size_t bytes() const override { return values.bytes(); }

  const int64_t rows;
  const DeviceArray<float> values;
};

template <typename T>
struct Operands {
  const T* input;
  T* output;  // perhaps the input
  const float* table;
  const int32_t* positions;
  int64_t tokens, rows;
  int channels, heads, size, pairs;
  int kept;  // channels that are copied, in kNhwc in packs: none where the output is the input

  // The factors of a token; those of spare ones may be any.
  __device__ const float* FactorsOf(int64_t token) const {
    const int64_t position = token < tokens ? positions[token] : 0;
    return table + min(max(position, int64_t{0}), rows - 1) * 2 * pairs;
  }
  // The channel of the i-th that is copied.
  __device__ int KeptChannel(int i) const {
    const int each = size - 2 * pairs, in_heads = heads * each;
    return i < in_heads ? i / each * size + 2 * pairs + i % each : heads * size + i - in_heads;
  }
};

__device__ inline void Turn(float& a, float& b, float cosine, float sine) {
  const float turned = a * cosine - b * sine;
  b = b * cosine + a * sine;
  a = turned;
}

// Heads that a thread turns with the same factors.
constexpr int kHeadsEach = 4;

// A thread for a pack of neighbouring pairs of some of a token's heads, or of channels that are copied. kPack divides
// the pairs, the channels of a head and those of a token.
template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads) TurnNhwc(const __grid_constant__ Operands<T> op, FastDivider per_token) {
  constexpr int kWide = kPack < 4 ? kPack : 4;  // factors that are read at once
  LetNextStart();
  WaitForResults();
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  auto token = static_cast<uint32_t>(item);
  const auto part = static_cast<int>(per_token.Split(token));
  if (token >= op.tokens) return;
  const int packs = op.pairs / kPack, turned = (op.heads + kHeadsEach - 1) / kHeadsEach * packs;
  const int64_t offset = int64_t{token} * op.channels;
  if (part >= turned) {
    const int64_t at = offset + op.KeptChannel((part - turned) * kPack);
    *reinterpret_cast<Pack<T, kPack>*>(op.output + at) = *reinterpret_cast<const Pack<T, kPack>*>(op.input + at);
    return;
  }
  const int pair = part % packs * kPack, first = part / packs * kHeadsEach;
  const float* const factors = op.FactorsOf(token) + pair;
  float cosines[kPack], sines[kPack];
#pragma unroll
  for (int j = 0; j < kPack; j += kWide) {
    LoadPack<kWide>(factors + j, *reinterpret_cast<float(*)[kWide]>(&cosines[j]));
    LoadPack<kWide>(factors + op.pairs + j, *reinterpret_cast<float(*)[kWide]>(&sines[j]));
  }
#pragma unroll
  for (int i = 0; i < kHeadsEach; ++i) {
    if (first + i >= op.heads) continue;
    const int64_t at = offset + (first + i) * op.size + pair;
    float a[kPack], b[kPack];
    LoadPack<kPack>(op.input + at, a);
    LoadPack<kPack>(op.input + at + op.pairs, b);
#pragma unroll
    for (int j = 0; j < kPack; ++j) Turn(a[j], b[j], cosines[j], sines[j]);
    StorePack<kPack>(a, op.output + at);
    StorePack<kPack>(b, op.output + at + op.pairs);
  }
}

// Turns kRows: lanes are neighbouring tokens, 16 bytes of them each, a row's spare ones with them; blocks along y are
// pairs, then channels that are copied, along z some heads of a pair. Memory bounds it: 4096 tokens of 24 heads of 64
// channels in FP16 take 20 us in a plan on an H200, in kNhwc 6.5. With the table's rows turned in shared memory it took
// 21, with no table at all 11 of the 15 that it takes alone.
template <typename T>
__global__ void __launch_bounds__(kThreads) TurnRows(const __grid_constant__ Operands<T> op, int64_t stride) {
  constexpr int kTokens = 16 / sizeof(T);
  LetNextStart();
  WaitForResults();
  const int64_t token = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kTokens;
  if (token >= op.tokens) return;
  for (int line = blockIdx.y; line < op.pairs + op.kept; line += gridDim.y) {
    if (line >= op.pairs) {
      const int64_t at = op.KeptChannel(line - op.pairs) * stride + token;
      if (blockIdx.z > 0) continue;
      *reinterpret_cast<Pack<T, kTokens>*>(op.output + at) = *reinterpret_cast<const Pack<T, kTokens>*>(op.input + at);
      continue;
    }
    float cosines[kTokens], sines[kTokens];
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      const float* const factors = op.FactorsOf(token + i) + line;
      cosines[i] = factors[0], sines[i] = factors[op.pairs];
    }
    for (int first = blockIdx.z * kHeadsEach; first < op.heads; first += gridDim.z * kHeadsEach) {
#pragma unroll
      for (int head = first; head < first + kHeadsEach; ++head) {
        if (head >= op.heads) continue;
        const int64_t at = (int64_t{head} * op.size + line) * stride + token, other = at + op.pairs * stride;
        float a[kTokens], b[kTokens];
        LoadPack<kTokens>(op.input + at, a);
        LoadPack<kTokens>(op.input + other, b);
#pragma unroll
        for (int i = 0; i < kTokens; ++i) Turn(a[i], b[i], cosines[i], sines[i]);
        StorePack<kTokens>(a, op.output + at);
        StorePack<kTokens>(b, op.output + other);
      }
    }
  }
}

template <int kPack, typename T>
void QueueNhwc(Operands<T> op, cudaStream_t queue) {
  op.kept /= kPack;
  const int64_t per_token = CeilDiv(op.heads, kHeadsEach) * (op.pairs / kPack) + op.kept;
  LaunchDependent(TurnNhwc<kPack, T>, LaunchGrid::OfThreads(op.tokens * per_token, kThreads), kThreads, 0, queue, op,
                  FastDivider(per_token));
}

}  // namespace

bool AcceptsRotary(const Problem& problem) { return CountsFit(problem); }

StatusOr<std::unique_ptr<PackedWeight>> PrepareRotary(const Weight& weight, const Problem&) {
  const DenseMatrix table = weight.ToDense();
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<float>::Upload(table.values));
  return std::make_unique<RotaryTable>(std::move(uploaded), table.rows);
}

template <Layout kLayout, DType kDType>
void Rotary(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Problem& problem = *args.problem;
  const auto& table = static_cast<const RotaryTable&>(*args.weight);
  const auto& [heads, size, pairs] = problem.rotation();
  const int64_t channels = problem.input.channels;
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  const int64_t kept = input == output ? 0 : channels - int64_t{2} * heads * pairs;
  const Operands<T> op{input,
                       output,
                       table.values.data(),
                       args.sequences->positions.data(),
                       problem.input.batch,
                       table.rows,
                       static_cast<int>(channels),
                       heads,
                       size,
                       pairs,
                       static_cast<int>(kept)};
  const cudaStream_t queue = QueueOf(stream);
  if constexpr (kLayout == Layout::kRows) {
    constexpr int kTokens = 16 / sizeof(T);
    const LaunchGrid grid(CeilDiv(op.tokens, int64_t{kThreads} * kTokens), pairs + kept, CeilDiv(heads, kHeadsEach));
    LaunchDependent(TurnRows<T>, grid, kThreads, 0, queue, op, RowStride(op.tokens));
  } else {
    constexpr int kWide = 16 / sizeof(T);
    const bool wide = pairs % kWide == 0 && size % kWide == 0 && channels % kWide == 0;
    wide ? QueueNhwc<kWide>(op, queue) : QueueNhwc<1>(op, queue);
  }
}

SWIZZLE_INSTANTIATE(Rotary);

}  // namespace swizzle::cuda
