// What the kernels of conv_shfl_bw.h and conv_shfl_bw_window.h have in common: a CTA's ring, its tiles, and the
// warpgroup that multiplies and stores. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_CUH_

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/cuda/conv/operands/tile_ending.cuh"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"

namespace swizzle::cuda::shfl_bw {

constexpr int kWarp = 32, kRole = 128, kThreads = 2 * kRole;  // consumers, then producers
constexpr int kWarps = kRole / kWarp;                         // of a role
constexpr int kTileRows = RowGroups::kRows, kStep = RowGroups::kStep, kDepth = RowGroups::kStage;
constexpr int kStagesOfChunk = RowGroups::kChunk / RowGroups::kStage;
constexpr int kPieceElements = 8, kPieceBytes = 16;
constexpr int kAtomBytes = kDepth * 128;  // 64 columns of X of a stage, 128 bytes a row
constexpr int kStepBytes = kTileRows * kStep * 2;

struct Args {
  const void* x;
  const uint16_t* weights;
  const uint4* columns;
  const RowGroup* groups;
  const int32_t* rows;
  const float* bias;
  const void* residual;
  void* y;
  int64_t stride;  // elements
  int32_t group_count, tiles;
  bool clamps;
  float alpha = 1, beta = 1;  // of sums and residual
};

// Of FP32 weights and X as FP16 parts. Y is FP32, and so is what is added to it, which does not come through the ring:
// Args::residual is null.
struct PartArgs : Args {
  const float *row_inverses, *column_inverses;  // undo the scales: of each place and of each column of X
  const float* added;                           // or null
};

// `stride` is of Y and the residual, tiles of `width` columns.
template <typename Operands>
Args ArgsOf(const Operands& operands, int width) {
  const RowGroups& weight = *operands.weight;
  return {.x = operands.x,
          .weights = weight.weights(),
          .columns = reinterpret_cast<const uint4*>(weight.columns()),
          .groups = weight.groups(),
          .rows = weight.rows(),
          .bias = weight.bias(),
          .residual = operands.residual,
          .y = operands.y,
          .stride = operands.stride,
          .group_count = static_cast<int32_t>(weight.count()),
          .tiles = static_cast<int32_t>(weight.count() * CeilDiv(operands.columns, width)),
          .clamps = std::isfinite(operands.epilogue.low) || std::isfinite(operands.epilogue.high)};
}

// A CTA of kGroups groups by kWidth columns, and what it has in shared memory. Of one group two fit a multiprocessor; a
// pair, whose groups have the same columns, has one to itself, with consumers for each.
template <int kWidth, int kGroups = 1>
struct Shape {
  static constexpr int kCtas = 2 / kGroups;  // a multiprocessor's
  static constexpr int kThreads = (kGroups + 1) * kRole;
  static constexpr int kProducerRegisters = kGroups == 1 ? 72 : 88, kConsumerRegisters = kGroups == 1 ? 184 : 208;
  static constexpr int kParts = kWidth == 256 && kCtas == 2 ? 2 : 1;  // one product of 256 takes too many registers
  static constexpr int kPartWidth = kWidth / kParts;
  static constexpr int kAtoms = kWidth / 64;
  static constexpr int kSharedBytes = kGroups == 1 ? 113 * 1024 : 227 * 1024;
  static constexpr int kStageBytes = kAtoms * kAtomBytes + kGroups * 2 * kStepBytes;
  static constexpr int kMostStages = kGroups == 1 ? 8 : 12;
  static constexpr int kStages =
      (kSharedBytes - 1024) / kStageBytes < kMostStages ? (kSharedBytes - 1024) / kStageBytes : kMostStages;
  struct alignas(1024) Stage {
    uint8_t x[kAtoms * kAtomBytes];  // 16-byte piece p of row r of an atom lies at p ^ (r % 8)
    uint8_t weights[kGroups][2 * kStepBytes];
  };
  // Or half of a group's residual, rows so far apart that a warp's pairs of eight rows lie in 32 banks.
  static constexpr int kResidualRows = kTileRows / 2, kResidualPitch = kWidth * 2 + kPieceBytes;
  static_assert(kResidualRows == kWarp && kResidualRows * kResidualPitch <= kStageBytes);
  struct Shared {
    Stage stages[kStages];
    StageBarriers<kStages> barriers;
  };
};

// A CTA's tiles, one after the other: groups run fastest, so that CTAs at work share columns of X.
struct TileWalk {
  int tile;
  const Args& args;

  __device__ explicit TileWalk(const Args& all) : tile(blockIdx.x), args(all) {}
  __device__ bool HasTile() const { return tile < args.tiles; }
  __device__ int64_t FirstColumn(int width) const { return int64_t{tile / args.group_count} * width; }
  __device__ RowGroup Group() const { return Load(tile); }
  // The next tile's; the last one's again at the end.
  __device__ RowGroup NextGroup() const {
    const int next = tile + static_cast<int>(gridDim.x);
    return Load(next < args.tiles ? next : tile);
  }
  __device__ void Next() { tile += static_cast<int>(gridDim.x); }

 protected:
  __device__ RowGroup Load(int at) const {
    const uint4 bits = __ldg(reinterpret_cast<const uint4*>(args.groups + at % args.group_count));
    return {bits.x, bits.y, bits.z, bits.w};
  }
};

// After its columns a tile's residual comes through the ring, two stages a group: asked for when it is stored, it would
// be waited for. A row a lane of as many of the producer's warps.
template <int kWidth, int kGroups = 1, typename S = Shape<kWidth, kGroups>>
__device__ void FillResidual(const Args& args, const RowGroup& group, int64_t first_column, typename S::Shared& shared,
                             Producer<S::kStages>& producer) {
  if (args.residual == nullptr) return;
  const int warp = threadIdx.x / kWarp % kWarps, lane = threadIdx.x % kWarp;
  const auto bytes = static_cast<uint32_t>(min(int64_t{kWidth}, args.stride - first_column)) * 2;
#pragma unroll
  for (int half = 0; half < 2 * kGroups; ++half) {
    producer.WaitUntilEmpty();
    if (warp == half) {
      const int row = __ldg(args.rows + group.place + half * kWarp + lane);
      const int rows = __popc(__ballot_sync(0xFFFFFFFFu, row >= 0));
      if (lane == 0) producer.full().ArriveExpecting(rows * bytes);
      __syncwarp();
      if (row >= 0) {
        const uint32_t to = SharedAddress(&shared.stages[producer.stage()]) + lane * S::kResidualPitch;
        producer.full().CopyBulk(to, static_cast<const uint16_t*>(args.residual) + row * args.stride + first_column,
                                 bytes);
      }
    }
    producer.full().ArriveAfterCopies();
    producer.Next();
  }
}

// Where a lane's octets of columns lie in a row of Y, four octets from one to the next.
class RowPlaces {
 public:
  static constexpr bool kAligned = true;  // on 16 bytes, so that copies bring a residual (FillResidual)
  __device__ RowPlaces(const Args& args, int64_t first)
      : first_(first + threadIdx.x % 4 * kPieceElements), left_(args.stride - first_) {}
  template <typename T>
  __device__ void Store(T* row, int i, const uint4& bits) const {
    if (i * 32 < left_) *reinterpret_cast<uint4*>(row + first_ + i * 32) = bits;
  }

