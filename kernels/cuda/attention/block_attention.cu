#include <algorithm>

#include "kernels/cuda/attention/attention_warpgroup.cuh"
#include "kernels/cuda/attention/block_attention.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/powers.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/cuda/tensor_core/tile_copy.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kBlock = AttentionBlocks::kSize;
constexpr int kWarp = 32, kRole = 128, kGroups = 2, kThreads = (kGroups + 1) * kRole;  // consumers, then the producer
constexpr int kQueriesOfGroup = kBlock / kGroups;
constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
constexpr int kSlabColumns = 64, kSlabBytes = kBlock * kSlabColumns * 2;

struct Args {
  CUtensorMap queries, keys, values;
  const int32_t* offsets;
  const int32_t* order;
  const AttentionBlocks::Block* blocks;
  const uint4* masks;
  void* output;
  int64_t token_stride, head_stride;        // of the output
  int32_t columns_of_head;                  // from one head's slabs to the next's; 0: they lie in a stack
  int32_t length, heads, sequences, items;  // of tokens a sequence; tiles of all heads and sequences
  float scale;                              // of scores, to powers of two
};

template <int kHeadDim>
struct Shape {
  static constexpr int kSlabs = kHeadDim / kSlabColumns;
  static constexpr int kMatrixBytes = kSlabs * kSlabBytes;
  static constexpr int kTiles = 2;                         // of queries
  static constexpr int kStages = kHeadDim == 128 ? 4 : 8;  // each a block of keys or of values
  struct Shared {
    alignas(1024) uint8_t queries[kTiles][kMatrixBytes];
    alignas(1024) uint8_t stages[kStages][kMatrixBytes];
    StageBarriers<kStages> barriers;
    StageBarriers<kTiles> query_barriers;
  };
};

// A block's tiles, one after the other. Every second round goes backwards, so that who got the longest gets the
// shortest next.
struct Walk {
  const Args& args;
  int round = 0;
  int tile, head, sequence, first, count;  // first: of its blocks

  __device__ explicit Walk(const Args& all) : args(all) {}
  __device__ bool Next() {
    const int turn = round % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    const int item = round * static_cast<int>(gridDim.x) + turn;
    ++round;
    if (item >= args.items) return false;
    const int of_tile = args.heads * args.sequences;
    tile = __ldg(args.order + item / of_tile);
    head = item % of_tile % args.heads;
    sequence = item % of_tile / args.heads;
    first = __ldg(args.offsets + tile);
    count = __ldg(args.offsets + tile + 1) - first;
    return true;
  }
};

// One thread. Stages in the order in which they are read: keys, keys, values, keys, values, ..., values.
template <int kHeadDim>
__device__ void Produce(const Args& args, typename Shape<kHeadDim>::Shared& shared) {
  using S = Shape<kHeadDim>;
  Producer<S::kStages> stages(shared.barriers);
  Producer<S::kTiles> queries(shared.query_barriers);
  for (Walk walk(args); walk.Next();) {
    if (walk.count == 0) continue;
    const int column = walk.head * args.columns_of_head, head = args.columns_of_head == 0 ? walk.head : 0;
    const auto copy = [&](const CUtensorMap& map, int block, uint8_t* to, auto& ring) {
      ring.WaitUntilEmpty();
      ring.full().ArriveExpecting(S::kMatrixBytes);
#pragma unroll
      for (int i = 0; i < S::kSlabs; ++i) {
        CopyStackedSlab(SharedAddress(to) + i * kSlabBytes, map, block * kBlock, column + i * kSlabColumns,
                        walk.sequence, head, ring.full());
      }
      ring.Next();
    };
    const auto load = [&](const CUtensorMap& map, int i) {
      copy(map, __ldg(&args.blocks[walk.first + i].keys), shared.stages[stages.stage()], stages);
    };
    copy(args.queries, walk.tile, shared.queries[queries.stage()], queries);
    load(args.keys, 0);
    for (int i = 1; i < walk.count; ++i) {
      load(args.keys, i);
      load(args.values, i - 1);
    }
    load(args.values, walk.count - 1);
  }
}

// A warpgroup's 64 queries. A lane has rows g and g + 8 of its warp's 16.
template <typename T, int kHeadDim>
class Attender {
 public:
  using S = Shape<kHeadDim>;
  __device__ Attender(const Args& args, typename S::Shared& shared)
      : args_(args), shared_(shared), stages_(shared.barriers), queries_(shared.query_barriers) {}

