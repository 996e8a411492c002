// The dense bar of products in half precision: cuBLASLt's fastest heuristic, timed with a warm second cache and with a
// cold one. Errors of CUDA end the program. Single-threaded.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_DENSE_PRODUCT_H_
#define SWIZZLE_TESTS_BENCH_CUDA_DENSE_PRODUCT_H_

#include <cublasLt.h>

#include <functional>

#include "kernels/format/dense.h"
#include "tests/bench/cuda/contenders.h"

namespace swizzle::bench {

struct Times {
  double warm = 0, cold = 0;
};

// Times work with the second cache as the launch before left it, and emptied: 128 MiB are written before each launch,
// and their time taken off.
class BothTimer {
 public:
  BothTimer(int launches, int rounds);
  cudaStream_t queue() const { return timer_.queue(); }
  double Warm(const std::function<void()>& work) { return timer_.Time(work); }
  Times Both(const std::function<void()>& work);

 private:
  void Flush();

  Timer timer_;
  cuda::DeviceArray<std::byte> flush_;
  double empty_ = 0;
};

// Y = W X by cuBLASLt, X and Y in rows or, turned, by positions.
class DenseProduct {
 public:
  DenseProduct(const DenseMatrix& weight, Product& product, bool by_positions);
  // Of the fastest of up to 16 heuristics.
  Times Best(BothTimer& timer);

 private:
  void Run(const cublasLtMatmulAlgo_t& algorithm, cudaStream_t queue);

  Product& product_;
  const bool by_positions_;
  cublasLtHandle_t handle_;
  cublasLtMatmulDesc_t operation_;
  cublasLtMatrixLayout_t left_, right_, result_;
  cuda::DeviceArray<uint16_t> weight_;
  cuda::DeviceArray<std::byte> workspace_;
};

// The faster of both layouts.
Times TimeDense(const DenseMatrix& weight, Product& product, BothTimer& timer);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_DENSE_PRODUCT_H_
