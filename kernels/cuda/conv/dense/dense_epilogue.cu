#include "kernels/cuda/conv/dense/dense_epilogue.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/epilogue.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
constexpr int kPackSize = 16 / sizeof(T);

// The lanes of a block along `packs` packs; the others go down.
int LanesAcross(int64_t packs) { return packs >= kThreads ? kThreads : packs > 32 ? 64 : packs > 8 ? 32 : 8; }

// Elements past the last whole pack are the last block's.
template <typename T, typename Function>
__global__ void FinishAll(T* values, int64_t count, Ending<Function> ending) {
  constexpr int kSize = kPackSize<T>;
  LetNextStart();
  WaitForResults();
  const int64_t first = (blockIdx.x * int64_t{kThreads} + threadIdx.x) * kSize;
  if (first + kSize <= count) {
    float sums[kSize];
    LoadPack<kSize>(values + first, sums);
    ending.template Apply<T>(sums);
    StorePack<kSize>(sums, values + first);
  } else {
    for (int64_t i = first; i < count; ++i) {
      float sum[1] = {ToFloat(values[i])};
      ending.template Apply<T>(sum);
      values[i] = FromFloat<T>(sum[0]);
    }
  }
}

// Positions of whole packs in kNhwc, `pitch` elements apart, of sums that are `sums_pitch` apart; the two may be one.
// Blocks go along a position, and down the positions.
template <typename T, typename Function>
__global__ void FinishPitched(const T* sums, int64_t sums_pitch, T* values, int64_t pitch, int64_t positions, int packs,
                              Ending<Function> ending) {
  constexpr int kSize = kPackSize<T>;
  LetNextStart();
  WaitForResults();
  const int pack = blockIdx.x * blockDim.x + threadIdx.x;
  if (pack >= packs) return;
  const int64_t step = int64_t{gridDim.y} * blockDim.y;
  for (int64_t at = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; at < positions; at += step) {
    float of_pack[kSize];
    LoadPack<kSize>(sums + at * sums_pitch + pack * kSize, of_pack);
    ending.template Apply<T>(of_pack);
    StorePack<kSize>(of_pack, values + at * pitch + pack * kSize);
  }
}

// A row has `packs` packs; blocks go along it, and down the rows.
template <typename T, typename Function>
__global__ void FinishEachRow(T* values, const T* residual, const float* bias, int rows, int packs,
                              Ending<Function> ending) {
  constexpr int kSize = kPackSize<T>;
  LetNextStart();
  WaitForResults();
  const int pack = blockIdx.x * blockDim.x + threadIdx.x;
  if (pack >= packs) return;
  for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += gridDim.y * blockDim.y) {
    const int64_t at = (int64_t{row} * packs + pack) * kSize;
    const float added = bias == nullptr ? 0.0f : bias[row];
    float sums[kSize], others[kSize] = {};
    LoadPack<kSize>(values + at, sums);
    if (residual != nullptr) LoadPack<kSize>(residual + at, others);
#pragma unroll
    for (int i = 0; i < kSize; ++i) sums[i] = sums[i] + added + others[i];
    ending.template Apply<T>(sums);
    StorePack<kSize>(sums, values + at);
  }
}

// A position has `packs` packs of channels; blocks go along it, and down the positions.
template <int kSize, typename Function>
__global__ void FinishEachPosition(float* values, const float* residual, PartEnds ends, int64_t positions, int packs,
                                   Ending<Function> ending) {
  LetNextStart();
  const int pack = blockIdx.x * blockDim.x + threadIdx.x;
  if (pack >= packs) return;
  float biases[kSize], inverses[kSize];
  LoadPack(ends.bias + pack * kSize, biases);
  LoadPack(ends.channel_inverses + pack * kSize, inverses);
  WaitForResults();
  const int64_t step = int64_t{gridDim.y} * blockDim.y;
  for (int64_t position = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; position < positions; position += step) {
    const int64_t at = (position * packs + pack) * kSize;
    const float inverse = ends.position_inverses[position];
    float sums[kSize], others[kSize] = {};
    LoadPack(values + at, sums);
    if (residual != nullptr) LoadPack(residual + at, others);
#pragma unroll
    for (int i = 0; i < kSize; ++i) sums[i] = fmaf(sums[i] * inverses[i], inverse, biases[i]) + others[i];
    ending.template Apply<float>(sums);
    StorePack(sums, values + at);
  }
}

