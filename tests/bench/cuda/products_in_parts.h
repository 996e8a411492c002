// FP32 in three products of FP16 parts, for plans whose precision allows it: the dense product
// (kernels/cuda/conv/parts/conv_dense_parts.h), which is the bar there, and the sparse one (conv_csr_parts.h). As plans
// run them: X split each time; the dense one in kNhwc, its sums ended by a pass of its own, cuBLASLt's best of 16
// algorithms. Errors of CUDA end the program. Single-threaded.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_PRODUCTS_IN_PARTS_H_
#define SWIZZLE_TESTS_BENCH_CUDA_PRODUCTS_IN_PARTS_H_

#include <memory>

#include "kernels/cuda/conv/csr/fragment_csr.h"
#include "kernels/cuda/runtime/cuda_stream.h"
#include "tests/bench/cuda/contenders.h"

namespace swizzle::bench {

class ProductsInParts {
 public:
  ProductsInParts(int launches, int rounds);
  // REQUIRES: FP32.
  LibraryTime TimeDense(Product& product);
  LibraryTime TimeSparse(Product& product, const cuda::FragmentCsr& weight);  // the better of its widths

 private:
  cuda::Device device_;
  std::unique_ptr<cuda::CudaStream> stream_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_PRODUCTS_IN_PARTS_H_
