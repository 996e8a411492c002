#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_operands.cuh"
#include "kernels/cuda/attention/attention_warpgroup.cuh"
#include "kernels/cuda/attention/attention_wgmma.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/mma.cuh"
#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/cuda/tensor_core/tile_copy.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32, kGroupThreads = 128;
constexpr int kTile = 64;          // tokens of a slab: a warpgroup's queries, or keys
constexpr int kStages = 2;         // tiles of keys and values in shared memory
constexpr int kDepth = 16;         // of a product
constexpr int kPieceElements = 8;  // of 16 bytes: in kRows tokens, in kNhwc channels

// A slab has 64 columns: in kRows 64 tokens of a head's channels, in kNhwc 64 channels of 64 tokens (of heads of 32,
// half of them the next one's, or zeros). A tile is slab after slab.
template <Layout kLayout, int kSize, int kBlockGroups>
struct Shape {
  static constexpr bool kByRows = kLayout == Layout::kRows;
  static constexpr int kGroups = kBlockGroups, kThreads = kGroups * kGroupThreads, kQueries = kGroups * kTile;
  static constexpr int kUnit = kByRows ? kPieceElements : 1;  // of tokens that slabs begin with: copies are of 16 bytes
  static constexpr int kSlabRows = kByRows ? kSize : kTile, kSlabBytes = kSlabRows * 128;
  static constexpr int kSlabs = kByRows ? 1 : CeilDiv(kSize, 64);
  static constexpr int kTileBytes = kSlabs * kSlabBytes;
  static constexpr int kBlocks = (kSize <= 64 ? 4 : 2) / kGroups;  // of a multiprocessor, whose registers they share
  struct Shared {
    alignas(1024) uint8_t queries[kGroups][kTileBytes];
    alignas(1024) uint8_t keys[kStages][kTileBytes];
    alignas(1024) uint8_t values[kStages][kTileBytes];
    Barrier queries_full, keys_full[kStages], values_full[kStages];

    __device__ void InitBarriers() {
      queries_full.Init(1);
      for (int i = 0; i < kStages; ++i) keys_full[i].Init(1), values_full[i].Init(1);
      PublishToProducts();  // and to copies
    }
  };
};

template <typename T>
struct Args {
  AttentionOperands<T> op;
  CUtensorMap queries, keys, values;
};

template <Layout kLayout, typename T, int kSize, int kGroups>
class Attender {
  using S = Shape<kLayout, kSize, kGroups>;
  using Shared = typename S::Shared;

 public:
  __device__ Attender(const Args<T>& args, Shared& shared) : args_(args), op_(args.op), shared_(shared) {}

  __device__ void Run() {
    int tile = static_cast<int>(blockIdx.x);
    AttentionWork work;
    bool found = FindAttentionTile<S::kQueries, S::kUnit>(op_, tile, work);
    WaitForResults();
    while (found) {
      LoadFirst(work);
      AttentionWork next = work;
      found = FindNextAttentionTile<S::kQueries, S::kUnit>(op_, gridDim.x, tile, next);  // while the slabs come
      Attend(work);
      if (!found) return;
      PublishToProducts();  // what was written here comes before the copies that follow
      __syncthreads();
      work = next;
    }
  }

 private:
  using Scores = float[kTile / 2];
  using Sums = float[kSize / 2];
  static constexpr bool kByRows = S::kByRows;
  static constexpr Order kScoreOrder = kByRows ? kDepthOuter : kDepthInner;
  static constexpr Order kValueOrder = kByRows ? kDepthInner : kDepthOuter;

  __device__ static int Group() { return static_cast<int>(threadIdx.x) / kGroupThreads; }
  __device__ static int TilesOf(int tokens) { return (tokens + kTile - 1) / kTile; }

  __device__ static int Head() { return static_cast<int>(blockIdx.y); }

