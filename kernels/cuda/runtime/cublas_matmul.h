// One matrix product through cuBLASLt, in its terms: matrices are column-major, `ld` elements from one column to the
// next.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_CUBLAS_MATMUL_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_CUBLAS_MATMUL_H_

#include <cstdint>

#include "kernels/cuda/runtime/cuda_stream.h"

namespace swizzle::cuda {

struct MatrixRef {
  const void* data = nullptr;  // aligned to 256 bytes, as heuristics take it to be, but for Product::aligned
  int64_t ld = 0;
  int64_t batch_stride = 0;  // elements
  bool is_weight = false;    // comes from outside the second cache
};

// d[m, n] = relu(a[m, k] * b[k, n] + c[m, n] + bias[m]). All of one type; sums in fp32, and for fp32 in full precision,
// unless `tf32` is set. Of halves d may be the sums themselves: `keeps_sums`, without c, bias or relu. Of signed bytes
// d is the sums, of 32 bits: transpose_a is set, all sizes are multiples of 16 but n, and there is no c, bias or relu.
struct Product {
  DType dtype = DType::kFloat32;
  bool tf32 = false;  // fp32 factors may be rounded to TF32
  bool keeps_sums = false;
  int64_t m = 0, n = 0, k = 0;
  MatrixRef a, b;
  bool transpose_a = false;  // a is stored as [k, m]
  bool transpose_b = false;  // b is stored as [n, k]
  const void* c = nullptr;   // or null; not d
  int64_t ld_c = 0;          // 0: d's
  void* d = nullptr;
  int64_t ld_d = 0;
  const void* bias = nullptr;  // [m], or null
  bool relu = false;
  int64_t batch = 1;           // as many products; c and bias are then null
  int64_t batch_stride_d = 0;  // elements
  bool aligned = true;         // false: matrices lie anywhere
};

// Queues it, with the algorithm that was chosen for such products, else the one that cuBLASLt's heuristics put first:
// plans are recorded, so that looking it up costs nothing later. Where kernels are timed and nothing was chosen yet, up
// to 12 of the heuristics' are timed here with these operands, for some milliseconds, and the fastest is chosen: the
// first, unless another is clearly faster. d is then written again and again.
Status QueueProduct(const Product& product, CudaStream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_CUBLAS_MATMUL_H_
