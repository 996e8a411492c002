#include <algorithm>
#include <cmath>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/n_m/conv_n_m.h"
#include "kernels/cuda/conv/operands/tile_ending.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/cuda/tensor_core/tile_copy.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32, kRole = 128, kConsumers = 2, kThreads = (kConsumers + 1) * kRole;
constexpr int kTileRows = TwoOfFour::kRows, kDepth = TwoOfFour::kStage, kSteps = kDepth / TwoOfFour::kStep;
constexpr int kSlabBytes = kDepth * 128;  // 64 columns of X of a stage
constexpr int kBlockBytes = TwoOfFour::kBlockWords * 4, kWeightBytes = TwoOfFour::kStageWords * 4;
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

struct Args {
  const uint32_t* words;
  const float* bias;
  const void* residual;
  void* y;
  int64_t stride;  // elements
  int32_t rows, row_tiles, stages, tiles;
  bool clamps;
};

template <int kWidth>
struct Shape {
  static constexpr int kSlabs = kWidth / 64;
  struct alignas(1024) Stage {
    uint8_t x[kSlabs * kSlabBytes];
    uint32_t weights[kWeightBytes / 4];  // with the places
  };
  static constexpr int kStageBytes = kSlabs * kSlabBytes + kWeightBytes;
  static constexpr int kRoom = 225 * 1024 / static_cast<int>(sizeof(Stage));
  static constexpr int kStages = kRoom < 8 ? kRoom : 8;
  struct Shared {
    Stage stages[kStages];
    StageBarriers<kStages> barriers;
  };
};

template <int kWidth>
__device__ void Fetch(const Args& args, const CUtensorMap& x, typename Shape<kWidth>::Shared& shared) {
  using S = Shape<kWidth>;
  Producer<S::kStages> producer(shared.barriers);
  for (int tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
    const int column = tile / args.row_tiles * kWidth;
    const uint32_t* const words = args.words + int64_t{tile % args.row_tiles} * args.stages * TwoOfFour::kStageWords;
#pragma unroll 1
    for (int i = 0; i < args.stages; ++i) {
      auto& to = shared.stages[producer.stage()];
      producer.WaitUntilEmpty();
      producer.full().ArriveExpecting(S::kStageBytes);
      producer.full().CopyBulk(SharedAddress(to.weights), words + int64_t{i} * TwoOfFour::kStageWords, kWeightBytes);
#pragma unroll
      for (int slab = 0; slab < S::kSlabs; ++slab) {
        CopySlab(SharedAddress(to.x) + slab * kSlabBytes, x, i * kDepth, column + slab * 64, producer.full());
      }
      producer.Next();
    }
  }
}

template <typename T, int kWidth, typename Function>
class Multiplier {
 public:
  using S = Shape<kWidth>;
  __device__ Multiplier(const Args& args, const Ending<Function>& ending, typename S::Shared& shared)
      : args_(args), ending_(ending), shared_(shared), consumer_(shared.barriers), group_(threadIdx.x / kRole) {
    // Lane (g, t) has rows g and g + 8 of its warp's 16, and, if t is 0 or 1, the places of g's half t.
    const int warp = threadIdx.x % kRole / kWarp, lane = threadIdx.x % kWarp;
    row_ = group_ * TwoOfFour::kBlockRows + warp * 16 + lane / 4;
    place_ = kSteps * kConsumers * TwoOfFour::kBlockWords + group_ * TwoOfFour::kPlaceWords + warp * 16 + lane / 4 * 2 +
             lane % 2;
  }

  __device__ void Run() {
    for (int tile = blockIdx.x; tile < args_.tiles; tile += gridDim.x) {
      Sum();
      const int row = tile % args_.row_tiles * kTileRows + row_;
#pragma unroll
      for (int half = 0; half < 2; ++half) Store(row + half * 8, half, int64_t{tile / args_.row_tiles} * kWidth);
    }
  }

