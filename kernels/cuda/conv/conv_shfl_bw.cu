#include <algorithm>
#include <cmath>

#include "kernels/cuda/conv/conv_shfl_bw.h"
#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32, kRole = 128, kThreads = 2 * kRole;  // consumers, then producers
constexpr int kWarps = kRole / kWarp;                         // of a role
constexpr int kTileRows = RowGroups::kRows, kStep = RowGroups::kStep, kDepth = RowGroups::kStage;
constexpr int kStagesOfChunk = RowGroups::kChunk / RowGroups::kStage;
constexpr int kPieceElements = 8, kPieceBytes = 16;
constexpr int kAtomBytes = kDepth * 128;  // 64 columns of X of a stage, 128 bytes a row
constexpr int kStepBytes = kTileRows * kStep * 2;
constexpr int kProducerRegisters = 72, kConsumerRegisters = 184;

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
};

// GELU alone: beside the other functions it would spill registers, and it ends most layers that end in one.
class GeluFunction {
 public:
  explicit GeluFunction(const Epilogue&) {}
  template <typename T, int kCount>
  __device__ void Apply(float (&values)[kCount]) const {
#pragma unroll
    for (float& value : values) value = FunctionOf<FunctionKind::kGelu, T>(value, 0, 0);
  }
};

template <typename Launch>
void WithGroupEnding(const Epilogue& epilogue, const Launch& launch) {
  if (epilogue.function && epilogue.function->kind == FunctionKind::kGelu)
    return launch(Ending<GeluFunction>(epilogue));
  WithEnding(epilogue, launch);
}

// What a CTA of kWidth columns has in shared memory; two fit a multiprocessor.
template <int kWidth>
struct Shape {
  static constexpr int kParts = kWidth == 256 ? 2 : 1;  // one product of 256 takes too many registers
  static constexpr int kPartWidth = kWidth / kParts;
  static constexpr int kAtoms = kWidth / 64;
  static constexpr int kHalfOfSharedMemory = 113 * 1024;
  static constexpr int kStageBytes = kAtoms * kAtomBytes + 2 * kStepBytes;
  static constexpr int kStages =
      (kHalfOfSharedMemory - 1024) / kStageBytes < 8 ? (kHalfOfSharedMemory - 1024) / kStageBytes : 8;
  struct alignas(1024) Stage {
    uint8_t x[kAtoms * kAtomBytes];  // 16-byte piece p of row r of an atom lies at p ^ (r % 8)
    uint8_t weights[2 * kStepBytes];
  };
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

 private:
  __device__ RowGroup Load(int at) const {
    const uint4 bits = __ldg(reinterpret_cast<const uint4*>(args.groups + at % args.group_count));
    return {bits.x, bits.y, bits.z, bits.w};
  }
};

// One of the eight columns of X that a lane's warp copies for a stage.
template <int kRowsAtOnce>
__device__ uint32_t ColumnOf(const uint4& columns, int turn, int row) {
  const uint32_t words[4] = {columns.x, columns.y, columns.z, columns.w};
  if constexpr (kRowsAtOnce == 1) return turn % 2 == 0 ? words[turn / 2] & 0xFFFF : words[turn / 2] >> 16;
  uint32_t word = words[turn % 4];
  if constexpr (kRowsAtOnce == 4) word = row >= 2 ? words[2 * turn + 1] : words[2 * turn];
  return row % 2 == 0 ? word & 0xFFFF : word >> 16;
}

