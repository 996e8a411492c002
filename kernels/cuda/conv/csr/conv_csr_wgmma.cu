#include <cooperative_groups.h>

#include "kernels/cuda/conv/csr/conv_csr_wgmma.h"
#include "kernels/cuda/conv/csr/fragment_reader.cuh"
#include "kernels/cuda/runtime/cluster.cuh"
#include "kernels/cuda/runtime/device_facts.h"
#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/operand.cuh"
#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32, kGroup = 128, kGroups = 2, kThreads = kGroup * kGroups;
constexpr int kGroupRows = 64;                   // of Y, of a warpgroup
constexpr int kTile = 64;                        // columns of Y of a CTA
constexpr int kSlab = FragmentCsr::kColumnUnit;  // rows of X that are multiplied at a time
constexpr int kStepsOfSlab = kSlab / FragmentCsr::kBlock;
constexpr int kStages = 4;              // slabs of X under way
constexpr int kSlabsOfLargest = 3;      // being found, in use, and cleared
constexpr int kSumStride = kTile + 8;   // of rows of sums in shared memory: no bank conflicts
constexpr int kLanesOfRow = kTile / 4;  // threads that have four neighbours each of a row of X or Y
constexpr int kRowsOfPass = kThreads / kLanesOfRow;

// The warpgroups of a CTA share a slab: each has all of it and 64 rows of Y of its own, or each has a part of it (a
// depth), and their sums are added at the end: more CTAs for small problems.
struct SharedRows {
  static constexpr int kRows = kGroups * kGroupRows;       // of Y, of a CTA
  static constexpr int kSteps = kStepsOfSlab, kDepth = 0;  // blocks of W of a warp; those before a warpgroup's
};
struct SharedDepth {
  static constexpr int kRows = kGroupRows;
  static constexpr int kSteps = kStepsOfSlab / kGroups, kDepth = kSteps;
};

struct Args {
  const uint4* halves;  // two FragmentHalfs each
  const uint32_t* entries;
  const float *inverses, *bias, *x, *residual;
  float* y;
  int64_t stride, n;
  int32_t rows, cols, steps, row_tiles;
};

// A slab of X as FP16 parts.
using SlabParts = uint4[2][kSlab][kTile / 8];  // [upper, rest]; 16-byte pieces lie at piece ^ (row % 8)

struct alignas(1024) Shared {
  union {
    SlabParts parts[2];
    float sums[kGroups * kGroupRows][kSumStride];
  };
  float4 stages[kStages][kSlab][kLanesOfRow];
  uint4 largest[kSlabsOfLargest][kLanesOfRow];  // magnitudes of a slab's columns, as bits
  float4 inverses[2][kLanesOfRow];              // of the factors of a slab's columns
};

__device__ float4 LargerMagnitudes(float4 a, float4 b) {  // NaNs do not count
  return {fmaxf(fabsf(a.x), fabsf(b.x)), fmaxf(fabsf(a.y), fabsf(b.y)), fmaxf(fabsf(a.z), fabsf(b.z)),
          fmaxf(fabsf(a.w), fabsf(b.w))};
}

// A thread's part of X: four neighbours of every 16th row. It copies them to shared memory ahead of time, for itself.
class SlabPiece {
 public:
  __device__ SlabPiece(const Args& args, int64_t first_column, Shared& shared) : args_(args), shared_(shared) {
    const int64_t column = first_column + threadIdx.x % kLanesOfRow * 4;
    bytes_ = static_cast<int>(max(int64_t{0}, min(int64_t{4}, args.n - column))) * 4;
    from_ = args.x + (bytes_ > 0 ? column : 0);
  }

