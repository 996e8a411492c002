#include "kernels/backend/point_functions.h"
#include "kernels/cuda/functions/functions.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

// As Pointwise has it, its offsets in Index.
template <typename Index>
struct Operands {
  int rank;
  Index dims[kMaxStridedRank];
  Index strides[3][kMaxStridedRank];
  const void* data[3];
  DType dtypes[3];
  void* output;
  DType output_dtype;
  PointOp op;
  float alpha, beta;
};

template <typename T, int kInputs, typename Index>
__global__ void __launch_bounds__(kThreads) Points(const __grid_constant__ Operands<Index> operands, Index count) {
  const Index step = Index(gridDim.x) * kThreads;
  for (Index i = Index(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    Index offsets[kInputs] = {}, rest = i;
#pragma unroll
    for (int d = kMaxStridedRank - 1; d >= 0; --d) {
      if (d >= operands.rank) continue;
      Index at = rest;
      if (d > 0) {
        at = rest % operands.dims[d];
        rest /= operands.dims[d];
      }
#pragma unroll
      for (int k = 0; k < kInputs; ++k) offsets[k] += at * operands.strides[k][d];
    }
    T x[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) x[k] = PointAt<T>(operands.data[k], operands.dtypes[k], offsets[k]);
    PutPoint(PointOf(operands.op, operands.alpha, operands.beta, x), operands.output, operands.output_dtype, i);
  }
}

template <typename T, int kInputs, typename Index>
void Queue(const Pointwise& call, int64_t count, Stream& stream) {
  Operands<Index> operands = {};
  operands.rank = call.rank;
  for (int d = 0; d < call.rank; ++d) operands.dims[d] = static_cast<Index>(call.dims[d]);
  for (int k = 0; k < kInputs; ++k) {
    for (int d = 0; d < call.rank; ++d) operands.strides[k][d] = static_cast<Index>(call.inputs[k].strides[d]);
    operands.data[k] = call.inputs[k].data;
    operands.dtypes[k] = call.inputs[k].dtype;
  }
  operands.output = call.output;
  operands.output_dtype = call.output_dtype;
  operands.op = call.op;
  operands.alpha = call.alpha;
  operands.beta = call.beta;
  const auto grid = LaunchGrid::OfLoops(count, kThreads, MultiprocessorsOf(stream));
  Points<T, kInputs, Index><<<grid, kThreads, 0, QueueOf(stream)>>>(operands, static_cast<Index>(count));
}

template <typename T, int kInputs>
void QueueOfCount(const Pointwise& call, Stream& stream) {
  int64_t count = 1;
  for (int d = 0; d < call.rank; ++d) count *= call.dims[d];
  if (count == 0) return;
  if (count < int64_t{1} << 31) return Queue<T, kInputs, uint32_t>(call, count, stream);
  Queue<T, kInputs, uint64_t>(call, count, stream);
}

template <typename T>
void QueueOfType(const Pointwise& call, Stream& stream) {
  switch (InputsOf(call.op)) {
    case 1:
      return QueueOfCount<T, 1>(call, stream);
    case 2:
      return QueueOfCount<T, 2>(call, stream);
    default:
      return QueueOfCount<T, 3>(call, stream);
  }
}

}  // namespace

void CudaFunctions::Map(const Pointwise& call, Stream& stream) const {
  if (call.integers) return QueueOfType<int64_t>(call, stream);
  QueueOfType<float>(call, stream);
}

}  // namespace swizzle::cuda