template <int kWidth>
class Gatherer {
 public:
  using S = Shape<kWidth>;
  __device__ Gatherer(const Args& args, typename S::Shared& shared)
      : args_(args), shared_(shared), producer_(shared.barriers), warp_(threadIdx.x / kWarp % kWarps) {
    const int lane = threadIdx.x % kWarp, piece = lane % kPieces;
    row_ = lane / kPieces;
    piece_ = piece;
    copies_ = row_ < kRowsAtOnce;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = kWarps * (i * kRowsAtOnce + row_) + warp_;
      to_[i] = piece / 8 * kAtomBytes + row * 128 + ((piece ^ row) % 8) * kPieceBytes;
    }
  }

  __device__ void Run() {
    TileWalk walk(args_);
    RowGroup group = walk.Group();
    uint4 columns[kStagesOfChunk];
    LoadColumns(group.columns, columns);
    for (; walk.HasTile(); walk.Next()) {
      const RowGroup next_group = walk.NextGroup();
      const uint8_t* const x = FirstPiece(walk.FirstColumn(kWidth));
      const int stages = (static_cast<int>(group.steps) + 1) / 2;
#pragma unroll 1
      for (int first = 0; first < stages; first += kStagesOfChunk) {
        uint4 next[kStagesOfChunk];
        LoadColumns(first + kStagesOfChunk < stages ? group.columns + first / kStagesOfChunk + 1 : next_group.columns,
                    next);
#pragma unroll
        for (int i = 0; i < kStagesOfChunk; ++i) {
          if (first + i >= stages) break;
          Fill(group, first + i, i, columns[i], x);
        }
#pragma unroll
        for (int i = 0; i < kStagesOfChunk; ++i) columns[i] = next[i];
      }
      group = next_group;
    }
    CommitCopies();
    WaitForCopies<0>();
  }

 private:
  static constexpr int kPieces = kWidth / kPieceElements;
  static constexpr int kRowsAtOnce = kWarp / kPieces;  // that a warp copies
  static constexpr int kTurns = kDepth / kWarps / kRowsAtOnce;

  __device__ void LoadColumns(uint32_t chunk, uint4 (&columns)[kStagesOfChunk]) const {
    const uint4* const from = args_.columns + int64_t{chunk} * kStagesOfChunk * kWarps + warp_;
#pragma unroll
    for (int i = 0; i < kStagesOfChunk; ++i) columns[i] = __ldg(from + i * kWarps);
  }

  // Of this lane, in row 0; the row's last piece where its own is past the end.
  __device__ const uint8_t* FirstPiece(int64_t first_column) const {
    const int64_t last = args_.stride - kPieceElements;
    const int64_t column = min(first_column + piece_ * kPieceElements, last);
    return static_cast<const uint8_t*>(args_.x) + column * 2;
  }

  // The stage `turn` of its chunk: one warp each asks for its weights.
  __device__ void Fill(const RowGroup& group, int stage, int turn, const uint4& columns, const uint8_t* x) {
    auto& to = shared_.stages[producer_.stage()];
    const int steps = static_cast<int>(group.steps) - 2 * stage;
    producer_.WaitUntilEmpty();
    if (warp_ == turn && threadIdx.x % kWarp == 0) {
      const uint32_t bytes = min(2, steps) * kStepBytes;
      producer_.full().ArriveExpecting(bytes);
      producer_.full().CopyBulk(SharedAddress(to.weights),
                                args_.weights + (int64_t{group.weights} + 2 * stage) * (kStepBytes / 2), bytes);
    }
    const uint32_t base = SharedAddress(to.x), pitch = static_cast<uint32_t>(args_.stride * 2);
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {
      if (i == kTurns / 2 && steps < 2) break;  // the second step's columns
      const uint64_t row = static_cast<uint64_t>(ColumnOf<kRowsAtOnce>(columns, i, row_)) * pitch;
      if (kRowsAtOnce * kPieces == kWarp || copies_)
        CopyPiece(base + to_[i % 2] + i / 2 * (2 * kRowsAtOnce * kWarps * 128), x + row);
    }
    producer_.full().ArriveAfterCopies();
    producer_.Next();
  }

  const Args& args_;
  typename S::Shared& shared_;
  Producer<S::kStages> producer_;
  const int warp_;
  int row_, piece_;
  bool copies_;  // where pieces are no power of two some lanes have none
  uint32_t to_[2];
};

// v[i] of lane t of each four becomes v[t] of lane i.
__device__ void TransposeInFours(uint32_t (&v)[4]) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, t & 2 ? v[i] : v[i + 2], 2);
    if (t & 2)
      v[i] = other;
    else
      v[i + 2] = other;
  }
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, t & 1 ? v[i] : v[i + 1], 1);
    if (t & 1)
      v[i] = other;
    else
      v[i + 1] = other;
  }
}

