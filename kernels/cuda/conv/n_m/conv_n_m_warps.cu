#include <cmath>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/n_m/conv_n_m.h"
#include "kernels/cuda/conv/operands/tile_ending.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/mma.cuh"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32, kWarps = 8, kThreads = kWarps * kWarp;
constexpr int kTileRows = TwoOfFour::kRows, kDepth = TwoOfFour::kStage, kSteps = kDepth / TwoOfFour::kStep;
constexpr int kWarpWidth = 32, kOctets = kWarpWidth / 8;  // columns of a warp, eight of a product
constexpr int kPieceElements = 8, kPieceBytes = 16;

struct Args {
  const uint32_t* words;
  const float* bias;
  const void* x;
  const void* residual;
  void* y;
  int64_t stride;  // elements
  int32_t rows, cols, row_tiles, stages;
  bool clamps;
};

template <int kWidth>
struct Shape {
  static constexpr int kWarpsAcross = kWidth / kWarpWidth;
  static constexpr int kWarpRows = kTileRows / (kWarps / kWarpsAcross), kSlices = kWarpRows / 16;
  static constexpr int kStages = 3;  // of 128 columns 75 KiB: one CTA where a multiprocessor has 100 KiB, else two
  struct alignas(128) Stage {
    uint8_t x[kDepth * kWidth * 2];  // 16-byte piece p of row r lies at p ^ (r % 8)
    uint32_t words[TwoOfFour::kStageWords];
  };
  struct Shared {
    Stage stages[kStages];
  };
};

// A CTA's tile of 128 rows by kWidth columns: each warp has 32 columns of 32 or 64 rows. Four warps with 64 columns
// each read less, and took 6 % longer on an H100.
template <typename T, int kWidth, typename Function>
class Tile {
 public:
  using S = Shape<kWidth>;
  __device__ Tile(const Args& args, const Ending<Function>& ending, typename S::Shared& shared)
      : args_(args), ending_(ending), shared_(shared) {
    const int warp = threadIdx.x / kWarp;
    row_ = warp / S::kWarpsAcross * S::kWarpRows;
    column_ = warp % S::kWarpsAcross * kWarpWidth;
    row_tile_ = blockIdx.x % args.row_tiles;
    first_column_ = int64_t{blockIdx.x / args.row_tiles} * kWidth;
  }

  __device__ void Run() {
#pragma unroll
    for (int i = 0; i < S::kStages - 1; ++i) Fetch(i);
    int stage = 0;
#pragma unroll 1
    for (int i = 0; i < args_.stages; ++i) {
      WaitForCopies<S::kStages - 2>();
      __syncthreads();  // and nothing is read any more of the stage before, which is filled next
      Fetch(i + S::kStages - 1);
      Multiply(shared_.stages[stage]);
      stage = NextStage<S::kStages>(stage);
    }
#pragma unroll
    for (int slice = 0; slice < S::kSlices; ++slice) {
#pragma unroll
      for (int half = 0; half < 2; ++half) Store(slice, half);
    }
  }

 private:
  // Rows and columns past the edges become zeros. A group of copies is committed whether there is such a stage or not.
  __device__ void Fetch(int index) {
    if (index < args_.stages) {
      auto& to = shared_.stages[index % S::kStages];
      const int64_t at = int64_t{row_tile_} * args_.stages + index;
      const uint32_t* const words = args_.words + at * TwoOfFour::kStageWords;
#pragma unroll
      for (int i = threadIdx.x; i < TwoOfFour::kStageWords / 4; i += kThreads) {
        CopyPiece(SharedAddress(to.words + 4 * i), words + 4 * i);
      }
      constexpr int kPieces = kWidth / kPieceElements;
      const int piece = threadIdx.x % kPieces;
      const int64_t column = first_column_ + piece * kPieceElements;
#pragma unroll
      for (int row = threadIdx.x / kPieces; row < kDepth; row += kThreads / kPieces) {
        const int64_t k = int64_t{index} * kDepth + row;
        const bool real = k < args_.cols && column < args_.stride;
        const T* const from = static_cast<const T*>(args_.x) + (real ? k * args_.stride + column : 0);
        CopyAsync(SharedAddress(to.x) + (row * kPieces + (piece ^ row % 8)) * kPieceBytes, from, real);
      }
    }
    CommitCopies();
  }