  // Tiles of keys are from the range's first on.
  __device__ KeyRange KeysOf(const AttentionWork& work) const {
    return KeyRange(op_, work, work.begin / S::kUnit * S::kUnit, S::kQueries, kTile);
  }

  // Products are of warps in step, whose first lane loads.
  __device__ void LoadFirst(const AttentionWork& work) const {
    const KeyRange range = KeysOf(work);
    const int tiles = TilesOf(range.end - range.first);
    if (tiles > 0) LoadQueries(work);
    for (int tile = 0; tile < min(tiles, kStages); ++tile) LoadKeys(range.first, tile);
    __syncwarp();
  }

  // A group without queries goes along: its results are not stored.
  __device__ void Attend(const AttentionWork& work) {
    const KeyRange range = KeysOf(work);
    const int tiles = TilesOf(range.end - range.first), origin = range.first;
    RunningSoftmax softmax;
    softmax.Reset();
    Sums sums = {};
    if (tiles > 0) WaitForQueries();
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % kStages, first = origin + tile * kTile;
      const uint32_t parity = key_parities_ >> stage & 1;
      key_parities_ ^= 1u << stage;
      const InSequence inside(work, first);
      Scores scores;
      shared_.keys_full[stage].Wait(parity);
      FindScores(stage, scores);
      shared_.values_full[stage].Wait(parity);
      if (!inside.Covers(kTile)) ClearValues(stage, inside);
      float growth[2];
      softmax.Weigh(scores, Mask(work, first, inside, scores), growth);
      if (tile > 0) Grow(sums, growth);
      AddValues(stage, scores, sums);
      if (tile + kStages >= tiles) continue;
      __syncthreads();
      LoadKeys(origin, tile + kStages);
      __syncwarp();
    }
    Store(work, softmax, sums);
  }

  __device__ void LoadQueries(const AttentionWork& work) const {
    if (threadIdx.x != 0) return;
    const int groups = min(S::kGroups, TilesOf(work.end - work.first));
    shared_.queries_full.ArriveExpecting(groups * S::kTileBytes);
    for (int group = 0; group < groups; ++group) {
      LoadTile(args_.queries, Head(), work.first + group * kTile, shared_.queries[group], shared_.queries_full);
    }
  }
  __device__ void WaitForQueries() {
    shared_.queries_full.Wait(query_parity_);
    query_parity_ ^= 1;
  }

  // The keys and values of a tile, which are counted from `origin`.
  __device__ void LoadKeys(int origin, int tile) const {
    if (threadIdx.x != 0) return;
    const int stage = tile % kStages, token = origin + tile * kTile, head = op_.KeyHead(Head());
    shared_.keys_full[stage].ArriveExpecting(S::kTileBytes);
    LoadTile(args_.keys, head, token, shared_.keys[stage], shared_.keys_full[stage]);
    shared_.values_full[stage].ArriveExpecting(S::kTileBytes);
    LoadTile(args_.values, head, token, shared_.values[stage], shared_.values_full[stage]);
  }

  __device__ void LoadTile(const CUtensorMap& map, int head, int token, uint8_t* to, Barrier& full) const {
#pragma unroll
    for (int slab = 0; slab < S::kSlabs; ++slab) {
      const uint32_t at = SharedAddress(to) + slab * S::kSlabBytes;
      const int channel = head * kSize + slab * 64;
      CopySlab(at, map, kByRows ? channel : token, kByRows ? token : channel, full);
    }
  }

  __device__ void FindScores(int stage, Scores& scores) const {
    const uint32_t queries = SharedAddress(shared_.queries[Group()]), keys = SharedAddress(shared_.keys[stage]);
    FenceProducts();
#pragma unroll
    for (int step = 0; step < kSize / kDepth; ++step) {
      const int at = kByRows ? step * (kDepth * 128) : step / 4 * S::kSlabBytes + step % 4 * (kDepth * 2);
      const uint64_t left = SharedOperand(queries + at), right = SharedOperand(keys + at);
      if (step == 0) {
        QueueProduct<false, T, T, kScoreOrder, kScoreOrder>(scores, left, right);
      } else {
        QueueProduct<true, T, T, kScoreOrder, kScoreOrder>(scores, left, right);
      }
    }
    CommitProducts();
    WaitForProducts(scores);
  }

  // What a stage's values hold of tokens of other sequences becomes zero. All threads of the block call it.
  __device__ void ClearValues(int stage, const InSequence& inside) const {
    static_assert(S::kThreads % 64 == 0, "a thread's pieces of kRows are of the same tokens");
    const int column = (threadIdx.x % 8 ^ threadIdx.x / 8 % 8) * kPieceElements;
    const uint4 kept = kByRows ? MaskOf(inside, column) : uint4{};
#pragma unroll
    for (int i = threadIdx.x; i < S::kTileBytes / 16; i += S::kThreads) {
      auto& piece = *reinterpret_cast<uint4*>(shared_.values[stage] + i * 16);
      if (kByRows) {
        piece = {piece.x & kept.x, piece.y & kept.y, piece.z & kept.z, piece.w & kept.w};
      } else if (!inside.Has(i / 8 % S::kSlabRows)) {
        piece = {};
      }
    }
    PublishToProducts();
    __syncthreads();
  }

  // The bits of a piece that are of the sequence.
  __device__ static uint4 MaskOf(const InSequence& inside, int token) {
    const auto pair = [&](int i) {
      return (inside.Has(token + i) ? 0xFFFFu : 0) | (inside.Has(token + i + 1) ? 0xFFFF0000u : 0);
    };
    return {pair(0), pair(2), pair(4), pair(6)};
  }

  // Adds biases and takes out keys of other sequences; returns what scores are to be multiplied with. `first` is the
  // tile's first key.
  __device__ float Mask(const AttentionWork& work, int first, const InSequence& inside, Scores& scores) const {
    const bool pairs = op_.pair_biases.data != nullptr, biased = op_.key_bias != nullptr || pairs || !(op_.scale > 0);
    if (biased) AddBiases(first, inside, scores);
    if (pairs) AddPairs(work, first, scores);
    if (!inside.Covers(kTile)) {
      ForEachKey(scores, [&](int key, float& score) { score = inside.Has(key) ? score : -INFINITY; });
    }
    return biased ? 1.0f : op_.scale;
  }
  __device__ void AddBiases(int first, const InSequence& inside, Scores& scores) const {
    ForEachKey(scores, [&](int key, float& score) {
      const float bias = op_.key_bias != nullptr && inside.Has(key) ? op_.key_bias[first + key] * kLog2E : 0.0f;
      score = fmaf(score, op_.scale, bias);
    });
  }

  __device__ void AddPairs(const AttentionWork& work, int first, Scores& scores) const {
    const int thread = threadIdx.x % kGroupThreads;
    const int query = work.first - work.begin + Group() * kTile + thread / kWarp * 16 + thread % kWarp / 4;
    const int key = first - work.begin + 2 * (thread % 4);
    const PairBiases biases = op_.pair_biases.At(work.begin);
#pragma unroll
    for (int j = 0; j < kTile / 2; ++j) {
      scores[j] += biases.At(Head(), query + j / 2 % 2 * 8, key + j / 4 * 8 + j % 2);
    }
  }

  // Calls function(a key of the tile, a score of it).
  template <typename Function>
  __device__ static void ForEachKey(Scores& scores, const Function& function) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < kTile / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) function(8 * j + 2 * t + e % 2, scores[4 * j + e]);
    }
  }

  // sums += weights by values, the weights being packed first.
  __device__ void AddValues(int stage, const Scores& scores, Sums& sums) const {
    uint32_t weights[kTile / kDepth][4];
    PackWeights<T>(scores, weights);
    const uint32_t values = SharedAddress(shared_.values[stage]);
    FenceProducts();
#pragma unroll
    for (int step = 0; step < kTile / kDepth; ++step) {
      const int at = step * kDepth * (kByRows ? 2 : 128);
      QueueProduct<true, T, T, kValueOrder>(sums, weights[step], SharedOperand(values + at, S::kSlabBytes));
    }
    CommitProducts();
    WaitForProducts(sums);
  }

  __device__ void Store(const AttentionWork& work, const RunningSoftmax& softmax, const Sums& sums) const {
    const int query = work.first + Group() * kTile;  // the group's first
    if (query >= work.end) return;
    T* const to = op_.output + int64_t{Head()} * kSize * op_.out.channel;
    const InSequence inside(work, query);
    if constexpr (kByRows) {
      PutInRows(softmax, sums);
      MeetGroup();
      StoreRows(to + query, inside);
    } else {
      const int row = static_cast<int>(threadIdx.x) % kGroupThreads / kWarp * 16 + threadIdx.x % kWarp / 4;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        T* const token = to + int64_t{query + row + 8 * e} * op_.out.token;
        StoreToken(sums, e, softmax.Inverse(e), inside.Has(row + 8 * e), token);
      }
    }
  }

  // Numbers of barriers that are known keep the others free for more blocks.
  __device__ static void MeetGroup() {
    if (S::kGroups == 1 || Group() == 0) {
      asm volatile("bar.sync 1, %0;" ::"n"(kGroupThreads) : "memory");
    } else {
      asm volatile("bar.sync 2, %0;" ::"n"(kGroupThreads) : "memory");
    }
  }

  // To where the warp's queries were, as they lay.
  __device__ void PutInRows(const RunningSoftmax& softmax, const Sums& sums) const {
    const int g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4, warp = threadIdx.x % kGroupThreads / kWarp;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float factor = softmax.Inverse(e);
#pragma unroll
      for (int octet = 0; octet < kSize / 8; ++octet) {
        const uint32_t pair =
            TransposeInWarp(PackPair<T>(sums[4 * octet + 2 * e] * factor, sums[4 * octet + 2 * e + 1] * factor));
        const int piece = (2 * warp + e) ^ g;  // channel 8 * octet + g
        *reinterpret_cast<uint32_t*>(shared_.queries[Group()] + (8 * octet + g) * 128 + piece * 16 + t * 4) = pair;
      }
    }
  }

  // The group's tokens of each channel: whole pieces, then what is of pieces that sequences share.
  __device__ void StoreRows(T* to, const InSequence& inside) const {
    const int low = max(inside.begin, 0), high = min(inside.end, kTile);
    const auto whole = [&](int piece) {
      return low <= piece * kPieceElements && piece * kPieceElements + kPieceElements <= high;
    };
    const int thread = threadIdx.x % kGroupThreads;
    const int piece = thread % 8;
    if (whole(piece)) {
#pragma unroll
      for (int channel = thread / 8; channel < kSize; channel += kGroupThreads / 8) {
        *reinterpret_cast<uint4*>(to + channel * op_.out.channel + piece * kPieceElements) =
            *reinterpret_cast<const uint4*>(Stored(channel, piece));
      }
    }
    if (low % kPieceElements == 0 && high % kPieceElements == 0) return;
    const int edge = (thread % 16 < kPieceElements ? low : high) / kPieceElements, element = thread % kPieceElements;
    const int token = edge * kPieceElements + element;
    if (token < low || token >= high || whole(edge)) return;
#pragma unroll 4
    for (int channel = thread / 16; channel < kSize; channel += kGroupThreads / 16) {
      to[channel * op_.out.channel + token] = reinterpret_cast<const T*>(Stored(channel, edge))[element];
    }
  }

  // Where PutInRows has put a piece.
  __device__ const uint8_t* Stored(int channel, int piece) const {
    return shared_.queries[Group()] + channel * 128 + (piece ^ channel % 8) * 16;
  }

  const Args<T>& args_;
  const AttentionOperands<T>& op_;
  Shared& shared_;
  uint32_t query_parity_ = 0, key_parities_ = 0;  // of phases to wait for; of the stages a bit each
};

