#include "tests/bench/cuda/contenders.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "kernels/base/half.h"
#include "kernels/base/layout.h"

namespace swizzle::bench {
namespace {

constexpr int kCheckedRows = 24;

uint16_t HalfBits(float value, DType dtype) {
  if (dtype == DType::kFloat16) return std::bit_cast<uint16_t>(__half_raw(__float2half_rn(value)));
  return std::bit_cast<uint16_t>(__nv_bfloat16_raw(__float2bfloat16_rn(value)));
}

float FloatOf(uint16_t bits, DType dtype) {
  return dtype == DType::kFloat16 ? FloatOfHalf(bits) : FloatOfBfloat16(bits);
}

float Rounded(float value, DType dtype) {
  return dtype == DType::kFloat32 ? value : FloatOf(HalfBits(value, dtype), dtype);
}

std::vector<std::byte> Elements(const std::vector<float>& values, DType dtype) {
  const size_t size = ElementBytes(dtype);
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = dtype == DType::kFloat32 ? uint16_t{0} : HalfBits(values[i], dtype);
    std::memcpy(bytes.data() + i * size, dtype == DType::kFloat32 ? static_cast<const void*>(&values[i]) : &half, size);
  }
  return bytes;
}

template <typename T>
cuda::DeviceArray<T> Upload(const std::vector<T>& values) {
  auto array = cuda::DeviceArray<T>::Upload(std::span<const T>(values));
  Must(array.ok(), "upload");
  return *std::move(array);
}

cudaDataType CudaType(DType dtype) {
  return dtype == DType::kFloat32 ? CUDA_R_32F : dtype == DType::kFloat16 ? CUDA_R_16F : CUDA_R_16BF;
}

}  // namespace

void Must(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "could not %s\n", what.c_str());
  std::exit(1);
}

void Must(cudaError_t error, const std::string& what) {
  Must(error == cudaSuccess, what + ": " + cudaGetErrorString(error));
}

Timer::Timer(int launches, int rounds) : Timer(launches, rounds, nullptr) {
  Must(cudaStreamCreateWithFlags(&queue_, cudaStreamNonBlocking), "make a stream");
}

Timer::Timer(int launches, int rounds, cudaStream_t queue) : launches_(launches), rounds_(rounds), queue_(queue) {
  Must(cudaEventCreate(&start_), "make an event");
  Must(cudaEventCreate(&stop_), "make an event");
}

