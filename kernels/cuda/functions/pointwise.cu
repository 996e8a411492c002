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

template <typename T>
__device__ T Load(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<T>(static_cast<const float*>(data)[i]);
    case DType::kInt64:
      return static_cast<T>(static_cast<const int64_t*>(data)[i]);
    case DType::kInt32:
      return static_cast<T>(static_cast<const int32_t*>(data)[i]);
    default:
      return static_cast<T>(static_cast<const uint8_t*>(data)[i]);
  }
}

template <typename T>
__device__ void Store(T value, void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kFloat32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case DType::kInt64:
      static_cast<int64_t*>(data)[i] = static_cast<int64_t>(value);
      return;
    case DType::kInt32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
      return;
    case DType::kBool:
      static_cast<uint8_t*>(data)[i] = value != 0 ? 1 : 0;
      return;
    default:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value);
  }
}

__device__ float OfOne(PointOp op, float x, float alpha, float beta) {
  switch (op) {
    case PointOp::kAbs:
      return fabsf(x);
    case PointOp::kNeg:
      return -x;
    case PointOp::kRelu:
      return x < 0 ? 0.0f : x;
    case PointOp::kNot:
      return x == 0 ? 1.0f : 0.0f;
    case PointOp::kFloor:
      return floorf(x);
    case PointOp::kCeil:
      return ceilf(x);
    case PointOp::kExp:
      return expf(x);
    case PointOp::kLog:
      return logf(x);
    case PointOp::kSqrt:
      return sqrtf(x);
    case PointOp::kReciprocal:
      return 1.0f / x;
    case PointOp::kErf:
      return erff(x);
    case PointOp::kSin:
      return sinf(x);
    case PointOp::kCos:
      return cosf(x);
    case PointOp::kTanh:
      return tanhf(x);
    case PointOp::kSigmoid:
      return 1.0f / (1.0f + expf(-x));
    case PointOp::kSoftplus:
      return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
    case PointOp::kGelu:
      return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case PointOp::kGeluTanh:
      return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    case PointOp::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case PointOp::kElu:
      return x < 0 ? alpha * expm1f(x) : x;
    case PointOp::kHardSigmoid:
      return fminf(fmaxf(alpha * x + beta, 0.0f), 1.0f);
    case PointOp::kClip:
      return x > beta ? beta : (x < alpha ? fminf(alpha, beta) : x);
    default:
      return x;
  }
}

__device__ int64_t OfOne(PointOp op, int64_t x, float, float) {
  switch (op) {
    case PointOp::kAbs:
      return x < 0 ? static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
    case PointOp::kNeg:
      return static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(x));
    case PointOp::kRelu:
      return x < 0 ? 0 : x;
    case PointOp::kNot:
      return x == 0;
    default:
      return x;
  }
}

__device__ int64_t Quotient(int64_t x, int64_t y) {
  if (y == 0) return 0;
  return y == -1 ? static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(x)) : x / y;
}
__device__ float Quotient(float x, float y) { return x / y; }
__device__ float Power(float x, float y) { return y == 2.0f ? x * x : powf(x, y); }
__device__ int64_t Power(int64_t x, int64_t) { return x; }  // no caller asks for it
__device__ float Sum(float x, float y) { return x + y; }
__device__ int64_t Sum(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
__device__ float Difference(float x, float y) { return x - y; }
__device__ int64_t Difference(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
}
__device__ float Product(float x, float y) { return x * y; }
__device__ int64_t Product(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}

template <typename T>
__device__ T OfTwo(PointOp op, T x, T y) {
  switch (op) {
    case PointOp::kAdd:
      return Sum(x, y);
    case PointOp::kSub:
      return Difference(x, y);
    case PointOp::kMul:
      return Product(x, y);
    case PointOp::kDiv:
      return Quotient(x, y);
    case PointOp::kPow:
      return Power(x, y);
    case PointOp::kMax:
      return x > y || x != x ? x : y;
    case PointOp::kMin:
      return x < y || x != x ? x : y;
    case PointOp::kPRelu:
      return x < 0 ? Product(y, x) : x;
    case PointOp::kEqual:
      return x == y;
    case PointOp::kGreater:
      return x > y;
    case PointOp::kGreaterOrEqual:
      return x >= y;
    case PointOp::kLess:
      return x < y;
    case PointOp::kLessOrEqual:
      return x <= y;
    case PointOp::kAnd:
      return x != 0 && y != 0;
    default:
      return x != 0 || y != 0;
  }
}

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
    for (int k = 0; k < kInputs; ++k) x[k] = Load<T>(operands.data[k], operands.dtypes[k], offsets[k]);
    T y;
    if constexpr (kInputs == 1) {
      y = OfOne(operands.op, x[0], operands.alpha, operands.beta);
    } else if constexpr (kInputs == 2) {
      y = OfTwo(operands.op, x[0], x[1]);
    } else {
      y = x[0] != 0 ? x[1] : x[2];
    }
    Store(y, operands.output, operands.output_dtype, i);
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