template <Layout kLayout, typename T, int kSize, int kGroups>
__global__ void __launch_bounds__(Shape<kLayout, kSize, kGroups>::kThreads, Shape<kLayout, kSize, kGroups>::kBlocks)
    AttendSlabs(const __grid_constant__ Args<T> args) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename Shape<kLayout, kSize, kGroups>::Shared*>(dynamic_shared);
  LetNextStart();
  if (threadIdx.x == 0) {
    PrefetchMap(args.queries), PrefetchMap(args.keys), PrefetchMap(args.values);
    shared.InitBarriers();
  }
  __syncthreads();
  Attender<kLayout, T, kSize, kGroups>(args, shared).Run();
}

template <Layout kLayout, typename T, int kSize, int kGroups>
void LaunchGroups(const Args<T>& args, int heads, Stream& stream) {
  using S = Shape<kLayout, kSize, kGroups>;
  constexpr auto* kKernel = AttendSlabs<kLayout, T, kSize, kGroups>;
  AllowSharedMemory(kKernel, sizeof(typename S::Shared));
  const LaunchGrid grid(AttentionBlocksInTurn(args.op, S::kQueries), heads);
  LaunchDependent(kKernel, grid, S::kThreads, sizeof(typename S::Shared), QueueOf(stream), args);
}

