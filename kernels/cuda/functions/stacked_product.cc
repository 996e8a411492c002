#include <algorithm>

#include "kernels/cuda/functions/functions.h"
#include "kernels/cuda/runtime/cublas_matmul.h"

namespace swizzle::cuda {
namespace {

// A row-major matrix as cuBLAS has it, column-major and transposed.
struct Turned {
  MatrixRef matrix;
  bool transposed = false;
};

Turned TurnedOf(const StackedMatrix& matrix, int64_t rows, int64_t columns) {
  if (matrix.column_stride == 1 || columns == 1) {
    return {{matrix.data, std::max(matrix.row_stride, columns), matrix.batch_stride}, false};
  }
  return {{matrix.data, std::max(matrix.column_stride, rows), matrix.batch_stride}, true};
}

}  // namespace

void CudaFunctions::Multiply(const StackedProduct& call, Stream& stream) const {
  if (call.m == 0 || call.n == 0 || call.batch == 0) return;
  const Turned a = TurnedOf(call.b, call.k, call.n), b = TurnedOf(call.a, call.m, call.k);
  Product product;
  product.m = call.n;
  product.n = call.m;
  product.k = call.k;
  product.a = a.matrix;
  product.transpose_a = a.transposed;
  product.b = b.matrix;
  product.transpose_b = b.transposed;
  product.d = call.to;
  product.ld_d = std::max(call.to_row_stride, call.n);
  product.batch = call.batch;
  product.batch_stride_d = call.to_batch_stride;
  product.aligned = false;
  CudaStream& cuda = CudaStream::From(stream);
  cuda.Report(QueueProduct(product, cuda));
}

}  // namespace swizzle::cuda
