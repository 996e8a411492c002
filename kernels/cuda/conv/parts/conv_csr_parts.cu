#include <algorithm>
#include <cmath>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/csr/fragment_reader.cuh"
#include "kernels/cuda/conv/operands/tile_ending.cuh"
#include "kernels/cuda/conv/parts/conv_csr_parts.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/cuda/tensor_core/tile_copy.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32, kRole = 128, kConsumers = 2, kThreads = (kConsumers + 1) * kRole;
constexpr int kGroupRows = 64, kTileRows = kConsumers * kGroupRows;  // of Y, of a warpgroup and of a CTA
constexpr int kBlock = FragmentCsr::kBlock;
constexpr int kSlab = FragmentCsr::kColumnUnit, kSteps = kSlab / kBlock;
constexpr int kAtomBytes = kSlab * 128;  // 64 columns of a slab
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
static_assert(FragmentCsr::kRowUnit % kTileRows == 0);

struct Args {
  const uint4* halves;  // two FragmentHalfs each
  const uint32_t* entries;
  const float *row_inverses, *bias;  // of each row, padding included
  const float* column_inverses;      // of each column of X
  const float* residual;             // or null
  float* y;
  int64_t stride;
  int32_t rows, row_tiles, steps, tiles;
  bool clamps;
};

// X's parts, each a matrix of its own.
struct PartMaps {
  CUtensorMap uppers, rests;
};

template <int kWidth>
struct Shape {
  static constexpr int kAtoms = kWidth / 64;
  struct alignas(1024) Stage {
    uint8_t uppers[kAtoms * kAtomBytes], rests[kAtoms * kAtomBytes];
  };
  static constexpr int kStages = std::min<int>(225 * 1024 / sizeof(Stage), 8);
  struct Shared {
    Stage stages[kStages];
    StageBarriers<kStages> barriers;
  };
};

// By one thread.
template <int kWidth>
__device__ void Fetch(const Args& args, const PartMaps& x, typename Shape<kWidth>::Shared& shared) {
  using S = Shape<kWidth>;
  Producer<S::kStages> producer(shared.barriers);
  for (int tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
    const int column = tile / args.row_tiles * kWidth;
#pragma unroll 1
    for (int row = 0; row < args.steps * kBlock; row += kSlab) {
      auto& to = shared.stages[producer.stage()];
      producer.WaitUntilEmpty();
      producer.full().ArriveExpecting(sizeof(to));
#pragma unroll
      for (int i = 0; i < S::kAtoms; ++i) {
        CopySlab(SharedAddress(to.uppers) + i * kAtomBytes, x.uppers, row, column + i * 64, producer.full());
        CopySlab(SharedAddress(to.rests) + i * kAtomBytes, x.rests, row, column + i * 64, producer.full());
      }
      producer.Next();
    }
  }
}

template <int kWidth, typename Function>
class Multiplier {
 public:
  using S = Shape<kWidth>;
  __device__ Multiplier(const Args& args, const Ending<Function>& ending, typename S::Shared& shared)
      : args_(args),
        ending_(ending),
        shared_(shared),
        consumer_(shared.barriers),
        first_row_(static_cast<int>(threadIdx.x) / kWarp * kBlock) {}

  __device__ void Run() {
    for (int tile = blockIdx.x; tile < args_.tiles; tile += gridDim.x) {
      const int row = tile % args_.row_tiles * kTileRows + first_row_;
      Sum(row / kBlock);
      Store(row + static_cast<int>(threadIdx.x) % kWarp / 4, int64_t{tile / args_.row_tiles} * kWidth);
    }
  }

 private:
  // Of the warp's blocks of W. The other warpgroup's products run while this one waits for its own and decodes.
  __device__ void Sum(int row_block) {
#pragma unroll
    for (float& sum : sums_) sum = 0;
    FragmentReader<Args, kSteps, kSteps> weights(args_, row_block, 0, args_.steps);
    weights.LoadEntries();
    weights.LoadHalves();
#pragma unroll 1
    for (int step = 0; step < args_.steps; step += kSteps) {
      uint32_t uppers[kSteps][4], rests[kSteps][4];
      weights.Take(uppers, rests);
      consumer_.WaitUntilFull();
      QueueSlab(shared_.stages[consumer_.stage()], uppers, rests);
      weights.LoadEntries();
      weights.LoadHalves();
      WaitForProducts(sums_);
      if (threadIdx.x % kWarp == 0) consumer_.Release(consumer_.stage());
      consumer_.Next();
    }
  }