  // Zeros outside of X, whose rows may have anything after column n.
  __device__ void Copy(int slab) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = slab * kSlab + i * kRowsOfPass + threadIdx.x / kLanesOfRow;
      const bool inside = row < args_.cols;
      CopyAsyncPart(SharedAddress(At(slab, i)), from_ + (inside ? row * args_.stride : 0), inside ? bytes_ : 0);
    }
  }

  // Takes what has arrived, and tells the others its largest magnitudes.
  __device__ void Load(int slab) {
    float4 most = {};
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      values_[i] = *At(slab, i);
      most = LargerMagnitudes(most, values_[i]);
    }
    // The other half of the warp has other rows of the same columns; each half takes two of the four.
    const bool upper = threadIdx.x % kWarp >= kLanesOfRow;
    const float sent[2] = {upper ? most.x : most.z, upper ? most.y : most.w};
    const float kept[2] = {upper ? most.z : most.x, upper ? most.w : most.y};
    auto* const to = reinterpret_cast<uint32_t*>(Largest(slab)) + (upper ? 2 : 0);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float other = __shfl_xor_sync(0xFFFFFFFFu, sent[i], kLanesOfRow);
      atomicMax(to + i, __float_as_uint(fmaxf(kept[i], other)));
    }
  }
  // For a slab to come.
  __device__ void ClearLargest(int slab) const {
    if (threadIdx.x < kLanesOfRow) *Largest(slab) = {};
  }

  // As FP16 parts, each column scaled by a factor of its own: the next one may be another request's.
  __device__ void Store(int slab) const {
    const int lane = threadIdx.x % kLanesOfRow;
    const uint4 most = *Largest(slab);
    const Fit fits[4] = {FitOf(most.x), FitOf(most.y), FitOf(most.z), FitOf(most.w)};
    if (threadIdx.x < kLanesOfRow) {
      shared_.inverses[slab % 2][lane] = {fits[0].inverse, fits[1].inverse, fits[2].inverse, fits[3].inverse};
    }
    SlabParts& to = shared_.parts[slab % 2];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = i * kRowsOfPass + threadIdx.x / kLanesOfRow, piece = lane / 2 ^ row % 8;
      const float x[4] = {values_[i].x * fits[0].factor, values_[i].y * fits[1].factor, values_[i].z * fits[2].factor,
                          values_[i].w * fits[3].factor};
      reinterpret_cast<uint2*>(&to[0][row][piece])[lane % 2] = {PackHalves(x[0], x[1]), PackHalves(x[2], x[3])};
      reinterpret_cast<uint2*>(&to[1][row][piece])[lane % 2] = {PackHalves(RestOf(x[0]), RestOf(x[1])),
                                                                PackHalves(RestOf(x[2]), RestOf(x[3]))};
    }
    PublishToProducts();
  }

 private:
  static constexpr int kRows = kSlab / kRowsOfPass;
  __device__ float4* At(int slab, int i) const {
    return &shared_.stages[slab % kStages][i * kRowsOfPass + threadIdx.x / kLanesOfRow][threadIdx.x % kLanesOfRow];
  }

  // Of this thread's columns.
  __device__ uint4* Largest(int slab) const {
    return &shared_.largest[slab % kSlabsOfLargest][threadIdx.x % kLanesOfRow];
  }

  const Args& args_;
  Shared& shared_;
  const float* from_;
  int bytes_;
  float4 values_[kRows];
};

// A warp's 16 rows by 64 columns. Lane (g, t) has rows g and g + 8, and columns 2t and 2t + 1 of each eight.
struct WarpSums {
  float of[kTile / 8 * 4] = {};
  float products[kTile / 8 * 4] = {};  // of one slab

  // Queues the products with the parts of X from row `first` of the slab on.
  template <int kSteps>
  __device__ void Queue(const SlabParts& parts, int first, uint32_t (&upper)[kSteps][4], uint32_t (&rest)[kSteps][4]) {
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      FinishOperand(upper[i]);
      FinishOperand(rest[i]);
    }
    FenceProducts();
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const uint64_t x_upper = SharedOperand(SharedAddress(&parts[0][first + i * 16][0]));
      const uint64_t x_rest = SharedOperand(SharedAddress(&parts[1][first + i * 16][0]));
      if (i == 0) {
        QueueProduct<false, __half, __half, kDepthOuter>(products, rest[i], x_upper);
      } else {
        QueueProduct<true, __half, __half, kDepthOuter>(products, rest[i], x_upper);
      }
      QueueProduct<true, __half, __half, kDepthOuter>(products, upper[i], x_rest);
      QueueProduct<true, __half, __half, kDepthOuter>(products, upper[i], x_upper);
    }
    CommitProducts();
  }
  // Adds what was queued; `inverses` are those of the factors of the slab's columns.
  __device__ void Add(const float4 (&inverses)[kLanesOfRow]) {
    const auto* const pairs = reinterpret_cast<const float2*>(inverses) + threadIdx.x % 4;
    float2 pair[kTile / 8];
#pragma unroll
    for (int j = 0; j < kTile / 8; ++j) pair[j] = pairs[j * 4];
    WaitForProducts(products);
#pragma unroll
    for (int i = 0; i < kTile / 8 * 4; i += 2) {
      of[i] = fmaf(products[i], pair[i / 4].x, of[i]);
      of[i + 1] = fmaf(products[i + 1], pair[i / 4].y, of[i + 1]);
    }
  }

  // To shared memory, with the scale of W's rows undone; `inverses` are those of the warpgroup's rows.
  __device__ void Put(const float* inverses, float (*sums)[kSumStride]) const {
    const int lane = threadIdx.x % kWarp, group = threadIdx.x / kGroup * kGroupRows;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = threadIdx.x % kGroup / kWarp * 16 + half * 8 + lane / 4;
      const float inverse = __ldg(inverses + row);
#pragma unroll
      for (int j = 0; j < kTile / 8; ++j) {
        *reinterpret_cast<float2*>(&sums[group + row][j * 8 + lane % 4 * 2]) = {of[4 * j + 2 * half] * inverse,
                                                                                of[4 * j + 2 * half + 1] * inverse};
      }
    }
  }
};

