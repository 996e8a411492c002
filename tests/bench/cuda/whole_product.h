// Products of whole numbers on a GPU as benchmarks time them: operands drawn, ours and cuBLASLt's of signed bytes.
// Errors of CUDA end the program. Single-threaded.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_WHOLE_PRODUCT_H_
#define SWIZZLE_TESTS_BENCH_CUDA_WHOLE_PRODUCT_H_

#include <cublasLt.h>

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cuda/int8/spmm_bytes.h"
#include "tests/bench/cuda/contenders.h"

namespace swizzle::bench {

// W of so many bits at the places of a pattern, each entry being a vector of 8 rows, and X.
class WholeProduct {
 public:
  WholeProduct(const CsrMatrix& pattern, int64_t columns, int weight_bits, int column_bits);

  int64_t rows() const { return pattern_.rows * kVectorRows; }
  int64_t cols() const { return pattern_.cols; }
  int64_t columns() const { return columns_; }
  double operations() const { return 2.0 * kVectorRows * static_cast<double>(pattern_.nnz() * columns_); }
  const cuda::ByteOperands& operands() const { return operands_; }
  // Whether the sums of some rows are what they should be after `work`.
  bool IsRight(const std::function<void()>& work, cudaStream_t queue);
  // Microseconds of cuBLASLt's fastest heuristic for the dense product of signed bytes, W by rows and X by positions,
  // which it asks for. REQUIRES: both are of 8 bits.
  double TimeDense(Timer& timer) const;

 private:
  static constexpr int kVectorRows = 8;
  std::vector<std::vector<cuda::WholeEntry>> DrawRows(int bits);

  const CsrMatrix& pattern_;
  const int64_t columns_, stride_;
  std::mt19937 random_{11};
  std::vector<std::vector<cuda::WholeEntry>> w_;
  std::vector<int> x_;
  std::unique_ptr<cuda::BytePanels> weight_;
  cuda::DeviceArray<uint8_t> low_, high_;
  cuda::DeviceArray<int32_t> y_;
  cuda::ByteOperands operands_;
};

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_WHOLE_PRODUCT_H_