  // Small products before large ones.
  __device__ void QueueSlab(const typename S::Stage& stage, uint32_t (&uppers)[kSteps][4],
                            uint32_t (&rests)[kSteps][4]) {
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      FinishOperand(uppers[i]);
      FinishOperand(rests[i]);
    }
    FenceProducts();
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const uint64_t x_uppers = SharedOperand(SharedAddress(stage.uppers) + i * kBlock * 128, kAtomBytes);
      const uint64_t x_rests = SharedOperand(SharedAddress(stage.rests) + i * kBlock * 128, kAtomBytes);
      QueueProduct<true, __half, __half, kDepthOuter>(sums_, rests[i], x_uppers);
      QueueProduct<true, __half, __half, kDepthOuter>(sums_, uppers[i], x_rests);
      QueueProduct<true, __half, __half, kDepthOuter>(sums_, uppers[i], x_uppers);
    }
    CommitProducts();
  }

  // The lane's sums of rows `row` and `row` + 8; of each octet of columns it has two.
  __device__ void Store(int row, int64_t first) {
    first += threadIdx.x % 4 * 2;
    const auto left = static_cast<int>(min(int64_t{kWidth}, args_.stride - first));
    Scale(row, first, left);
    if (args_.residual != nullptr) {
      ForEachPair(row, left, [&](int64_t at, float* pair) {
        const float2 added = *reinterpret_cast<const float2*>(args_.residual + first + at);
        pair[0] += added.x, pair[1] += added.y;
      });
    }
    if (args_.clamps) {
#pragma unroll
      for (float& sum : sums_) sum = ending_.clamp(sum);
    }
    ending_.function.template Apply<float>(sums_);
    ForEachPair(row, left, [&](int64_t at, const float* pair) {
      *reinterpret_cast<float2*>(args_.y + first + at) = {pair[0], pair[1]};
    });
  }

  // Undoes the scales, one after the other: their product may be no normal number. Adds the bias.
  __device__ void Scale(int row, int64_t first, int left) {
    float inverses[2], biases[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      inverses[half] = __ldg(args_.row_inverses + row + 8 * half);
      biases[half] = __ldg(args_.bias + row + 8 * half);
    }
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i) {
      if (i * 8 >= left) continue;
      const float2 column = *reinterpret_cast<const float2*>(args_.column_inverses + first + i * 8);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float* const pair = sums_ + 4 * i + 2 * half;
        pair[0] = fmaf(pair[0] * inverses[half], column.x, biases[half]);
        pair[1] = fmaf(pair[1] * inverses[half], column.y, biases[half]);
      }
    }
  }

  // visit(where it lies from the lane's first column on, pair) for those that Y has.
  template <typename Visit>
  __device__ void ForEachPair(int row, int left, const Visit& visit) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + 8 * half >= args_.rows) continue;
      const int64_t at = (row + 8 * half) * args_.stride;
#pragma unroll
      for (int i = 0; i < kWidth / 8; ++i) {
        if (i * 8 < left) visit(at + i * 8, sums_ + 4 * i + 2 * half);
      }
    }
  }

  const Args& args_;
  const Ending<Function>& ending_;
  typename S::Shared& shared_;
  Consumer<S::kStages> consumer_;
  const int first_row_;  // the warp's, of a tile
  float sums_[kWidth / 2];
};

template <int kWidth, typename Function>
__global__ __launch_bounds__(kThreads, 1) void MultiplyCsrParts(const __grid_constant__ Args args,
                                                                const __grid_constant__ PartMaps x,
                                                                const __grid_constant__ Ending<Function> ending) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename Shape<kWidth>::Shared*>(dynamic_shared);
  LetNextStart();
  if (threadIdx.x == 0) shared.barriers.Init(1, kConsumers * kRole / kWarp);
  __syncthreads();
  WaitForResults();
  if (threadIdx.x >= kConsumers * kRole) {
    KeepRegisters<kProducerRegisters>();
    if (threadIdx.x == kConsumers * kRole) Fetch<kWidth>(args, x, shared);
  } else {
    TakeRegisters<kConsumerRegisters>();
    Multiplier<kWidth, Function>(args, ending, shared).Run();
  }
}

}  // namespace

template <int kWidth>
void QueueCsrParts(const CsrPartOperands& operands, int multiprocessors, cudaStream_t queue) {
  using Shared = typename Shape<kWidth>::Shared;
  const FragmentCsr& weight = *operands.weight;
  if (weight.rows() == 0 || operands.columns == 0) return;
  const int64_t row_tiles = CeilDiv(weight.rows(), kTileRows), tiles = row_tiles * CeilDiv(operands.columns, kWidth);
  const Args args = {.halves = reinterpret_cast<const uint4*>(weight.halves()),
                     .entries = weight.entries(),
                     .row_inverses = weight.inverses(),
                     .bias = weight.bias(),
                     .column_inverses = operands.x.inverses,
                     .residual = operands.residual,
                     .y = operands.y,
                     .stride = operands.stride,
                     .rows = static_cast<int32_t>(weight.rows()),
                     .row_tiles = static_cast<int32_t>(row_tiles),
                     .steps = static_cast<int32_t>(weight.steps()),
                     .tiles = static_cast<int32_t>(tiles),
                     .clamps = std::isfinite(operands.epilogue.low) || std::isfinite(operands.epilogue.high)};
  const auto* const uppers = static_cast<const uint16_t*>(operands.x.halves);
  const int64_t depth = weight.cols();
  const PartMaps x = {DescribeSlabs(uppers, depth, operands.stride, operands.stride, kSlab),
                      DescribeSlabs(uppers + depth * operands.stride, depth, operands.stride, operands.stride, kSlab)};
  WithTileEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplyCsrParts<kWidth, Function>;
    AllowSharedMemory(kernel, sizeof(Shared));
    LaunchDependent(kernel, LaunchGrid(std::min<int64_t>(tiles, multiprocessors)), kThreads, sizeof(Shared), queue,
                    args, x, ending);
  });
}

template void QueueCsrParts<64>(const CsrPartOperands&, int, cudaStream_t);
template void QueueCsrParts<128>(const CsrPartOperands&, int, cudaStream_t);
template void QueueCsrParts<192>(const CsrPartOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda
