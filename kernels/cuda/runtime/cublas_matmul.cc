#include "kernels/cuda/runtime/cublas_matmul.h"

namespace swizzle::cuda {
namespace {

cudaDataType_t CudaType(DType dtype) {
  if (dtype == DType::kInt8) return CUDA_R_8I;
  if (dtype == DType::kInt32) return CUDA_R_32I;
  if (dtype == DType::kFloat16) return CUDA_R_16F;
  return dtype == DType::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

// A descriptor of cuBLASLt's, destroyed with its owner.
template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
struct Descriptor {
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (handle != nullptr) kDestroy(handle);
  }
  Handle handle = nullptr;
};
using MatmulDesc = Descriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixDesc = Descriptor<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Descriptor<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <typename Value>
void Set(const MatmulDesc& desc, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  cublasLtMatmulDescSetAttribute(desc.handle, attribute, &value, sizeof(value));
}

cublasLtEpilogue_t EpilogueOf(const Product& product) {
  if (product.bias != nullptr) return product.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return product.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

Status Describe(const Product& product, MatmulDesc& desc) {
  const bool whole = product.dtype == DType::kInt8;
  const cublasComputeType_t compute = whole          ? CUBLAS_COMPUTE_32I
                                      : product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                     : CUBLAS_COMPUTE_32F;
  SWIZZLE_RETURN_IF_CUDA_ERROR(cublasLtMatmulDescCreate(&desc.handle, compute, whole ? CUDA_R_32I : CUDA_R_32F),
                               "describe a product");
  Set(desc, CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  Set(desc, CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(product));
  if (product.bias != nullptr) {
    Set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
    Set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CudaType(product.dtype));
  }
  return absl::OkStatus();
}

// `batch` of such.
Status Describe(DType dtype, int64_t batch, int64_t rows, int64_t cols, const MatrixRef& matrix, MatrixDesc& desc) {
  SWIZZLE_RETURN_IF_CUDA_ERROR(cublasLtMatrixLayoutCreate(&desc.handle, CudaType(dtype), static_cast<uint64_t>(rows),
                                                          static_cast<uint64_t>(cols), matrix.ld),
                               "describe a matrix");
  if (batch == 1) return absl::OkStatus();
  const auto count = static_cast<int32_t>(batch);
  cublasLtMatrixLayoutSetAttribute(desc.handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
  cublasLtMatrixLayoutSetAttribute(desc.handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch_stride,
                                   sizeof(matrix.batch_stride));
  return absl::OkStatus();
}

// Bytes that all matrices of a stack are aligned to.
uint32_t AlignmentOf(const MatrixRef& matrix, DType dtype) {
  const uint64_t places =
      reinterpret_cast<uintptr_t>(matrix.data) | static_cast<uint64_t>(matrix.batch_stride) * ElementBytes(dtype) | 256;
  return static_cast<uint32_t>(places & (~places + 1));
}

void SetAlignments(const Product& product, const Preference& preference) {
  const MatrixRef d = {product.d, product.ld_d, product.batch_stride_d};
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const MatrixRef& matrix) {
    const uint32_t bytes = AlignmentOf(matrix, product.dtype);
    cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &bytes, sizeof(bytes));
  };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.a);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.b);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.c == nullptr ? d : MatrixRef{product.c, product.ld_c, 0});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d);
}

}  // namespace

Status QueueProduct(const Product& product, CudaStream& stream) {
  const int64_t m = product.m, n = product.n, k = product.k;
  MatmulDesc desc;
  MatrixDesc a, b, c_lies, d;
  Preference preference;
  SWIZZLE_RETURN_IF_ERROR(Describe(product, desc));
  const bool whole = product.dtype == DType::kInt8;
  const auto describe = [&](int64_t rows, int64_t columns, bool transposed, const MatrixRef& matrix, MatrixDesc& to) {
    return Describe(product.dtype, product.batch, transposed ? columns : rows, transposed ? rows : columns, matrix, to);
  };
  SWIZZLE_RETURN_IF_ERROR(describe(m, k, product.transpose_a, product.a, a));
  SWIZZLE_RETURN_IF_ERROR(describe(k, n, product.transpose_b, product.b, b));
  const DType sums = whole ? DType::kInt32 : product.keeps_sums ? DType::kFloat32 : product.dtype;
  SWIZZLE_RETURN_IF_ERROR(Describe(sums, product.batch, m, n, {product.d, product.ld_d, product.batch_stride_d}, d));
  const int64_t ld_c = product.ld_c == 0 ? product.ld_d : product.ld_c;
  SWIZZLE_RETURN_IF_ERROR(Describe(sums, product.batch, m, n, {product.c, ld_c, product.batch_stride_d}, c_lies));
  SWIZZLE_RETURN_IF_CUDA_ERROR(cublasLtMatmulPreferenceCreate(&preference.handle), "make a preference");
  const std::span<std::byte> workspace = stream.cublas_workspace();
  const size_t most = workspace.size();
  cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                       sizeof(most));
  if (!product.aligned) SetAlignments(product, preference);
  cublasLtMatmulHeuristicResult_t choice = {};
  int found = 0;
  SWIZZLE_RETURN_IF_CUDA_ERROR(
      cublasLtMatmulAlgoGetHeuristic(stream.cublas(), desc.handle, a.handle, b.handle, c_lies.handle, d.handle,
                                     preference.handle, 1, &choice, &found),
      Concat("find an algorithm for a product of ", m, "x", n, "x", k));
  const float one = 1, beta = product.c != nullptr ? 1 : 0;
  const int32_t whole_one = 1, whole_zero = 0;
  const void* const factor = whole ? static_cast<const void*>(&whole_one) : &one;
  const void* const kept = whole ? static_cast<const void*>(&whole_zero) : &beta;
  const void* const c = product.c != nullptr ? product.c : product.d;
  return CudaStatus(cublasLtMatmul(stream.cublas(), desc.handle, factor, product.a.data, a.handle, product.b.data,
                                   b.handle, kept, c, c_lies.handle, product.d, d.handle, &choice.algo,
                                   workspace.data(), workspace.size(), stream.queue()),
                    Concat("queue a product of ", m, "x", n, "x", k));
}

}  // namespace swizzle::cuda
