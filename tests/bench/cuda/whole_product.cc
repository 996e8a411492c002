#include "tests/bench/cuda/whole_product.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::bench {
namespace {

constexpr int kCheckedRows = 16;
constexpr size_t kWorkspace = size_t{64} << 20;

void MustLt(cublasStatus_t status, const char* what) { Must(status == CUBLAS_STATUS_SUCCESS, what); }

template <typename T>
cuda::DeviceArray<T> Upload(const std::vector<T>& values) {
  auto array = cuda::DeviceArray<T>::Upload(values);
  Must(array.ok(), "upload");
  return *std::move(array);
}

int DrawWhole(int bits, std::mt19937& random) { return static_cast<int>(random() % (1u << bits)) - (1 << (bits - 1)); }

}  // namespace

WholeProduct::WholeProduct(const CsrMatrix& pattern, int64_t columns, int weight_bits, int column_bits)
    : pattern_(pattern), columns_(columns), stride_(RoundUp<int64_t>(columns, 32)) {
  w_ = DrawRows(weight_bits);
  auto packed = cuda::BytePanels::Make(w_, cols(), weight_bits);
  Must(packed.ok(), "pack");
  weight_ = *std::move(packed);
  x_.resize(cols() * stride_);
  for (int& value : x_) value = DrawWhole(column_bits, random_);
  std::vector<uint8_t> low(column_bits == 4 ? x_.size() / 2 : x_.size()), high(low.size());
  for (size_t i = 0; i < x_.size(); ++i) {
    if (column_bits == 4) {
      low[i / 2] |= static_cast<uint8_t>((x_[i] & 15) << 4 * (i % 2));
    } else {
      low[i] = static_cast<uint8_t>(x_[i] & 255), high[i] = static_cast<uint8_t>(x_[i] >> 8);
    }
  }
  low_ = Upload(low), high_ = Upload(high);
  y_ = Upload(std::vector<int32_t>(rows() * stride_));
  operands_ = {.weight = weight_.get(),
               .x = {.bits = column_bits,
                     .is_signed = true,
                     .low = low_.data(),
                     .high = column_bits == 16 ? high_.data() : nullptr,
                     .pitch = column_bits == 4 ? stride_ / 2 : stride_},
               .columns = columns_,
               .stride = stride_,
               .y = y_.data()};
}

std::vector<std::vector<cuda::WholeEntry>> WholeProduct::DrawRows(int bits) {
  std::vector<std::vector<cuda::WholeEntry>> drawn(rows());
  for (int64_t row = 0; row < rows(); ++row) {
    const int64_t of = row / kVectorRows;
    for (uint32_t i = pattern_.row_offsets[of]; i < pattern_.row_offsets[of + 1]; ++i) {
      const int value = DrawWhole(bits, random_);
      drawn[row].push_back({static_cast<int32_t>(pattern_.col_indices[i]), value == 0 ? 1 : value});
    }
  }
  return drawn;
}

// In 32 bits, as sums of 16-bit numbers may leave them and come round.
bool WholeProduct::IsRight(const std::function<void()>& work, cudaStream_t queue) {
  Must(cudaMemsetAsync(y_.data(), 0x5A, y_.bytes(), queue), "poison");
  work();
  Must(cudaStreamSynchronize(queue), "run");
  std::vector<int32_t> y(y_.size());
  Must(cudaMemcpy(y.data(), y_.data(), y_.bytes(), cudaMemcpyDeviceToHost), "read");
  for (int64_t i = 0; i < kCheckedRows; ++i) {
    const int64_t row = (rows() * i / kCheckedRows + i) % rows();  // of every place in a panel
    std::vector<uint32_t> sums(columns_);
    for (const cuda::WholeEntry& entry : w_[row]) {
      for (int64_t n = 0; n < columns_; ++n) {
        sums[n] += static_cast<uint32_t>(entry.value) * static_cast<uint32_t>(x_[entry.column * stride_ + n]);
      }
    }
    for (int64_t n = 0; n < columns_; ++n) {
      if (static_cast<uint32_t>(y[row * stride_ + n]) != sums[n]) return false;
    }
  }
  return true;
}

double WholeProduct::TimeDense(Timer& timer) const {
  constexpr int kAsked = 16;
  const int64_t m = rows(), k = RoundUp<int64_t>(cols(), 16), n = columns_;
  std::vector<int8_t> dense(m * k), turned(n * k);
  for (int64_t row = 0; row < m; ++row) {
    for (const cuda::WholeEntry& entry : w_[row]) dense[row * k + entry.column] = static_cast<int8_t>(entry.value);
  }
  for (int64_t col = 0; col < cols(); ++col) {
    for (int64_t i = 0; i < n; ++i) turned[i * k + col] = static_cast<int8_t>(x_[col * stride_ + i]);
  }
  const auto w = Upload(dense), x = Upload(turned);
  auto y = *cuda::DeviceArray<int32_t>::Allocate(m * n);
  auto workspace = *cuda::DeviceArray<uint8_t>::Allocate(kWorkspace);
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t left, right, result;
  cublasLtMatmulPreference_t preference;
  const cublasOperation_t turn = CUBLAS_OP_T;
  MustLt(cublasLtCreate(&handle), "start cuBLASLt");
  MustLt(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32I, CUDA_R_32I), "describe a product");
  MustLt(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &turn, sizeof turn), "turn");
  MustLt(cublasLtMatrixLayoutCreate(&left, CUDA_R_8I, k, m, k), "lay out");
  MustLt(cublasLtMatrixLayoutCreate(&right, CUDA_R_8I, k, n, k), "lay out");
  MustLt(cublasLtMatrixLayoutCreate(&result, CUDA_R_32I, m, n, m), "lay out");
  MustLt(cublasLtMatmulPreferenceCreate(&preference), "prefer");
  MustLt(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                              sizeof kWorkspace),
         "prefer");
  cublasLtMatmulHeuristicResult_t found[kAsked];
  int count = 0;
  MustLt(
      cublasLtMatmulAlgoGetHeuristic(handle, operation, left, right, result, result, preference, kAsked, found, &count),
      "find an algorithm");
  const int32_t one = 1, zero = 0;
  double least = 1e30;
  for (int i = 0; i < count; ++i) {
    const auto work = [&] {
      MustLt(cublasLtMatmul(handle, operation, &one, w.data(), left, x.data(), right, &zero, y.data(), result, y.data(),
                            result, &found[i].algo, workspace.data(), kWorkspace, timer.queue()),
             "multiply");
    };
    least = std::min(least, timer.Time(work));
  }
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtMatrixLayoutDestroy(left), cublasLtMatrixLayoutDestroy(right), cublasLtMatrixLayoutDestroy(result);
  cublasLtMatmulDescDestroy(operation);
  cublasLtDestroy(handle);
  return least;
}

}  // namespace swizzle::bench