template <int kSize>
void QueueFinishParts(const KernelArgs& args, const PartEnds& ends, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t positions = problem.output.positions();
  const int packs = static_cast<int>(problem.output.channels / kSize);
  const int across = LanesAcross(packs);
  const dim3 block(across, kThreads / across);
  const LaunchGrid grid(CeilDiv(packs, across), CeilDiv<int64_t>(positions, block.y));
  WithEnding(problem.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    LaunchDependent(FinishEachPosition<kSize, Function>, grid, block, 0, QueueOf(stream), args.Output<float>(),
                    args.Residual<float>(), ends, positions, packs, ending);
  });
}

template <typename T>
void FinishPitchedAs(const KernelArgs& args, const void* sums, int64_t sums_pitch, Stream& stream) {
  const Problem& problem = *args.problem;
  const int packs = static_cast<int>(problem.output.channels / kPackSize<T>), across = LanesAcross(packs);
  const dim3 block(across, kThreads / across);
  const LaunchGrid grid(CeilDiv(packs, across), CeilDiv<int64_t>(problem.output.positions(), block.y));
  WithEnding(problem.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    LaunchDependent(FinishPitched<T, Function>, grid, block, 0, QueueOf(stream), static_cast<const T*>(sums),
                    sums_pitch, args.Output<T>(), args.output.pitch, problem.output.positions(), packs, ending);
  });
}

template <typename T>
void FinishOutputAs(const KernelArgs& args, Stream& stream) {
  if (!args.output.IsWhole()) return FinishPitchedAs<T>(args, args.output.data, args.output.pitch, stream);
  const Problem& problem = *args.problem;
  const int64_t count = problem.output.positions() * problem.output.channels;
  const auto grid = LaunchGrid::OfThreads(count, kThreads * kPackSize<T>);
  WithEnding(problem.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    LaunchDependent(FinishAll<T, Function>, grid, kThreads, 0, QueueOf(stream), args.Output<T>(), count, ending);
  });
}

template <typename T>
void FinishRowsAs(const KernelArgs& args, const float* bias, Stream& stream) {
  const Problem& problem = *args.problem;
  const int rows = static_cast<int>(problem.output.channels);
  const int packs = static_cast<int>(RowStride(problem.output.positions()) / kPackSize<T>);
  const int across = LanesAcross(packs);
  const dim3 block(across, kThreads / across);
  const LaunchGrid grid(CeilDiv(packs, block.x), CeilDiv(rows, block.y));
  WithEnding(problem.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    LaunchDependent(FinishEachRow<T, Function>, grid, block, 0, QueueOf(stream), args.Output<T>(), args.Residual<T>(),
                    bias, rows, packs, ending);
  });
}

}  // namespace

void FinishOutput(const KernelArgs& args, Stream& stream) {
  VisitReal(args.problem->to.dtype, [&]<DType kType>() { FinishOutputAs<Element<kType>>(args, stream); });
}

void FinishSums(const KernelArgs& args, const void* sums, Stream& stream) {
  const int64_t channels = args.problem->output.channels;
  VisitReal(args.problem->to.dtype,
            [&]<DType kType>() { FinishPitchedAs<Element<kType>>(args, sums, channels, stream); });
}

void FinishParts(const KernelArgs& args, const PartEnds& ends, Stream& stream) {
  args.problem->output.channels % 4 == 0 ? QueueFinishParts<4>(args, ends, stream)
                                         : QueueFinishParts<1>(args, ends, stream);
}

void FinishRows(const KernelArgs& args, const float* bias, Stream& stream) {
  VisitReal(args.problem->to.dtype, [&]<DType kType>() { FinishRowsAs<Element<kType>>(args, bias, stream); });
}

}  // namespace swizzle::cuda