 private:
  __device__ void Sum() {
#pragma unroll
    for (float& sum : sums_) sum = 0;
    int before = -1;  // the stage whose products may still run
#pragma unroll 1
    for (int i = 0; i < args_.stages; ++i) {
      const int stage = consumer_.stage();
      consumer_.WaitUntilFull();
      // Products take places from registers when they run, not when they are queued; the other warpgroup's run
      // meanwhile.
      WaitForEarlierProducts<0>();
      if (before >= 0) Release(before);
      const auto& held = shared_.stages[stage];
      uint32_t places[kSteps];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        places[step] = held.weights[place_ + step * kConsumers * TwoOfFour::kPlaceWords];
      }
      FenceProducts();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const uint32_t weights = SharedAddress(held.weights) + (step * kConsumers + group_) * kBlockBytes;
        QueueSparseProduct<true, T, T, kDepthOuter>(
            sums_, SharedMatrices(weights, TwoOfFour::kBlockRows * 16, 128),
            SharedOperand(SharedAddress(held.x) + step * (TwoOfFour::kStep * 128), kSlabBytes), places[step]);
      }
      CommitProducts();
      before = stage;
      consumer_.Next();
    }
    WaitForProducts(sums_);
    Release(before);
  }

  // Lanes have read places there without the tensor cores: each orders that before copies to come, and all before one
  // arrives for them.
  __device__ void Release(int stage) {
    PublishToProducts();
    __syncwarp();
    if (threadIdx.x % kWarp == 0) consumer_.Release(stage);
  }

  __device__ void Store(int row, int half, int64_t first) const {
    first += threadIdx.x % 4 * 8;
    const int64_t left = row < args_.rows ? args_.stride - first : 0;
    const float bias = __ldg(args_.bias + row);
    const int64_t at = int64_t{row} * args_.stride + first;
#pragma unroll
    for (int i = 0; i < kWidth / 32; ++i) {
      float values[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) values[j] = sums_[(i * 4 + j / 2) * 4 + half * 2 + j % 2] + bias;
      EndFourOctets<T>(ending_, args_.clamps, static_cast<const T*>(args_.residual), static_cast<T*>(args_.y),
                       at + i * 32, i * 32 < left, values);
    }
  }

  const Args& args_;
  const Ending<Function>& ending_;
  typename S::Shared& shared_;
  Consumer<S::kStages> consumer_;
  const int group_;
  int row_, place_;
  float sums_[kWidth / 2];
};

template <typename T, int kWidth, typename Function>
__global__ __launch_bounds__(kThreads, 1) void MultiplyTwoOfFour(const __grid_constant__ Args args,
                                                                 const __grid_constant__ CUtensorMap x,
                                                                 const __grid_constant__ Ending<Function> ending) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename Shape<kWidth>::Shared*>(dynamic_shared);
  if (threadIdx.x == 0) shared.barriers.Init(1, kConsumers * kRole / kWarp);
  __syncthreads();
  if (threadIdx.x >= kConsumers * kRole) {
    KeepRegisters<kProducerRegisters>();
    if (threadIdx.x == kConsumers * kRole) Fetch<kWidth>(args, x, shared);
  } else {
    TakeRegisters<kConsumerRegisters>();
    Multiplier<T, kWidth, Function>(args, ending, shared).Run();
  }
}

template <typename T, int kWidth>
void Queue(const TwoOfFourOperands& operands, int multiprocessors, cudaStream_t queue) {
  using Shared = typename Shape<kWidth>::Shared;
  const TwoOfFour& weight = *operands.weight;
  const int64_t tiles = weight.tiles() * CeilDiv(operands.columns, kWidth);
  const Args args = {.words = weight.words(),
                     .bias = weight.bias(),
                     .residual = operands.residual,
                     .y = operands.y,
                     .stride = operands.stride,
                     .rows = static_cast<int32_t>(weight.rows()),
                     .row_tiles = static_cast<int32_t>(weight.tiles()),
                     .stages = static_cast<int32_t>(weight.stages()),
                     .tiles = static_cast<int32_t>(tiles),
                     .clamps = std::isfinite(operands.epilogue.low) || std::isfinite(operands.epilogue.high)};
  const CUtensorMap x = DescribeSlabs(operands.x, weight.cols(), operands.stride, operands.stride, kDepth);
  WithTileEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplyTwoOfFour<T, kWidth, Function>;
    AllowSharedMemory(kernel, sizeof(Shared));
    const LaunchGrid grid(std::min<int64_t>(tiles, multiprocessors));
    kernel<<<grid, kThreads, sizeof(Shared), queue>>>(args, x, ending);
  });
}

}  // namespace

template <int kWidth>
void QueueTwoOfFour(const TwoOfFourOperands& operands, int multiprocessors, cudaStream_t queue) {
  if (operands.columns == 0) return;
  VisitHalf(operands.dtype, [&]<DType kHalf>() { Queue<Element<kHalf>, kWidth>(operands, multiprocessors, queue); });
}

template void QueueTwoOfFour<128>(const TwoOfFourOperands&, int, cudaStream_t);
template void QueueTwoOfFour<256>(const TwoOfFourOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda
