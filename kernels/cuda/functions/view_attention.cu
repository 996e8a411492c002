// Attention of heads that lie in FP32 wherever their makers left them. As attention_mma.h, but that tiles arrive
// through registers, where they are rounded.
#include "kernels/cuda/attention/attention_token_tiles.cuh"
#include "kernels/cuda/functions/functions.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarpQueries = 16;
constexpr int kQueries = kThreads / 32 * kWarpQueries;
constexpr int64_t kMostChannels = 128;

// kSize bounds the channels of a head.
template <typename Element, int kSize>
struct Shape {
  using T = Element;
  static constexpr int kPieceElements = kPieceBytes / sizeof(T);
  static constexpr int kPieces = kSize / kPieceElements;
  static constexpr int kSteps = kPieces / 2;
  static constexpr int kKeys = kSize > 64 ? 32 : 64;  // of a tile
  static constexpr int kOctets = kKeys / 8, kChannelOctets = kSize / 8;
  static constexpr int kPitch = (kPieces + 1) * kPieceBytes;
  static constexpr int kMatrixBytes = kKeys * kPitch;
};

struct Work {
  HeadsAttended call;
  FastDivider tiles, heads;  // of queries; of a sequence
};

__device__ const float* LineOf(const HeadView& view, int64_t sequence, int64_t head, int64_t token) {
  return view.data + sequence * view.sequence_stride + head * view.head_stride + token * view.token_stride;
}

// A thread's share of a tile on its way from memory to shared memory: the next tile arrives while one is worked on.
// kPacked: lines are aligned to four numbers, and their `size` is a multiple.
template <typename S, bool kPacked>
class Lines {
 public:
  __device__ Lines() : first_(threadIdx.x / kQuads), channel_(threadIdx.x % kQuads * 4) {}

  // Lines [0, lines), of `size` numbers; zeros beyond them.
  __device__ void Load(const float* from, int64_t stride, int size, int lines) {
    from += first_ * stride + channel_;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (float& number : quads_[i]) number = 0;
      if (first_ + i * kStep >= lines) continue;
      const float* const line = from + i * kStep * stride;
      if constexpr (kPacked) {
        if (channel_ < size) LoadPack<4>(line, quads_[i]);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (channel_ + j < size) quads_[i][j] = line[j];
        }
      }
    }
  }

  __device__ void Put(char* to) const {
    using T = typename S::T;
    to += first_ * S::kPitch + channel_ * static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      *reinterpret_cast<uint2*>(to + i * kStep * S::kPitch) =
          make_uint2(PackPair<T>(quads_[i][0], quads_[i][1]), PackPair<T>(quads_[i][2], quads_[i][3]));
    }
  }

 private:
  static constexpr int kQuads = S::kPieces * S::kPieceElements / 4, kStep = kThreads / kQuads;
  static constexpr int kCount = S::kKeys / kStep;

  const int first_, channel_;
  float quads_[kCount][4];
};

// The warp's queries, of which `rows` are real; `from` is the first one's head.
template <typename S>
__device__ void LoadQueries(const float* from, int64_t stride, int size, int rows, Group<S>& group) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int step = 0; step < S::kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = g + i % 2 * 8, channel = (2 * step + i / 2) * S::kPieceElements + 2 * t;
      float pair[2] = {};
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (row < rows && channel + e < size) pair[e] = from[row * stride + channel + e];
      }
      group.queries[step][i] = PackPair<typename S::T>(pair[0], pair[1]);
    }
  }
}

// Scales scores and adds biases; `keys` of the tile are real. lines: the lane's queries' of the bias, from the tile's
// first key on; null: none. What is finite stays so.
template <typename S>
__device__ void AddBias(float scale, int keys, const float* const (&lines)[2], float (&scores)[S::kOctets][4]) {
  constexpr float kLeast = -3e38f;
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < S::kOctets; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int key = 8 * j + 2 * t + e;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float bias = 0;
        if (lines[r] != nullptr && key < keys) {
          bias = lines[r][key];
          if (bias != -INFINITY) bias = fmaxf(bias * kLog2E, kLeast);
        }
        float& score = scores[j][2 * r + e];
        score = key < keys ? fmaf(score, scale, bias) : -INFINITY;
      }
    }
  }
}

template <typename S>
__device__ void WriteOutput(float* to, int64_t stride, int size, int rows, const Group<S>& group) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float total = SumOfLanes<4>(group.totals[r]);
    const float scale = total == 0 ? 0.0f : 1 / total;
    const int row = g + 8 * r;
    if (row >= rows) continue;
#pragma unroll
    for (int octet = 0; octet < S::kChannelOctets; ++octet) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int channel = 8 * octet + 2 * t + e;
        if (channel < size) to[row * stride + channel] = group.sums[octet][2 * r + e] * scale;
      }
    }
  }
}

template <typename S, bool kPacked>
__global__ void __launch_bounds__(kThreads) AttendHeads(const __grid_constant__ Work work) {
  __shared__ __align__(16) char shared[2 * S::kMatrixBytes];
  const HeadsAttended& call = work.call;
  uint32_t block = blockIdx.x;
  const int64_t tile = work.tiles.Split(block), head = work.heads.Split(block), sequence = block;
  const int64_t turn = call.bias_turns > 0 ? sequence % call.bias_turns : sequence;
  const int64_t query = tile * kQueries + threadIdx.x / 32 * kWarpQueries;
  const int rows = static_cast<int>(min(call.queries - query, int64_t{kWarpQueries}));  // of the warp; perhaps below 0
  const float scale = call.scale * kLog2E;
  Group<S> group;
  LoadQueries<S>(LineOf(call.query, sequence, head, query), call.query.token_stride, static_cast<int>(call.channels),
                 rows, group);
  Lines<S, kPacked> key_lines, value_lines;
  const auto load = [&](int64_t first) {
    const int keys = static_cast<int>(min(call.keys - first, int64_t{S::kKeys}));
    key_lines.Load(LineOf(call.key, sequence, head, first), call.key.token_stride, static_cast<int>(call.channels),
                   keys);
    value_lines.Load(LineOf(call.value, sequence, head, first), call.value.token_stride,
                     static_cast<int>(call.value_channels), keys);
  };
  load(0);
  for (int64_t first = 0; first < call.keys; first += S::kKeys) {
    const int keys = static_cast<int>(min(call.keys - first, int64_t{S::kKeys}));
    if (first > 0) __syncthreads();  // all have read the tile before
    key_lines.Put(shared);
    value_lines.Put(shared + S::kMatrixBytes);
    __syncthreads();
    if (first + S::kKeys < call.keys) load(first + S::kKeys);
    float scores[S::kOctets][4] = {};
    Scores<S>(SharedAddress(shared), static_cast<int>(call.channels), group, scores);
    const float* lines[2] = {};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = static_cast<int>(threadIdx.x) % 32 / 4 + 8 * r;
      if (call.bias.data != nullptr && row < rows) lines[r] = LineOf(call.bias, turn, head, query + row) + first;
    }
    AddBias<S>(scale, keys, lines, scores);
    Weigh<S>(group, scores);
    AddHalfValues<S>(SharedAddress(shared + S::kMatrixBytes), static_cast<int>(call.value_channels), scores, group);
  }
  float* const to = call.to + sequence * call.to_sequence_stride + head * call.to_head_stride;
  WriteOutput<S>(to + query * call.to_token_stride, call.to_token_stride, static_cast<int>(call.value_channels), rows,
                 group);
}

// Whether all lines of a view are aligned to four floats.
bool IsPacked(const HeadView& view, int64_t channels) {
  const auto bytes = reinterpret_cast<uintptr_t>(view.data);
  return bytes % 16 == 0 && (view.sequence_stride | view.head_stride | view.token_stride | channels) % 4 == 0;
}

template <typename S>
void Launch(const HeadsAttended& call, Stream& stream) {
  const int64_t tiles = CeilDiv(call.queries, kQueries);
  const LaunchGrid grid(tiles * call.heads * call.sequences);
  const Work work = {call, FastDivider(tiles), FastDivider(call.heads)};
  if (IsPacked(call.key, call.channels) && IsPacked(call.value, call.value_channels)) {
    AttendHeads<S, true><<<grid, kThreads, 0, QueueOf(stream)>>>(work);
  } else {
    AttendHeads<S, false><<<grid, kThreads, 0, QueueOf(stream)>>>(work);
  }
}

template <typename T>
void LaunchSize(const HeadsAttended& call, Stream& stream) {
  const int64_t size = std::max(call.channels, call.value_channels);
  if (size <= 32) return Launch<Shape<T, 32>>(call, stream);
  if (size <= 64) return Launch<Shape<T, 64>>(call, stream);
  Launch<Shape<T, kMostChannels>>(call, stream);
}

}  // namespace

bool CudaFunctions::Attends(const HeadsAttended& call) const {
  constexpr int64_t kMostBlocks = int64_t{1} << 30;  // a FastDivider counts them
  return IsHalf(call.factors) && std::max(call.channels, call.value_channels) <= kMostChannels &&
         CeilDiv(call.queries, kQueries) * call.heads * call.sequences <= kMostBlocks;
}

void CudaFunctions::Attend(const HeadsAttended& call, Stream& stream) const {
  VisitHalf(call.factors, [&]<DType kHalf>() { LaunchSize<Element<kHalf>>(call, stream); });
}

}  // namespace swizzle::cuda