// The CTAs that share K, one alone where a device has no clusters.
struct Sharers {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cooperative_groups::cluster_group group = cooperative_groups::this_cluster();
  __device__ int count() const { return group.num_blocks(); }
  __device__ int rank() const { return group.block_rank(); }
  // What the CTAs wrote to shared memory is there for all.
  __device__ void Wait() { group.sync(); }
  // The same, without anything written.
  __device__ void Leave() { MeetInCluster(); }
  template <typename T>
  __device__ const T* SharedOf(const T* mine, int rank) const {
    return group.map_shared_rank(mine, rank);
  }
#else
  __device__ int count() const { return 1; }
  __device__ int rank() const { return 0; }
  __device__ void Wait() { __syncthreads(); }
  __device__ void Leave() {}
  template <typename T>
  __device__ const T* SharedOf(const T* mine, int) const {
    return mine;
  }
#endif
};

// Adds up this CTA's part of the rows over all sharers and stores them.
template <typename Shape, typename Function>
__device__ void Finish(const Args& args, const Ending<Function>& ending, const Shared& shared, const Sharers& sharers,
                       int first_row, int64_t first_column) {
  constexpr int kRows = Shape::kRows;
  const int count = sharers.count(), rank = sharers.rank();
  const int begin = kRows * rank / count, end = kRows * (rank + 1) / count;
  const int at = threadIdx.x % kLanesOfRow * 4;
  const int64_t column = first_column + at;
  if (column >= args.n) return;
  for (int i = begin + threadIdx.x / kLanesOfRow; i < end; i += kRowsOfPass) {
    const int row = first_row + i;
    if (row >= args.rows) return;
    const float bias = __ldg(args.bias + row);
    float4 sum = {};
    for (int from = 0; from < count; ++from) {
#pragma unroll
      for (int depth = 0; depth < kGroups * kGroupRows; depth += kRows) {
        const float4 more = *reinterpret_cast<const float4*>(sharers.SharedOf(&shared.sums[depth + i][at], from));
        sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
      }
    }
    const int64_t to = row * args.stride + column;
    float4 residual = {};
    if (args.residual != nullptr) residual = *reinterpret_cast<const float4*>(args.residual + to);
    float y[4] = {sum.x + bias + residual.x, sum.y + bias + residual.y, sum.z + bias + residual.z,
                  sum.w + bias + residual.w};
    ending.template Apply<float>(y);
    StorePack<4>(y, args.y + to);
  }
}

