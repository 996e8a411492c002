#include "tests/bench/cuda/dense_product.h"

#include <algorithm>
#include <vector>

#include "kernels/base/half.h"

namespace swizzle::bench {
namespace {

constexpr size_t kFlush = size_t{128} << 20, kWorkspace = size_t{64} << 20;

void Must(cublasStatus_t status, const char* what) { bench::Must(status == CUBLAS_STATUS_SUCCESS, what); }

}  // namespace

BothTimer::BothTimer(int launches, int rounds)
    : timer_(launches, rounds), flush_(*cuda::DeviceArray<std::byte>::Allocate(kFlush)) {
  empty_ = timer_.Time([&] { Flush(); });
}

Times BothTimer::Both(const std::function<void()>& work) {
  const double cold = timer_.Time([&] {
    Flush();
    work();
  });
  return {timer_.Time(work), cold - empty_};
}

void BothTimer::Flush() { bench::Must(cudaMemsetAsync(flush_.data(), 1, kFlush, timer_.queue()), "empty the cache"); }

DenseProduct::DenseProduct(const DenseMatrix& weight, Product& product, bool by_positions)
    : product_(product), by_positions_(by_positions) {
  std::vector<uint16_t> bits(weight.values.size());
  const bool f16 = product.dtype() == DType::kFloat16;
  for (size_t i = 0; i < bits.size(); ++i) {
    bits[i] = f16 ? HalfOfFloat(weight.values[i]) : Bfloat16OfFloat(weight.values[i]);
  }
  weight_ = *cuda::DeviceArray<uint16_t>::Upload(bits);
  const auto type = f16 ? CUDA_R_16F : CUDA_R_16BF;
  const int64_t m = weight.rows, k = weight.cols, n = product.columns(), stride = product.stride();
  Must(cublasLtCreate(&handle_), "start cuBLASLt");
  Must(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product");
  if (by_positions) {  // Y^T as columns of M: W (turned) by X, whose columns are positions
    const cublasOperation_t turned = CUBLAS_OP_T;
    Must(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned), "turn");
    Must(cublasLtMatrixLayoutCreate(&left_, type, k, m, k), "lay out");
    Must(cublasLtMatrixLayoutCreate(&right_, type, k, n, k), "lay out");
    Must(cublasLtMatrixLayoutCreate(&result_, type, m, n, m), "lay out");
  } else {
    Must(cublasLtMatrixLayoutCreate(&left_, type, n, k, stride), "lay out");
    Must(cublasLtMatrixLayoutCreate(&right_, type, k, m, k), "lay out");
    Must(cublasLtMatrixLayoutCreate(&result_, type, n, m, stride), "lay out");
  }
  workspace_ = *cuda::DeviceArray<std::byte>::Allocate(kWorkspace);
}

Times DenseProduct::Best(BothTimer& timer) {
  constexpr int kAsked = 16;
  cublasLtMatmulPreference_t preference;
  Must(cublasLtMatmulPreferenceCreate(&preference), "prefer");
  Must(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                            sizeof kWorkspace),
       "prefer");
  cublasLtMatmulHeuristicResult_t found[kAsked];
  int count = 0;
  Must(cublasLtMatmulAlgoGetHeuristic(handle_, operation_, left_, right_, result_, result_, preference, kAsked, found,
                                      &count),
       "find an algorithm");
  double least = 1e30;
  int best = 0;
  for (int i = 0; i < count; ++i) {
    const double us = timer.Warm([&] { Run(found[i].algo, timer.queue()); });
    if (us < least) least = us, best = i;
  }
  return timer.Both([&] { Run(found[best].algo, timer.queue()); });
}

void DenseProduct::Run(const cublasLtMatmulAlgo_t& algorithm, cudaStream_t queue) {
  const float one = 1, zero = 0;
  const void* const left = by_positions_ ? weight_.data() : product_.x();
  const void* const right = by_positions_ ? product_.x() : weight_.data();
  Must(cublasLtMatmul(handle_, operation_, &one, left, left_, right, right_, &zero, product_.y(), result_, product_.y(),
                      result_, &algorithm, workspace_.data(), kWorkspace, queue),
       "multiply");
}

Times TimeDense(const DenseMatrix& weight, Product& product, BothTimer& timer) {
  const Times rows = DenseProduct(weight, product, false).Best(timer);
  const Times positions = DenseProduct(weight, product, true).Best(timer);
  return {std::min(rows.warm, positions.warm), std::min(rows.cold, positions.cold)};
}

}  // namespace swizzle::bench