 private:
  int64_t first_, left_;
};

// What a lane's two rows end with. Lane (g, t) has rows g and g + 8 of its warp's 16.
struct LaneRows {
  int rows[2];
  float biases[2];
  float inverses[2];  // of parts
};

// Places is made of the arguments and a part's first column; those that are not kAligned load pieces, too. Consumers of
// a pair's second group are threads from kRole on: its rows are in the next 64 places.
template <typename T, int kWidth, typename Function, typename AllArgs = Args, typename Places = RowPlaces,
          int kGroups = 1>
class Multiplier {
 public:
  using S = Shape<kWidth, kGroups>;
  static constexpr bool kOfParts = std::is_base_of_v<PartArgs, AllArgs>;
  using Stored = std::conditional_t<kOfParts, float, T>;
  __device__ Multiplier(const AllArgs& args, const Ending<Function>& ending, typename S::Shared& shared)
      : args_(args), ending_(ending), shared_(shared), consumer_(shared.barriers) {}

  __device__ void Run() {
    TileWalk walk(args_);
    RowGroup group = walk.Group();
    if constexpr (kGroups > 1) StartBehind((static_cast<int>(group.steps) + 1) / 2);
    for (; walk.HasTile(); walk.Next()) {
      const RowGroup next_group = walk.NextGroup();
      const LaneRows ends = EndsOf(group);
      Sum(static_cast<int>(group.steps));
      WaitForResidual();
      const int64_t first = walk.FirstColumn(kWidth);
      if constexpr (std::is_same_v<Function, NoFunction>) {
#pragma unroll
        for (int i = 0; i < S::kParts; ++i) Store(sums_[i], ends, first, i);
      } else {
#pragma unroll 1
        for (int i = 0; i < S::kParts; ++i) {  // functions are long, and code is read once: one copy of them
          Store(sums_[0], ends, first, i);
#pragma unroll
          for (int j = 0; j < S::kPartWidth / 2 && S::kParts > 1; ++j) sums_[0][j] = sums_[S::kParts - 1][j];
        }
      }
      ReleaseResidual();
      group = next_group;
    }
  }

 protected:
  using Sums = float[S::kPartWidth / 2];

  // Where the ring holds a tile, the second group's consumers begin behind the first's: one multiplies while the other
  // stores. With longer tiles it would only be filled less far ahead.
  __device__ void StartBehind(int stages) {
    if (stages < S::kStages && threadIdx.x >= kRole) shared_.barriers.full[min(5, stages) - 1].Wait(0);
  }

  __device__ LaneRows EndsOf(const RowGroup& group) const {
    const int place = static_cast<int>(group.place) + threadIdx.x / kWarp * 16 + threadIdx.x % kWarp / 4;
    LaneRows ends;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ends.rows[half] = __ldg(args_.rows + place + 8 * half);
      ends.biases[half] = __ldg(args_.bias + place + 8 * half);
      if constexpr (kOfParts) ends.inverses[half] = __ldg(args_.row_inverses + place + 8 * half);
    }
    return ends;
  }

  __device__ void Sum(int steps) {
#pragma unroll
    for (auto& part : sums_) {
#pragma unroll
      for (float& sum : part) sum = 0;
    }
    int before = -1;  // the stage whose products may still run
#pragma unroll 1
    for (int i = 0; i < steps / 2; ++i) before = MultiplyStage<2>(before);
    if (!kOfParts && steps % 2 != 0) before = MultiplyStage<1>(before);
#pragma unroll
    for (auto& part : sums_) WaitForProducts(part);
    Release(before);
  }

  template <int kSteps>
  __device__ int MultiplyStage(int before) {
    const int stage = consumer_.stage();
    consumer_.WaitUntilFull();
    PublishToProducts();
    FenceProducts();
    const uint32_t x = SharedAddress(shared_.stages[stage].x);
    const uint32_t weights = SharedAddress(shared_.stages[stage].weights[kGroups == 1 ? 0 : threadIdx.x / kRole]);
    if constexpr (kOfParts) {  // steps are uppers and rests of the same columns
      QueueStep(weights + kStepBytes, x);
      QueueStep(weights, x + kStepOfX);
      QueueStep(weights, x);
    } else {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) QueueStep(weights + step * kStepBytes, x + step * kStepOfX);
    }
    CommitProducts();
    WaitForEarlierProducts<1>();
    if (before >= 0) Release(before);
    consumer_.Next();
    return stage;
  }

  static constexpr int kStepOfX = kStep * 128;
  __device__ void QueueStep(uint32_t weights, uint32_t x) {
    constexpr int kAtomsOfPart = S::kPartWidth / 64;
    const uint64_t left = SharedMatrices(weights, kTileRows * 16, 128);
#pragma unroll
    for (int i = 0; i < S::kParts; ++i) {
      QueueProduct<true, T, T, kDepthOuter>(sums_[i], left,
                                            SharedOperand(x + i * kAtomsOfPart * kAtomBytes, kAtomBytes));
    }
  }

  __device__ void Release(int stage) {
    if (threadIdx.x % kWarp == 0) consumer_.Release(stage);
  }

  // All stages, though a warp's rows are all in one: who waits for each phase of a stage misses none.
  __device__ void WaitForResidual() {
    if constexpr (Places::kAligned) {
      if (args_.residual == nullptr) return;
#pragma unroll
      for (int& stage : residual_) {
        stage = consumer_.stage();
        consumer_.WaitUntilFull();
        consumer_.Next();
      }
    }
  }
  __device__ void ReleaseResidual() {
    if constexpr (Places::kAligned) {
      if (args_.residual == nullptr) return;
      PublishToProducts();  // what was read here, too, comes before copies that follow a barrier
      __syncwarp();
#pragma unroll
      for (const int stage : residual_) Release(stage);
    }
  }

  // What is done to all sums of a part at once leaves the compiler free to interleave them.
  __device__ void Store(Sums& sums, const LaneRows& ends, int64_t tile, int part) const {
    const int64_t first = tile + part * S::kPartWidth;
    const Places places(args_, first);
    if constexpr (kOfParts) {
      ScaleParts(sums, ends, first);
    } else {
#pragma unroll
      for (int i = 0; i < S::kPartWidth / 2; ++i) sums[i] = fmaf(sums[i], args_.alpha, ends.biases[i / 2 % 2]);
      if (args_.residual != nullptr) AddResidual(sums, ends.rows, places, part);
    }
    if (args_.clamps) {
#pragma unroll
      for (float& sum : sums) sum = ending_.clamp(sum);
    }
    ending_.function.template Apply<Stored>(sums);
    if constexpr (kOfParts) {
      StoreSingle(sums, ends.rows, first);
    } else {
      StoreHalves(sums, ends.rows, places);
    }
  }

  __device__ void StoreHalves(const Sums& sums, const int (&rows)[2], const Places& places) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      T* const y = static_cast<T*>(args_.y) + int64_t{rows[half]} * args_.stride;
