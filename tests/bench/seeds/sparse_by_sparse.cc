#include "tests/bench/seeds/sparse_by_sparse.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "tests/bench/cuda/contenders.h"

namespace swizzle::bench {
namespace {

void MustSparse(cusparseStatus_t status, const char* what) { Must(status == CUSPARSE_STATUS_SUCCESS, what); }

cusparseSpMatDescr_t Describe(const CsrMatrix& matrix, DeviceCsr& csr) {
  cusparseSpMatDescr_t described;
  MustSparse(cusparseCreateCsr(&described, matrix.rows, matrix.cols, matrix.nnz(), csr.offsets.data(),
                               csr.columns.data(), csr.values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                               CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F),
             "describe a matrix");
  return described;
}

// Both steps of a product, whose buffers are asked for anew: how large they are only its first step says.
void Multiply(cusparseHandle_t handle, cusparseSpMatDescr_t a, cusparseSpMatDescr_t b, cusparseSpMatDescr_t c) {
  constexpr auto kOp = CUSPARSE_OPERATION_NON_TRANSPOSE;
  constexpr auto kAlgorithm = CUSPARSE_SPGEMM_DEFAULT;
  const float one = 1, zero = 0;
  cusparseSpGEMMDescr_t product;
  MustSparse(cusparseSpGEMM_createDescr(&product), "describe a product");
  size_t estimate_bytes = 0, compute_bytes = 0;
  const auto estimate = [&](void* buffer) {
    MustSparse(cusparseSpGEMM_workEstimation(handle, kOp, kOp, &one, a, b, &zero, c, CUDA_R_32F, kAlgorithm, product,
                                             &estimate_bytes, buffer),
               "estimate a product");
  };
  const auto compute = [&](void* buffer) {
    MustSparse(cusparseSpGEMM_compute(handle, kOp, kOp, &one, a, b, &zero, c, CUDA_R_32F, kAlgorithm, product,
                                      &compute_bytes, buffer),
               "compute a product");
  };
  estimate(nullptr);
  auto first = *cuda::DeviceArray<std::byte>::Allocate(estimate_bytes);
  estimate(first.data());
  compute(nullptr);
  auto second = *cuda::DeviceArray<std::byte>::Allocate(compute_bytes);
  compute(second.data());
  cusparseSpGEMM_destroyDescr(product);
}

}  // namespace

double TimeSparseBySparse(cusparseHandle_t handle, const CsrMatrix& left, const CsrMatrix& right, cudaStream_t queue) {
  constexpr int kRounds = 3;
  DeviceCsr left_csr(left, DType::kFloat32), right_csr(right, DType::kFloat32);
  MustSparse(cusparseSetStream(handle, queue), "use cuSPARSE");
  const cusparseSpMatDescr_t a = Describe(left, left_csr), b = Describe(right, right_csr);
  std::vector<double> times;
  for (int round = -1; round < kRounds; ++round) {  // the first one warms up
    auto offsets = *cuda::DeviceArray<int32_t>::Allocate(left.rows + 1);
    cusparseSpMatDescr_t c;
    MustSparse(cusparseCreateCsr(&c, left.rows, right.cols, 0, offsets.data(), nullptr, nullptr, CUSPARSE_INDEX_32I,
                                 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F),
               "describe the result");
    Must(cudaStreamSynchronize(queue), "wait");
    const auto start = std::chrono::steady_clock::now();
    Multiply(handle, a, b, c);
    Must(cudaStreamSynchronize(queue), "multiply");
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (round >= 0) times.push_back(took.count());
    cusparseDestroySpMat(c);
  }
  cusparseDestroySpMat(a), cusparseDestroySpMat(b);
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

}  // namespace swizzle::bench