double Timer::Time(const std::function<void()>& work) {
  Must(cudaStreamBeginCapture(queue_, cudaStreamCaptureModeThreadLocal), "record");
  for (int i = 0; i < launches_; ++i) work();
  cudaGraph_t graph = nullptr;
  Must(cudaStreamEndCapture(queue_, &graph), "record");
  cudaGraphExec_t executable = nullptr;
  Must(cudaGraphInstantiate(&executable, graph, 0), "make a graph");
  std::vector<double> times;
  for (int round = -1; round < rounds_; ++round) {  // the first one warms up
    Must(cudaEventRecord(start_, queue_), "record an event");
    Must(cudaGraphLaunch(executable, queue_), "launch");
    Must(cudaEventRecord(stop_, queue_), "record an event");
    Must(cudaEventSynchronize(stop_), "run a graph");
    float milliseconds = 0;
    Must(cudaEventElapsedTime(&milliseconds, start_, stop_), "read an event");
    if (round >= 0) times.push_back(milliseconds * 1e3 / launches_);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

Product::Product(const CsrMatrix& matrix, int64_t columns, DType dtype, double x_sparsity)
    : matrix_(matrix), columns_(columns), stride_(RowStride(columns)), dtype_(dtype), host_x_(matrix.cols * stride_) {
  std::mt19937 random(2);
  for (float& value : host_x_) value = Rounded(static_cast<float>(random() >> 8) / (1 << 23) - 1, dtype);
  if (x_sparsity > 0) {
    std::bernoulli_distribution is_zero(x_sparsity);
    for (float& value : host_x_) value = is_zero(random) ? 0 : value;
  }
  x_ = Upload(Elements(host_x_, dtype));
  auto y = cuda::DeviceArray<std::byte>::Allocate(matrix.rows * stride_ * ElementBytes(dtype));
  Must(y.ok(), "allocate");
  y_ = *std::move(y);
}

double Product::Error(const std::function<void()>& work, cudaStream_t queue) {
  Must(cudaMemsetAsync(y_.data(), 0xFF, y_.bytes(), queue), "poison");
  work();
  Must(cudaStreamSynchronize(queue), "run");
  std::vector<std::byte> bytes(y_.bytes());
  Must(cudaMemcpy(bytes.data(), y_.data(), bytes.size(), cudaMemcpyDeviceToHost), "read");
  double largest = 1e-30, error = 0;
  for (int64_t i = 0; i < kCheckedRows; ++i) {
    const int64_t row = matrix_.rows * i / kCheckedRows;
    std::vector<double> sums(columns_);
    for (uint32_t e = matrix_.row_offsets[row]; e < matrix_.row_offsets[row + 1]; ++e) {
      const double weight = Rounded(matrix_.values[e], dtype_);
      const float* x = host_x_.data() + matrix_.col_indices[e] * stride_;
      for (int64_t n = 0; n < columns_; ++n) sums[n] += weight * x[n];
    }
    for (int64_t n = 0; n < columns_; ++n) {
      float y = 0;
      uint16_t half = 0;
      const size_t at = static_cast<size_t>(row * stride_ + n);
      if (dtype_ == DType::kFloat32) {
        std::memcpy(&y, bytes.data() + 4 * at, 4);
      } else {
        std::memcpy(&half, bytes.data() + 2 * at, 2);
        y = FloatOf(half, dtype_);
      }
      largest = std::max(largest, std::abs(sums[n]));
      const double difference = std::abs(y - sums[n]);
      error = difference <= error ? error : difference;  // NaN wins
    }
  }
  return std::isnan(error) ? 1e30 : error / largest;
}

DeviceCsr::DeviceCsr(const CsrMatrix& matrix, DType dtype) {
  offsets = Upload(std::vector<int32_t>(matrix.row_offsets.begin(), matrix.row_offsets.end()));
  std::vector<int32_t> cols(matrix.col_indices.begin(), matrix.col_indices.end());
  std::vector<float> vals = matrix.values;
  cols.resize(cols.size() + 4), vals.resize(vals.size() + 4);
  columns = Upload(cols);
  values = Upload(Elements(vals, dtype));
  const std::vector<uint32_t> swizzled = RowSwizzle(matrix);
  order = Upload(std::vector<int32_t>(swizzled.begin(), swizzled.end()));
  std::vector<int32_t> plain(matrix.rows);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<int32_t>(i);
  as_is = Upload(plain);
}

SputnikMatrix DeviceCsr::Sputnik(int64_t rows, bool swizzled) const {
  return {static_cast<int32_t>(rows), swizzled ? order.data() : as_is.data(), offsets.data(), columns.data(),
          reinterpret_cast<const float*>(values.data())};
}

LibraryTime TimeCusparse(cusparseHandle_t handle, Product& product, const DeviceCsr& csr, Timer& timer) {
  const CsrMatrix& m = product.matrix();
  const cudaDataType type = CudaType(product.dtype());
  cusparseSpMatDescr_t a;
  cusparseDnMatDescr_t x, y;
  const auto pointer = [](const auto* p) { return const_cast<void*>(static_cast<const void*>(p)); };
  Must(cusparseSetStream(handle, timer.queue()) == CUSPARSE_STATUS_SUCCESS, "use cuSPARSE");
  cusparseCreateCsr(&a, m.rows, m.cols, m.nnz(), pointer(csr.offsets.data()), pointer(csr.columns.data()),
                    pointer(csr.values.data()), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type);
  cusparseCreateDnMat(&x, m.cols, product.padded(), product.stride(), pointer(product.x()), type, CUSPARSE_ORDER_ROW);
  cusparseCreateDnMat(&y, m.rows, product.padded(), product.stride(), product.y(), type, CUSPARSE_ORDER_ROW);
  const float one = 1, zero = 0;
  LibraryTime best{1e30, 0, "none"};
  const auto op = CUSPARSE_OPERATION_NON_TRANSPOSE;
  constexpr cusparseSpMMAlg_t kAlgorithms[] = {CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3};
  for (int i = 0; i < 3; ++i) {
    const auto alg = kAlgorithms[i];
    size_t bytes = 0;
    if (cusparseSpMM_bufferSize(handle, op, op, &one, a, x, &zero, y, CUDA_R_32F, alg, &bytes) !=
        CUSPARSE_STATUS_SUCCESS)
      continue;
    auto buffer = cuda::DeviceArray<std::byte>::Allocate(bytes + 1);
    Must(buffer.ok(), "allocate for cuSPARSE");
    if (cusparseSpMM_preprocess(handle, op, op, &one, a, x, &zero, y, CUDA_R_32F, alg, buffer->data()) !=
        CUSPARSE_STATUS_SUCCESS)
      continue;
    bool fine = true;
    const auto work = [&] {
      fine &= cusparseSpMM(handle, op, op, &one, a, x, &zero, y, CUDA_R_32F, alg, buffer->data()) ==
              CUSPARSE_STATUS_SUCCESS;
    };
    const double error = product.Error(work, timer.queue());
    if (!fine) continue;
    const double us = timer.Time(work);
    best.error = std::max(best.error, error);
    if (us < best.us) best.us = us, best.what = Concat("alg", i + 1);
  }
  cusparseDestroySpMat(a), cusparseDestroyDnMat(x), cusparseDestroyDnMat(y);
  return best;
}

// Row-major Y = W X is column-major Y^T = X^T W^T.
LibraryTime TimeCublas(cublasHandle_t handle, Product& product, Timer& timer) {
  const DenseMatrix dense = product.matrix().ToDense();
  const auto w = Upload(Elements(dense.values, product.dtype()));
  const cudaDataType type = CudaType(product.dtype());
  const float one = 1, zero = 0;
  const int n = static_cast<int>(product.padded()), stride = static_cast<int>(product.stride());
  Must(cublasSetStream(handle, timer.queue()) == CUBLAS_STATUS_SUCCESS, "use cuBLAS");
  bool fine = true;
  const auto work = [&] {
    fine &=
        cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, static_cast<int>(dense.rows), static_cast<int>(dense.cols),
                     &one, product.x(), type, stride, w.data(), type, static_cast<int>(dense.cols), &zero, product.y(),
                     type, stride, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
  };
  LibraryTime result;
  result.error = product.Error(work, timer.queue());
  Must(fine, "run cuBLAS");
  result.us = timer.Time(work);
  return result;
}

}  // namespace swizzle::bench