// Blocks of two warpgroups, whose keys are read half as often, where sequences are long and fill the device.
template <Layout kLayout, typename T, int kSize>
void Launch(const AttentionOperands<T>& op, int heads, Stream& stream) {
  constexpr int kLong = 4 * kTile;
  if (op.tokens == 0) return;
  using S = Shape<kLayout, kSize, 1>;
  const auto slabs = [&](const T* first, int64_t of_heads, const TokenStrides& strides) {
    const int64_t channels = of_heads * kSize;
    if (S::kByRows) return DescribeSlabs(first, channels, op.tokens, strides.channel, S::kSlabRows);
    return DescribeSlabs(first, op.tokens, channels, strides.token, S::kSlabRows);
  };
  const int64_t key_heads = heads / op.group_size;
  const Args<T> args = {op, slabs(op.queries, heads, op.query), slabs(op.keys, key_heads, op.key),
                        slabs(op.values, key_heads, op.value)};
  const bool fills = int64_t{op.tokens} * heads >= int64_t{2 * kTile} * MultiprocessorsOf(stream);
  if (fills && op.tokens >= int64_t{kLong} * op.sequences) {
    return LaunchGroups<kLayout, T, kSize, 2>(args, heads, stream);
  }
  LaunchGroups<kLayout, T, kSize, 1>(args, heads, stream);
}

}  // namespace

bool AcceptsAttentionWgmma(const Problem& problem) {
  const int64_t heads = problem.attention().heads, size = problem.output.channels / heads;
  const bool fits = size == 32 || size == 64 || size == 128;
  return fits && QueryChannels(problem) == problem.output.channels && AcceptsAttention(problem);
}

template <Layout kLayout, DType kDType>
void AttendWgmma(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const auto op = AttentionOperandsOf<kLayout, kDType>(args);
  const int heads = args.problem->attention().heads;
  if (op.vo_size == 32) return Launch<kLayout, T, 32>(op, heads, stream);
  if (op.vo_size == 64) return Launch<kLayout, T, 64>(op, heads, stream);
  Launch<kLayout, T, 128>(op, heads, stream);
}

template void AttendWgmma<Layout::kNhwc, DType::kFloat16>(const KernelArgs&, Stream&);
template void AttendWgmma<Layout::kNhwc, DType::kBFloat16>(const KernelArgs&, Stream&);
template void AttendWgmma<Layout::kRows, DType::kFloat16>(const KernelArgs&, Stream&);
template void AttendWgmma<Layout::kRows, DType::kBFloat16>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda
