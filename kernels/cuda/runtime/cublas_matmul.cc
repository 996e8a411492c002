#include "kernels/cuda/runtime/cublas_matmul.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/instant.h"
#include "kernels/base/real_types.h"

namespace swizzle::cuda {
namespace {

// How many of its algorithms cuBLASLt is asked for. A choice is a place in a list of so many.
constexpr int kMostAlgorithms = 12;
// Rounds of timing them: the first of all, the others of those within this of the least, and of the first.
constexpr int kRounds = 4;
constexpr double kNear = 1.1;
// What another has to take of the first one's time to be chosen.
constexpr double kClearlyFaster = 0.97;
// After which the other rounds are left out, and in the first round the other algorithms.
constexpr absl::Duration kMostTime = absl::Milliseconds(20);

cudaDataType_t CudaType(DType dtype) {
  if (dtype == DType::kInt8) return CUDA_R_8I;
  if (dtype == DType::kInt32) return CUDA_R_32I;
  return VisitReal(dtype, [&]<DType kType>() {
    if constexpr (kType == DType::kFloat16) return CUDA_R_16F;
    if constexpr (kType == DType::kBFloat16) return CUDA_R_16BF;
    if constexpr (kType == DType::kFloat32) return CUDA_R_32F;
  });
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

// A product as cuBLASLt has it described, on a stream.
class DescribedProduct {
 public:
  DescribedProduct(const Product& product, CudaStream& stream) : product_(product), stream_(stream) {}

  Status Describe();
  // Of all that its list of algorithms depends on.
  std::string Text() const;
  // At most so many, the best guess first; at least one.
  StatusOr<std::vector<cublasLtMatmulAlgo_t>> Algorithms(int most) const;
  Status Queue(const cublasLtMatmulAlgo_t& algorithm) const;
  // Times them with these operands. The first one where nothing could be timed.
  AlgorithmChoice FindFastest() const;

 private:
  int64_t ld_c() const { return product_.ld_c == 0 ? product_.ld_d : product_.ld_c; }
  std::string Size() const { return Concat(product_.m, "x", product_.n, "x", product_.k); }
  // What a plan's earlier steps leave in the second cache.
  std::vector<std::span<const std::byte>> Recent() const;

  const Product& product_;
  CudaStream& stream_;
  MatmulDesc desc_;
  MatrixDesc a_, b_, c_, d_;
  Preference preference_;
};

Status DescribedProduct::Describe() {
  const int64_t m = product_.m, n = product_.n, k = product_.k;
  SWIZZLE_RETURN_IF_ERROR(cuda::Describe(product_, desc_));
  const auto describe = [&](int64_t rows, int64_t columns, bool transposed, const MatrixRef& matrix, MatrixDesc& to) {
    return cuda::Describe(product_.dtype, product_.batch, transposed ? columns : rows, transposed ? rows : columns,
                          matrix, to);
  };
  SWIZZLE_RETURN_IF_ERROR(describe(m, k, product_.transpose_a, product_.a, a_));
  SWIZZLE_RETURN_IF_ERROR(describe(k, n, product_.transpose_b, product_.b, b_));
  const bool whole = product_.dtype == DType::kInt8;
  const DType sums = whole ? DType::kInt32 : product_.keeps_sums ? DType::kFloat32 : product_.dtype;
  const int64_t stride = product_.batch_stride_d;
  SWIZZLE_RETURN_IF_ERROR(cuda::Describe(sums, product_.batch, m, n, {product_.d, product_.ld_d, stride}, d_));
  SWIZZLE_RETURN_IF_ERROR(cuda::Describe(sums, product_.batch, m, n, {product_.c, ld_c(), stride}, c_));
  SWIZZLE_RETURN_IF_CUDA_ERROR(cublasLtMatmulPreferenceCreate(&preference_.handle), "make a preference");
  const size_t most = stream_.cublas_workspace().size();
  cublasLtMatmulPreferenceSetAttribute(preference_.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                       sizeof(most));
  if (!product_.aligned) SetAlignments(product_, preference_);
  return absl::OkStatus();
}

std::string DescribedProduct::Text() const {
  const Product& p = product_;
  std::string text =
      Concat("cublaslt ", cublasLtGetVersion(), " of ", stream_.cublas_workspace().size(), ": ", DTypeName(p.dtype),
             p.tf32 ? " tf32" : "", p.keeps_sums ? " sums" : "", " ", Size(), p.transpose_a ? " t" : " n",
             p.transpose_b ? "t" : "n", " ld ", p.a.ld, " ", p.b.ld, " ", ld_c(), " ", p.ld_d,
             p.c != nullptr ? " adds" : "", p.bias != nullptr ? " bias" : "", p.relu ? " relu" : "");
  if (p.batch > 1) {
    text += Concat(" batch ", p.batch, " by ", p.a.batch_stride, " ", p.b.batch_stride, " ", p.batch_stride_d);
  }
  if (!p.aligned) {
    const MatrixRef d = {p.d, p.ld_d, p.batch_stride_d};
    text += Concat(" aligned to ", AlignmentOf(p.a, p.dtype), " ", AlignmentOf(p.b, p.dtype), " ",
                   p.c == nullptr ? AlignmentOf(d, p.dtype) : AlignmentOf({p.c, 0, 0}, p.dtype), " ",
                   AlignmentOf(d, p.dtype));
  }
  return text;
}

StatusOr<std::vector<cublasLtMatmulAlgo_t>> DescribedProduct::Algorithms(int most) const {
  std::array<cublasLtMatmulHeuristicResult_t, kMostAlgorithms> found = {};
  int count = 0;
  SWIZZLE_RETURN_IF_CUDA_ERROR(
      cublasLtMatmulAlgoGetHeuristic(stream_.cublas(), desc_.handle, a_.handle, b_.handle, c_.handle, d_.handle,
                                     preference_.handle, most, found.data(), &count),
      Concat("find an algorithm for a product of ", Size()));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < std::max(count, 1); ++i) algorithms.push_back(found[i].algo);
  return algorithms;
}

Status DescribedProduct::Queue(const cublasLtMatmulAlgo_t& algorithm) const {
  const bool whole = product_.dtype == DType::kInt8;
  const float one = 1, beta = product_.c != nullptr ? 1 : 0;
  const int32_t whole_one = 1, whole_zero = 0;
  const void* const factor = whole ? static_cast<const void*>(&whole_one) : &one;
  const void* const kept = whole ? static_cast<const void*>(&whole_zero) : &beta;
  const void* const c = product_.c != nullptr ? product_.c : product_.d;
  const std::span<std::byte> workspace = stream_.cublas_workspace();
  return CudaStatus(cublasLtMatmul(stream_.cublas(), desc_.handle, factor, product_.a.data, a_.handle, product_.b.data,
                                   b_.handle, kept, c, c_.handle, product_.d, d_.handle, &algorithm, workspace.data(),
                                   workspace.size(), stream_.queue()),
                    Concat("queue a product of ", Size()));
}

std::vector<std::span<const std::byte>> DescribedProduct::Recent() const {
  const Product& p = product_;
  std::vector<std::span<const std::byte>> recent;
  const auto add = [&](const MatrixRef& matrix, int64_t rows, int64_t columns, bool transposed) {
    if (matrix.data == nullptr || matrix.is_weight) return;
    if (transposed) std::swap(rows, columns);
    const int64_t elements = matrix.batch_stride * (p.batch - 1) + matrix.ld * (columns - 1) + rows;
    recent.emplace_back(static_cast<const std::byte*>(matrix.data), elements * ElementBytes(p.dtype));
  };
  add(p.a, p.m, p.k, p.transpose_a);
  add(p.b, p.k, p.n, p.transpose_b);
  add({p.c, ld_c()}, p.m, p.n, false);
  return recent;
}

AlgorithmChoice DescribedProduct::FindFastest() const {
  const auto algorithms = Algorithms(kMostAlgorithms);
  if (!algorithms.ok() || algorithms->size() == 1) return {};
  const auto recent = Recent();
  const Instant begin = MonotonicNow();
  std::vector<absl::Duration> least(algorithms->size(), absl::InfiniteDuration());
  for (int round = 0; round < kRounds; ++round) {
    const absl::Duration near = *std::ranges::min_element(least) * kNear;
    for (size_t i = 0; i < algorithms->size(); ++i) {
      if (i > 0 && (least[i] > near || MonotonicNow() - begin > kMostTime)) continue;
      const auto work = [&] { stream_.Report(Queue((*algorithms)[i])); };
      if (round == 0) work();  // the first run of a kernel loads it
      const auto time = stream_.TimeAsItIs(work, recent);
      if (time.ok()) least[i] = std::min(least[i], *time);
    }
  }
  const auto fastest = std::ranges::min_element(least);
  const bool clearly = *fastest < least[0] * kClearlyFaster;
  const auto chosen = static_cast<int>(clearly ? fastest - least.begin() : 0);
  if (least[chosen] == absl::InfiniteDuration()) return {};
  return {chosen, absl::ToDoubleMicroseconds(least[chosen])};
}

}  // namespace

Status QueueProduct(const Product& product, CudaStream& stream) {
  DescribedProduct described(product, stream);
  SWIZZLE_RETURN_IF_ERROR(described.Describe());
  const std::string text = described.Text();
  if (const auto known = stream.algorithms().find(text); known != stream.algorithms().end()) {
    return described.Queue(known->second);
  }
  std::optional<AlgorithmChoice> choice = stream.choices().Find(text);
  if (!choice && stream.MustChoose()) choice = stream.choices().Add(text, described.FindFastest());
  const int place = choice ? choice->algorithm : 0;
  SWIZZLE_ASSIGN_OR_RETURN(const auto algorithms, described.Algorithms(place == 0 ? 1 : kMostAlgorithms));
  const auto& algorithm = algorithms[place < std::ssize(algorithms) ? place : 0];
  if (choice) stream.algorithms()[text] = algorithm;
  return described.Queue(algorithm);
}

}  // namespace swizzle::cuda