  __device__ void Run() {
    for (Walk walk(args_); walk.Next();) {
      Reset();
      if (walk.count > 0) Attend(walk);
      Write(walk);
    }
  }

 private:
  static constexpr int kDepth = 16, kScores = kBlock / 2, kSums = kHeadDim / 2;

  __device__ static int Row() {
    return threadIdx.x / kRole * kQueriesOfGroup + threadIdx.x % kRole / kWarp * 16 + threadIdx.x % kWarp / 4;
  }

  __device__ void Reset() {
#pragma unroll
    for (float& sum : sums_) sum = 0;
    softmax_.Reset();
  }

  __device__ void Attend(const Walk& walk) {
    const AttentionBlocks::Block* const blocks = args_.blocks + walk.first;
    float scores[kScores], growth[2];
    uint32_t weights[kBlock / kDepth][4];
    queries_.WaitUntilFull();
    int keys = QueueScores(scores);
    WaitForProducts(scores);
    Release(keys);
    Weigh(scores, __ldg(&blocks[0].mask), growth);
    PackWeights<T>(scores, weights);
#pragma unroll 1
    for (int i = 1; i < walk.count; ++i) {
      const int mask = __ldg(&blocks[i].mask);
      keys = QueueScores(scores);
      const int values = QueueValues(weights);
      WaitForProducts<1>(scores);
      Release(keys);
      Weigh(scores, mask, growth);
      WaitForProducts(sums_);
      Release(values);
      Grow(sums_, growth);
      PackWeights<T>(scores, weights);
    }
    ReleaseQueries();
    const int values = QueueValues(weights);
    WaitForProducts(sums_);
    Release(values);
  }

  // Scores of the next keys; returns their stage.
  __device__ int QueueScores(float (&scores)[kScores]) {
    const int stage = stages_.stage();
    stages_.WaitUntilFull();
    stages_.Next();
    const uint32_t keys = SharedAddress(shared_.stages[stage]);
    const uint32_t queries =
        SharedAddress(shared_.queries[queries_.stage()]) + threadIdx.x / kRole * (kQueriesOfGroup * 128);
    FenceProducts();
#pragma unroll
    for (int step = 0; step < kHeadDim / kDepth; ++step) {
      const uint32_t at = step / 4 * kSlabBytes + step % 4 * (kDepth * 2);
      if (step == 0) {
        QueueProduct<false, T>(scores, SharedOperand(queries + at), SharedOperand(keys + at));
      } else {
        QueueProduct<true, T>(scores, SharedOperand(queries + at), SharedOperand(keys + at));
      }
    }
    CommitProducts();
    return stage;
  }

  __device__ int QueueValues(const uint32_t (&weights)[kBlock / kDepth][4]) {
    const int stage = stages_.stage();
    stages_.WaitUntilFull();
    stages_.Next();
    const uint32_t values = SharedAddress(shared_.stages[stage]);
    FenceProducts();
#pragma unroll
    for (int step = 0; step < kBlock / kDepth; ++step) {
      QueueProduct<true, T, T, kDepthOuter>(sums_, weights[step],
                                            SharedOperand(values + step * (kDepth * 128), kSlabBytes));
    }
    CommitProducts();
    return stage;
  }

  __device__ void Release(int stage) {
    if (threadIdx.x % kWarp == 0) stages_.Release(stage);
  }
  __device__ void ReleaseQueries() {
    if (threadIdx.x % kWarp == 0) queries_.Release(queries_.stage());
    queries_.Next();
  }

  __device__ void Weigh(float (&scores)[kScores], int mask, float (&growth)[2]) {
    if (mask >= 0) Hide(scores, args_.masks + int64_t{mask} * kBlock + Row());
    softmax_.Weigh(scores, args_.scale, growth);
  }