#pragma unroll
      for (int i = 0; i < kFours; ++i) {
        uint32_t pairs[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) pairs[j] = PackPair<T>(sums[At(i, j, half)], sums[At(i, j, half) + 1]);
        TransposeInFours(pairs);
        const uint4 bits = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        if (rows[half] >= 0) places.Store(y, i, bits);
      }
    }
  }

  // visit(octet, the lane's first column in it) for the octets of a part that Y has.
  template <typename Visit>
  __device__ void ForEachOctet(int64_t first, const Visit& visit) const {
    const int64_t column = first + threadIdx.x % 4 * 2;
    const auto left = static_cast<int>(min(int64_t{S::kPartWidth}, args_.stride - first));
#pragma unroll
    for (int i = 0; i < S::kPartWidth / 8; ++i) {
      if (i * 8 < left) visit(i, column + i * 8);
    }
  }

  // Undoes the scales, one after the other: their product may be no normal number. Adds bias and residual.
  __device__ void ScaleParts(Sums& sums, const LaneRows& ends, int64_t first) const {
    ForEachOctet(first, [&](int i, int64_t column) {
      const float2 inverses = __ldg(reinterpret_cast<const float2*>(args_.column_inverses + column));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float* const pair = sums + 4 * i + 2 * half;
        pair[0] = fmaf(pair[0] * ends.inverses[half], inverses.x, ends.biases[half]);
        pair[1] = fmaf(pair[1] * ends.inverses[half], inverses.y, ends.biases[half]);
      }
    });
    if (args_.added == nullptr) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (ends.rows[half] < 0) continue;
      const float* const row = args_.added + ends.rows[half] * args_.stride;
      ForEachOctet(first, [&](int i, int64_t column) {
        const float2 added = *reinterpret_cast<const float2*>(row + column);
        sums[4 * i + 2 * half] += added.x;
        sums[4 * i + 2 * half + 1] += added.y;
      });
    }
  }

  __device__ void StoreSingle(const Sums& sums, const int (&rows)[2], int64_t first) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (rows[half] < 0) continue;
      float* const row = static_cast<float*>(args_.y) + rows[half] * args_.stride;
      ForEachOctet(first, [&](int i, int64_t column) {
        const float* const pair = sums + 4 * i + 2 * half;
        *reinterpret_cast<float2*>(row + column) = {pair[0], pair[1]};
      });
    }
  }

  __device__ void AddResidual(Sums& sums, const int (&rows)[2], const Places& places, int part) const {
    if constexpr (Places::kAligned) {
      AddStagedResidual(sums, part);
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) AddLoadedResidual(sums, half, rows[half], places);
    }
  }

  __device__ void AddPair(Sums& sums, int at, uint32_t bits) const {
    const float2 pair = UnpackPair<T>(bits);
    sums[at] = fmaf(pair.x, args_.beta, sums[at]);
    sums[at + 1] = fmaf(pair.y, args_.beta, sums[at + 1]);
  }

  // Not by index: the stages are in registers.
  __device__ int StageOf(int half) const {
    int stage = residual_[0];
#pragma unroll
    for (int i = 1; i < 2 * kGroups; ++i) stage = half == i ? residual_[i] : stage;
    return stage;
  }

  __device__ void AddStagedResidual(Sums& sums, int part) const {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const auto* const stage = reinterpret_cast<const uint8_t*>(&shared_.stages[StageOf(warp / 2)]);
    const uint8_t* const from =
        stage + (warp % 2 * 16 + lane / 4) * S::kResidualPitch + part * (S::kPartWidth * 2) + lane % 4 * 4;
#pragma unroll
    for (int i = 0; i < S::kPartWidth / 2; i += 2) {
      AddPair(sums, i, *reinterpret_cast<const uint32_t*>(from + i / 2 % 2 * (8 * S::kResidualPitch) + i / 4 * 16));
    }
  }

  __device__ void AddLoadedResidual(Sums& sums, int half, int row, const Places& places) const {
    const T* const residual = static_cast<const T*>(args_.residual) + int64_t{row} * args_.stride;
    uint4 bits[kFours];
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      bits[i] = row >= 0 ? places.Load(residual, i) : uint4{};
    }
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      uint32_t pairs[4] = {bits[i].x, bits[i].y, bits[i].z, bits[i].w};
      TransposeInFours(pairs);
#pragma unroll
      for (int j = 0; j < 4; ++j) AddPair(sums, At(i, j, half), pairs[j]);
    }
  }

  // Four octets of columns are stored at a time: transposed, a lane has eight neighbours of a row, 16 bytes.
  static constexpr int kFours = S::kPartWidth / 32;
  // Where the lane's pair in octet j of such four stands.
  static constexpr __device__ int At(int four, int octet, int half) { return (four * 4 + octet) * 4 + half * 2; }
  const AllArgs& args_;
  const Ending<Function>& ending_;
  typename S::Shared& shared_;
  Consumer<S::kStages> consumer_;
  int residual_[2 * kGroups];  // its stages
  Sums sums_[S::kParts];
};

}  // namespace swizzle::cuda::shfl_bw

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_CUH_
