// What cuda_spmm_bench times: one product Y = W X on a GPU by each library and kernel, checked and timed in the same
// way.
//
// Times are of a CUDA graph of many launches after each other, over that number: the second cache is warm, the host
// plays no part. Errors of CUDA end the program. Single-threaded.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_CONTENDERS_H_
#define SWIZZLE_TESTS_BENCH_CUDA_CONTENDERS_H_

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusparse.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/conv/csr/conv_csr.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/format/csr.h"
#include "tests/bench/cuda/sputnik_spmm.h"

namespace swizzle::bench {

// Ends the program with `what` where a call failed.
void Must(bool ok, const std::string& what);
void Must(cudaError_t error, const std::string& what);

// What all cases share. Graphs hold `launches` launches and are replayed `rounds` times.
class Timer {
 public:
  Timer(int launches, int rounds);
  Timer(int launches, int rounds, cudaStream_t queue);  // that of another
  cudaStream_t queue() const { return queue_; }
  // Microseconds of one launch, the median over rounds.
  double Time(const std::function<void()>& work);

 private:
  int launches_, rounds_;
  cudaStream_t queue_;
  cudaEvent_t start_, stop_;
};

// The operands of one product, values drawn; of X so many are zero.
class Product {
 public:
  Product(const CsrMatrix& matrix, int64_t columns, DType dtype, double x_sparsity = 0);

  const CsrMatrix& matrix() const { return matrix_; }
  int64_t columns() const { return columns_; }               // N
  int64_t padded() const { return (columns_ + 3) / 4 * 4; }  // what libraries compute
  int64_t stride() const { return stride_; }
  DType dtype() const { return dtype_; }
  const void* x() const { return x_.data(); }
  const std::vector<float>& host_x() const { return host_x_; }  // rows of stride()
  void* y() { return y_.data(); }
  double flops() const { return 2.0 * static_cast<double>(matrix_.nnz()) * static_cast<double>(columns_); }

  // Runs `work` on a poisoned Y and returns the largest difference from the sums in double precision, over the largest
  // sum, on some rows.
  double Error(const std::function<void()>& work, cudaStream_t queue);

 private:
  const CsrMatrix& matrix_;
  int64_t columns_, stride_;
  DType dtype_;
  std::vector<float> host_x_;
  cuda::DeviceArray<std::byte> x_, y_;
};

// W as CSR in device memory, 32-bit indices, fp32 or the half types.
struct DeviceCsr {
  DeviceCsr(const CsrMatrix& matrix, DType dtype);
  SputnikMatrix Sputnik(int64_t rows, bool swizzled) const;
  cuda::DeviceArray<int32_t> offsets, columns, order, as_is;
  cuda::DeviceArray<std::byte> values;
};

// The fastest of cuSPARSE's CSR algorithms; `error` is the largest of any.
struct LibraryTime {
  double us = 0;
  double error = 0;
  std::string what;
};
LibraryTime TimeCusparse(cusparseHandle_t handle, Product& product, const DeviceCsr& csr, Timer& timer);
LibraryTime TimeCublas(cublasHandle_t handle, Product& product, Timer& timer);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_CONTENDERS_H_