  __device__ void Multiply(const typename S::Stage& stage) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t x[kOctets][4];
      LoadX(stage, step, x);
#pragma unroll
      for (int slice = 0; slice < S::kSlices; ++slice) {
        const int row = row_ + slice * 16;
        const int block = step * (kTileRows / TwoOfFour::kBlockRows) + row / TwoOfFour::kBlockRows;
        uint32_t weights[4];
        LoadWeights(stage.words + block * TwoOfFour::kBlockWords, row % TwoOfFour::kBlockRows, weights);
        const uint32_t places = Places(stage, block, row % TwoOfFour::kBlockRows);
#pragma unroll
        for (int octet = 0; octet < kOctets; ++octet) SparseMma<T>(sums_[slice][octet], weights, x[octet], places);
      }
    }
  }

  // Of each octet of columns the four eights of the step's rows, turned.
  __device__ void LoadX(const typename S::Stage& stage, int step, uint32_t (&x)[kOctets][4]) const {
    const int row = step * TwoOfFour::kStep + threadIdx.x % kWarp;
    const uint32_t at = SharedAddress(stage.x) + row * (kWidth * 2);
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      LoadTransposed(x[octet], at + ((column_ / kPieceElements + octet) ^ row % 8) * kPieceBytes);
    }
  }

  // Rows 0 to 7 and 8 to 15 of values 0 to 7, then of values 8 to 15.
  static __device__ void LoadWeights(const uint32_t* block, int row, uint32_t (&weights)[4]) {
    const int lane = threadIdx.x % kWarp;
    const int of = row + lane % 16 + lane / 16 * TwoOfFour::kBlockRows;
    LoadMatrices(weights, SharedAddress(block) + of * kPieceBytes);
  }

  // Lanes whose t is 0 or 1 have the places of row g's, and row g + 8's, half t; see two_of_four.h.
  static __device__ uint32_t Places(const typename S::Stage& stage, int block, int row) {
    const int lane = threadIdx.x % kWarp;
    return stage.words[TwoOfFour::kBlocks * TwoOfFour::kBlockWords + block * TwoOfFour::kPlaceWords + row +
                       lane / 4 * 2 + lane % 2];
  }

  __device__ void Store(int slice, int half) const {
    const int row = row_tile_ * kTileRows + row_ + slice * 16 + half * 8 + threadIdx.x % kWarp / 4;
    const int64_t column = first_column_ + column_ + threadIdx.x % 4 * kPieceElements;
    const float bias = __ldg(args_.bias + row);
    float values[2 * kOctets];
#pragma unroll
    for (int i = 0; i < 2 * kOctets; ++i) values[i] = sums_[slice][i / 2][half * 2 + i % 2] + bias;
    EndFourOctets<T>(ending_, args_.clamps, static_cast<const T*>(args_.residual), static_cast<T*>(args_.y),
                     int64_t{row} * args_.stride + column, row < args_.rows && column < args_.stride, values);
  }

  const Args& args_;
  const Ending<Function>& ending_;
  typename S::Shared& shared_;
  int row_, column_, row_tile_;
  int64_t first_column_;
  float sums_[S::kSlices][kOctets][4] = {};
};

template <typename T, int kWidth, typename Function>
__global__ __launch_bounds__(kThreads, 2) void MultiplyByWarps(const __grid_constant__ Args args,
                                                               const __grid_constant__ Ending<Function> ending) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename Shape<kWidth>::Shared*>(dynamic_shared);
  Tile<T, kWidth, Function>(args, ending, shared).Run();
}

template <typename T, int kWidth>
void Queue(const TwoOfFourOperands& operands, cudaStream_t queue) {
  using Shared = typename Shape<kWidth>::Shared;
  const TwoOfFour& weight = *operands.weight;
  const Args args = {.words = weight.words(),
                     .bias = weight.bias(),
                     .x = operands.x,
                     .residual = operands.residual,
                     .y = operands.y,
                     .stride = operands.stride,
                     .rows = static_cast<int32_t>(weight.rows()),
                     .cols = static_cast<int32_t>(weight.cols()),
                     .row_tiles = static_cast<int32_t>(weight.tiles()),
                     .stages = static_cast<int32_t>(weight.stages()),
                     .clamps = std::isfinite(operands.epilogue.low) || std::isfinite(operands.epilogue.high)};
  WithTileEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplyByWarps<T, kWidth, Function>;
    AllowSharedMemory(kernel, sizeof(Shared));
    const LaunchGrid grid(weight.tiles() * CeilDiv(operands.columns, kWidth));
    kernel<<<grid, kThreads, sizeof(Shared), queue>>>(args, ending);
  });
}

}  // namespace

template <int kWidth>
void QueueTwoOfFourByWarps(const TwoOfFourOperands& operands, cudaStream_t queue) {
  if (operands.columns == 0) return;
  VisitHalf(operands.dtype, [&]<DType kHalf>() { Queue<Element<kHalf>, kWidth>(operands, queue); });
}

template void QueueTwoOfFourByWarps<64>(const TwoOfFourOperands&, cudaStream_t);
template void QueueTwoOfFourByWarps<128>(const TwoOfFourOperands&, cudaStream_t);

}  // namespace swizzle::cuda