template <typename T>
__device__ float2 UnpackPair(uint32_t bits) {
  if constexpr (std::is_same_v<T, __half>) return __half22float2(*reinterpret_cast<const __half2*>(&bits));
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits));
}

template <typename T, int kWidth, typename Function>
class Multiplier {
 public:
  using S = Shape<kWidth>;
  __device__ Multiplier(const Args& args, const Ending<Function>& ending, typename S::Shared& shared)
      : args_(args), ending_(ending), shared_(shared), consumer_(shared.barriers) {}

  __device__ void Run() {
    TileWalk walk(args_);
    RowGroup group = walk.Group();
    for (; walk.HasTile(); walk.Next()) {
      const RowGroup next_group = walk.NextGroup();
      // Lane (g, t) has rows g and g + 8 of its warp's 16.
      const int place = static_cast<int>(group.place) + threadIdx.x / kWarp * 16 + threadIdx.x % kWarp / 4;
      const int rows[2] = {__ldg(args_.rows + place), __ldg(args_.rows + place + 8)};
      const float biases[2] = {__ldg(args_.bias + place), __ldg(args_.bias + place + 8)};
      Sum(static_cast<int>(group.steps));
      const int64_t first = walk.FirstColumn(kWidth);
      if constexpr (std::is_same_v<Function, NoFunction>) {
#pragma unroll
        for (int i = 0; i < S::kParts; ++i) Store(sums_[i], rows, biases, first + i * S::kPartWidth);
      } else {
#pragma unroll 1
        for (int i = 0; i < S::kParts; ++i) {  // functions are long, and code is read once: one copy of them
          Store(sums_[0], rows, biases, first + i * S::kPartWidth);
#pragma unroll
          for (int j = 0; j < S::kPartWidth / 2 && S::kParts > 1; ++j) sums_[0][j] = sums_[S::kParts - 1][j];
        }
      }
      group = next_group;
    }
  }

 private:
  using Sums = float[S::kPartWidth / 2];

  __device__ void Sum(int steps) {
#pragma unroll
    for (auto& part : sums_) {
#pragma unroll
      for (float& sum : part) sum = 0;
    }
    int before = -1;  // the stage whose products may still run
#pragma unroll 1
    for (int i = 0; i < steps / 2; ++i) before = MultiplyStage<2>(before);
    if (steps % 2 != 0) before = MultiplyStage<1>(before);
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
    const uint32_t x = SharedAddress(shared_.stages[stage].x), weights = SharedAddress(shared_.stages[stage].weights);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const uint64_t left = SharedMatrices(weights + step * kStepBytes, kTileRows * 16, 128);
#pragma unroll
      for (int i = 0; i < S::kParts; ++i) {
        constexpr int kAtomsOfPart = S::kPartWidth / 64;
        QueueProduct<true, T, T, kDepthOuter>(
            sums_[i], left, SharedOperand(x + i * kAtomsOfPart * kAtomBytes + step * (kStep * 128), kAtomBytes));
      }
    }
    CommitProducts();
    WaitForEarlierProducts<1>();
    if (before >= 0) Release(before);
    consumer_.Next();
    return stage;
  }

  __device__ void Release(int stage) {
    if (threadIdx.x % kWarp == 0) consumer_.Release(stage);
  }

  // What is done to all sums of a part at once leaves the compiler free to interleave them.
  __device__ void Store(Sums& sums, const int (&rows)[2], const float (&biases)[2], int64_t first) const {
    first += threadIdx.x % 4 * kPieceElements;
#pragma unroll
    for (int i = 0; i < S::kPartWidth / 2; ++i) sums[i] += biases[i / 2 % 2];
#pragma unroll
    for (int half = 0; half < 2 && args_.residual != nullptr; ++half) AddResidual(sums, half, rows[half], first);
    if (args_.clamps) {
#pragma unroll
      for (float& sum : sums) sum = ending_.clamp(sum);
    }
    ending_.function.template Apply<T>(sums);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      T* const y = static_cast<T*>(args_.y) + int64_t{rows[half]} * args_.stride + first;
      const int left = LeftOf(rows[half], first);
#pragma unroll
      for (int i = 0; i < kFours; ++i) {
        uint32_t pairs[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) pairs[j] = PackPair<T>(sums[At(i, j, half)], sums[At(i, j, half) + 1]);
        TransposeInFours(pairs);
        const uint4 bits = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        if (i * 32 < left) *reinterpret_cast<uint4*>(y + i * 32) = bits;
      }
    }
  }

  __device__ void AddResidual(Sums& sums, int half, int row, int64_t first) const {
    const T* const residual = static_cast<const T*>(args_.residual) + int64_t{row} * args_.stride + first;
    const int left = LeftOf(row, first);
    uint4 bits[kFours];
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      bits[i] = i * 32 < left ? *reinterpret_cast<const uint4*>(residual + i * 32) : uint4{};
    }
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      uint32_t pairs[4] = {bits[i].x, bits[i].y, bits[i].z, bits[i].w};
      TransposeInFours(pairs);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float2 pair = UnpackPair<T>(pairs[j]);
        sums[At(i, j, half)] += pair.x;
        sums[At(i, j, half) + 1] += pair.y;
      }
    }
  }

  // Four octets of columns are stored at a time: transposed, a lane has eight neighbours of a row, 16 bytes.
  static constexpr int kFours = S::kPartWidth / 32;
  // Where the lane's pair in octet j of such four stands.
  static constexpr __device__ int At(int four, int octet, int half) { return (four * 4 + octet) * 4 + half * 2; }
  // Elements up to the row's end; none of a row that is not there.
  __device__ int LeftOf(int row, int64_t first) const {
    return row < 0 ? 0 : static_cast<int>(min(args_.stride - first, int64_t{kWidth}));
  }

  const Args& args_;
  const Ending<Function>& ending_;
  typename S::Shared& shared_;
  Consumer<S::kStages> consumer_;
  Sums sums_[S::kParts];
};