  // What the masks of rows g and g + 8 lack.
  __device__ static void Hide(float (&scores)[kScores], const uint4* masks) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const uint4 bits = __ldg(masks + 8 * e);
      const uint32_t words[4] = {bits.x >> 2 * t, bits.y >> 2 * t, bits.z >> 2 * t, bits.w >> 2 * t};
#pragma unroll
      for (int j = 0; j < kScores / 4; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          if ((words[j / 4] >> (j % 4 * 8 + k) & 1) == 0) scores[4 * j + 2 * e + k] = -INFINITY;
        }
      }
    }
  }

  __device__ void Write(const Walk& walk) {
    T* const output = static_cast<T*>(args_.output) + walk.head * args_.head_stride;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int query = walk.tile * kBlock + Row() + 8 * e;
      const int64_t token = int64_t{walk.sequence} * args_.length + query;
      StoreToken(sums_, e, softmax_.Inverse(e), query < args_.length, output + token * args_.token_stride);
    }
  }

  const Args& args_;
  typename S::Shared& shared_;
  Consumer<S::kStages> stages_;
  Consumer<S::kTiles> queries_;
  RunningSoftmax softmax_;
  float sums_[kSums];
};

template <typename T, int kHeadDim>
__global__ __launch_bounds__(kThreads, 1) void AttendBlocks(const __grid_constant__ Args args) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename Shape<kHeadDim>::Shared*>(dynamic_shared);
  if (threadIdx.x == 0) {
    shared.barriers.Init(1, kGroups * kRole / kWarp);
    shared.query_barriers.Init(1, kGroups * kRole / kWarp);
  }
  __syncthreads();
  if (threadIdx.x >= kGroups * kRole) {
    KeepRegisters<kProducerRegisters>();
    if (threadIdx.x == kGroups * kRole) Produce<kHeadDim>(args, shared);
  } else {
    TakeRegisters<kConsumerRegisters>();
    Attender<T, kHeadDim>(args, shared).Run();
  }
}

template <typename T, int kHeadDim>
void Launch(const Args& args, int multiprocessors, cudaStream_t queue) {
  using Shared = typename Shape<kHeadDim>::Shared;
  AllowSharedMemory(AttendBlocks<T, kHeadDim>, sizeof(Shared));
  const LaunchGrid grid(std::min<int64_t>(args.items, multiprocessors));
  AttendBlocks<T, kHeadDim><<<grid, kThreads, sizeof(Shared), queue>>>(args);
}

template <typename T>
void Launch(const SparseAttentionArgs& sparse, const Args& args, int multiprocessors, cudaStream_t queue) {
  if (sparse.head_dim == 64) return Launch<T, 64>(args, multiprocessors, queue);
  Launch<T, 128>(args, multiprocessors, queue);
}

}  // namespace

void QueueBlockAttention(const SparseAttentionArgs& args, const AttentionBlocks& blocks, int sequences,
                         int multiprocessors, cudaStream_t queue) {
  const int64_t items = int64_t{blocks.tiles()} * args.heads * sequences;
  if (items == 0) return;
  // The operands are alike.
  const int64_t stride = args.queries.token_stride, to_head = args.queries.head_stride;
  const bool stacked = to_head % stride == 0;
  // What lies past a sequence's end are zeros, not the next one's: masks make weights 0, which no number times is.
  const auto slabs = [&](const HeadMatrices& matrices) {
    const Stack of_sequences = {sequences, blocks.tokens() * stride};
    const Stack of_heads = stacked && args.heads > 1 ? Stack{args.heads, to_head} : Stack{1, stride};
    return DescribeStackedSlabs(matrices.data, blocks.tokens(), stride, stride, of_sequences, of_heads, kBlock);
  };
  const Args all = {.queries = slabs(args.queries),
                    .keys = slabs(args.keys),
                    .values = slabs(args.values),
                    .offsets = blocks.offsets(),
                    .order = blocks.order(),
                    .blocks = blocks.blocks(),
                    .masks = blocks.masks(),
                    .output = args.output.data,
                    .token_stride = args.output.token_stride,
                    .head_stride = args.output.head_stride,
                    .columns_of_head = static_cast<int32_t>(stacked ? 0 : to_head),
                    .length = static_cast<int32_t>(blocks.tokens()),
                    .heads = args.heads,
                    .sequences = sequences,
                    .items = static_cast<int32_t>(items),
                    .scale = args.scale * kLog2E};
  VisitHalf(args.dtype, [&]<DType kHalf>() { Launch<Element<kHalf>>(args, all, multiprocessors, queue); });
}

}  // namespace swizzle::cuda