// One barrier a slab: while tensor cores multiply it, the next one is scaled and stored to the other buffer, and the
// ones after that are on their way from memory.
template <typename Shape, typename Function>
__global__ __launch_bounds__(kThreads, 1) void MultiplySlabs(const __grid_constant__ Args args,
                                                             const __grid_constant__ Ending<Function> ending) {
  constexpr int kRows = Shape::kRows, kSteps = Shape::kSteps;
  Sharers sharers;
  const int count = sharers.count(), rank = sharers.rank(), tile = blockIdx.x / count;
  const int slabs = args.steps / kStepsOfSlab, begin = slabs * rank / count, end = slabs * (rank + 1) / count;
  const int64_t first_column = int64_t{tile / args.row_tiles} * kTile;
  const int first_row = tile % args.row_tiles * kRows, group = threadIdx.x / kGroup;
  const int group_row = first_row + group * kGroupRows % kRows;
  const int depth = group * Shape::kDepth;  // in steps

  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<Shared*>(dynamic_shared);
  SlabPiece piece(args, first_column, shared);
  WarpSums sums;
  FragmentReader<Args, kSteps, kStepsOfSlab> weights(args, group_row / 16 + threadIdx.x % kGroup / kWarp,
                                                     begin * kStepsOfSlab + depth, end * kStepsOfSlab);
  const auto copy = [&](int slab) {  // one group of copies a slab, empty or not
    if (slab < end) piece.Copy(slab);
    CommitCopies();
  };
  const auto load = [&](int slab) {
    WaitForCopies<kStages - 2>();
    piece.Load(slab);
  };
  for (int i = 0; i < kStages - 1; ++i) copy(begin + i);
  for (int i = 0; i < kSlabsOfLargest; ++i) piece.ClearLargest(i);
  __syncthreads();
  if (begin < end) {
    load(begin);
    weights.LoadEntries();
    weights.LoadHalves();
    __syncthreads();
    piece.Store(begin);
  }
  for (int slab = begin; slab < end; ++slab) {
    copy(slab + kStages - 1);
    if (slab + 1 < end) load(slab + 1);
    __syncthreads();
    uint32_t upper[kSteps][4], rest[kSteps][4];
    weights.Take(upper, rest);
    sums.Queue(shared.parts[slab % 2], depth * 16, upper, rest);
    weights.LoadEntries();
    weights.LoadHalves();
    if (slab + 1 < end) piece.Store(slab + 1);
    piece.ClearLargest(slab);
    sums.Add(shared.inverses[slab % 2]);
  }
  __syncthreads();
  sums.Put(args.inverses + group_row, shared.sums);
  sharers.Wait();
  Finish<Shape>(args, ending, shared, sharers, first_row, first_column);
  if (count > 1) sharers.Leave();  // others read this CTA's sums
}

// The configuration of a launch, which it points into.
class Launch {
 public:
  template <typename... Params>
  Launch(void (*kernel)(Params...), int64_t tiles, int sharers, cudaStream_t queue) {
    AllowSharedMemory(kernel, sizeof(Shared));
    cluster_.id = cudaLaunchAttributeClusterDimension;
    cluster_.val.clusterDim = {static_cast<unsigned>(sharers), 1, 1};
    config_.gridDim = LaunchGrid(tiles * sharers);
    config_.blockDim = kThreads;
    config_.dynamicSmemBytes = sizeof(Shared);
    config_.stream = queue;
    config_.attrs = &cluster_;
    config_.numAttrs = 1;
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  const cudaLaunchConfig_t& config() const { return config_; }

 private:
  cudaLaunchAttribute cluster_ = {};
  cudaLaunchConfig_t config_ = {};
};

template <typename Shape>
void Queue(const WgmmaOperands& operands, int sharers, cudaStream_t queue) {
  const FragmentCsr& weight = *operands.weight;
  const int64_t row_tiles = CeilDiv(weight.rows(), Shape::kRows);
  const Args args = {.halves = reinterpret_cast<const uint4*>(weight.halves()),
                     .entries = weight.entries(),
                     .inverses = weight.inverses(),
                     .bias = weight.bias(),
                     .x = operands.x,
                     .residual = operands.residual,
                     .y = operands.y,
                     .stride = operands.stride,
                     .n = operands.columns,
                     .rows = static_cast<int32_t>(weight.rows()),
                     .cols = static_cast<int32_t>(weight.cols()),
                     .steps = static_cast<int32_t>(weight.steps()),
                     .row_tiles = static_cast<int32_t>(row_tiles)};
  WithEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplySlabs<Shape, Function>;
    const Launch launch(kernel, row_tiles * CeilDiv(operands.columns, kTile), sharers, queue);
    cudaLaunchKernelEx(&launch.config(), kernel, args, ending);
  });
}

}  // namespace

WgmmaDevice CurrentWgmmaDevice() {
  WgmmaDevice device = {CurrentDeviceFacts().speed};
  for (int sharers = 1; sharers < static_cast<int>(device.clusters.size()); ++sharers) {
    auto* const kernel = MultiplySlabs<SharedDepth, NoFunction>;
    const Launch launch(kernel, 1, sharers, nullptr);
    cudaOccupancyMaxActiveClusters(&device.clusters[sharers], kernel, &launch.config());
  }
  return device;
}

void QueueWgmma(const WgmmaOperands& operands, const WgmmaPlan& plan, cudaStream_t queue) {
  if (operands.weight->rows() == 0 || operands.columns == 0) return;
  if (plan.rows == SharedDepth::kRows) return Queue<SharedDepth>(operands, plan.sharers, queue);
  Queue<SharedRows>(operands, plan.sharers, queue);
}

}  // namespace swizzle::cuda
