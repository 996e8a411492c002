#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"
#include "tests/kernels/cuda/tensor_core/pipeline_product.h"

namespace swizzle::cuda {
namespace {

constexpr int kGroup = 128, kStages = 3;
constexpr int kPieces = kProductColumns / 8;              // of 16 bytes, of a row of X
constexpr int kSteps = kStageDepth / 16;                  // of products
constexpr int kProducerKeeps = 72, kConsumerTakes = 184;  // of 128 registers each, as two such blocks fit

struct alignas(1024) Stage {
  uint4 left[kProductRows][kStageDepth / 8];
  uint4 right[kStageDepth][kPieces];
};

struct Shared {
  Stage stages[kStages];
  StageBarriers<kStages> barriers;
};

__device__ void Produce(Shared& shared, const uint16_t* left, const uint16_t* x, const uint32_t* taken, int stages) {
  Producer<kStages> producer(shared.barriers);
  for (int i = 0; i < stages; ++i, producer.Next()) {
    producer.WaitUntilEmpty();
    Stage& stage = shared.stages[producer.stage()];
    if (threadIdx.x % kGroup == 0) {
      producer.full().ArriveExpecting(sizeof(stage.left));
      producer.full().CopyBulk(SharedAddress(stage.left), left + i * (sizeof(stage.left) / 2), sizeof(stage.left));
    }
    for (int at = threadIdx.x % kGroup; at < kStageDepth * kPieces; at += kGroup) {
      const int row = at / kPieces, piece = at % kPieces;
      CopyAsync(SharedAddress(&stage.right[row][piece ^ row % 8]),
                x + taken[i * kStageDepth + row] * kProductColumns + piece * 8);
    }
    producer.full().ArriveAfterCopies();
  }
  CommitCopies();
  WaitForCopies<0>();
}

__device__ void Consume(Shared& shared, int stages, float* sums) {
  Consumer<kStages> consumer(shared.barriers);
  float c[kProductColumns / 2] = {};
  for (int i = 0; i < stages; ++i, consumer.Next()) {
    consumer.WaitUntilFull();
    PublishToProducts();
    FenceProducts();
    const Stage& stage = shared.stages[consumer.stage()];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      QueueProduct<true, __half, __half, kDepthOuter>(c, SharedOperand(SharedAddress(stage.left) + step * 32),
                                                      SharedOperand(SharedAddress(stage.right[step * 16])));
    }
    CommitProducts();
    WaitForProducts(c);
    if (threadIdx.x % 32 == 0) consumer.Release(consumer.stage());
  }
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int i = 0; i < kProductColumns / 2; ++i) {
    const int row = warp * 16 + g + i / 2 % 2 * 8, column = i / 4 * 8 + 2 * t + i % 2;
    sums[row * kProductColumns + column] = c[i];
  }
}

__global__ __launch_bounds__(2 * kGroup, 2) void MultiplyStages(const uint16_t* left, const uint16_t* x,
                                                                const uint32_t* taken, int stages, float* sums) {
  extern __shared__ __align__(1024) char dynamic_shared[];
  auto& shared = *reinterpret_cast<Shared*>(dynamic_shared);
  if (threadIdx.x == 0) shared.barriers.Init(kGroup + 1, kGroup / 32);
  __syncthreads();
  if (threadIdx.x < kGroup) {
    TakeRegisters<kConsumerTakes>();
    Consume(shared, stages, sums);
  } else {
    KeepRegisters<kProducerKeeps>();
    Produce(shared, left, x, taken, stages);
  }
}

}  // namespace

void QueuePipelineProduct(const uint16_t* left, const uint16_t* x, const uint32_t* taken, int stages, float* sums) {
  cudaFuncSetAttribute(MultiplyStages, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  MultiplyStages<<<1, 2 * kGroup, sizeof(Shared)>>>(left, x, taken, stages, sums);
}

}  // namespace swizzle::cuda
