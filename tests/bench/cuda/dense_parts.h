// The dense product of FP32 in three products of FP16 parts (kernels/cuda/conv/conv_dense_parts.h): the bar for sparse
// ones where a plan's precision allows it. As plans run it: in kNhwc, X split each time, the sums ended by a pass of
// its own, cuBLASLt's best of 16 algorithms. Errors of CUDA end the program. Single-threaded.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_DENSE_PARTS_H_
#define SWIZZLE_TESTS_BENCH_CUDA_DENSE_PARTS_H_

#include <memory>

#include "kernels/cuda/runtime/cuda_stream.h"
#include "tests/bench/cuda/contenders.h"

namespace swizzle::bench {

class DenseParts {
 public:
  DenseParts(int launches, int rounds);
  // REQUIRES: FP32.
  LibraryTime Time(Product& product);

 private:
  cuda::Device device_;
  std::unique_ptr<cuda::CudaStream> stream_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_DENSE_PARTS_H_