template <typename T, int kWidth, typename Function>
__global__ __launch_bounds__(kThreads, 2) void MultiplyGroups(const __grid_constant__ Args args,
                                                              const __grid_constant__ Ending<Function> ending) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename Shape<kWidth>::Shared*>(dynamic_shared);
  if (threadIdx.x == 0) shared.barriers.Init(kRole + 1, kWarps);
  __syncthreads();
  if (threadIdx.x >= kRole) {
    KeepRegisters<kProducerRegisters>();
    Gatherer<kWidth>(args, shared).Run();
  } else {
    TakeRegisters<kConsumerRegisters>();
    Multiplier<T, kWidth, Function>(args, ending, shared).Run();
  }
}

template <typename T, int kWidth>
void Queue(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  using Shared = typename Shape<kWidth>::Shared;
  const RowGroups& weight = *operands.weight;
  const int64_t tiles = weight.count() * CeilDiv(operands.columns, kWidth);
  const Args args = {.x = operands.x,
                     .weights = weight.weights(),
                     .columns = reinterpret_cast<const uint4*>(weight.columns()),
                     .groups = weight.groups(),
                     .rows = weight.rows(),
                     .bias = weight.bias(),
                     .residual = operands.residual,
                     .y = operands.y,
                     .stride = operands.stride,
                     .group_count = static_cast<int32_t>(weight.count()),
                     .tiles = static_cast<int32_t>(tiles),
                     .clamps = std::isfinite(operands.epilogue.low) || std::isfinite(operands.epilogue.high)};
  const LaunchGrid grid(std::min<int64_t>(tiles, 2 * multiprocessors));
  WithGroupEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplyGroups<T, kWidth, Function>;
    AllowSharedMemory(kernel, sizeof(Shared));
    kernel<<<grid, kThreads, sizeof(Shared), queue>>>(args, ending);
  });
}

}  // namespace

template <int kWidth>
void QueueGroups(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  if (operands.weight->count() == 0 || operands.columns == 0) return;
  if (operands.dtype == DType::kFloat16) return Queue<__half, kWidth>(operands, multiprocessors, queue);
  Queue<__nv_bfloat16, kWidth>(operands, multiprocessors, queue);
}

template void QueueGroups<64>(const GroupOperands&, int, cudaStream_t);
template void QueueGroups<128>(const GroupOperands&, int, cudaStream_t);
template void QueueGroups<192>(const GroupOperands&, int, cudaStream_t);
template void QueueGroups<256>(const GroupOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda
