#include "tests/bench/seeds/magicube_attention.h"

#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/bench/cuda/dense_softmax.h"
#include "tests/kernels/cuda/int8/rounded_attention.h"

namespace swizzle::bench {
namespace {

constexpr int kVectorRows = 8, kHeadDim = 64, kCheckedPanels = 16;
constexpr float kScale = 1.0f / 8;   // of scores
constexpr double kFewQueries = 3.0;  // whose largest output is less than that of all, which the kernel's test has

template <typename T>
cuda::DeviceArray<T> Allocate(int64_t count) {
  auto array = cuda::DeviceArray<T>::Allocate(count);
  Must(array.ok(), "allocate");
  return *std::move(array);
}
template <typename T>
cuda::DeviceArray<T> Upload(const std::vector<T>& values) {
  auto array = cuda::DeviceArray<T>::Upload(std::span<const T>(values));
  Must(array.ok(), "upload");
  return *std::move(array);
}
template <typename T>
std::vector<T> Download(const T* from, int64_t count) {
  std::vector<T> values(count);
  Must(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), "read");
  return values;
}

int Multiprocessors() {
  int count = 0;
  Must(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), "ask the device");
  return count;
}

std::vector<__half> DrawHalves(int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<__half> values(count);
  for (__half& value : values) value = __float2half_rn(normal(random));
  return values;
}

// Rows of whole numbers, as the kernels take them.
struct WholeRows {
  std::vector<int> values;
  cuda::DeviceArray<uint8_t> low, high;

  WholeRows(int64_t count, int bits, std::mt19937& random) : values(count) {
    for (int& value : values) value = static_cast<int>(random() % (1u << bits)) - (1 << (bits - 1));
    std::vector<uint8_t> lower(bits == 4 ? count / 2 : count), upper(lower.size());
    for (int64_t i = 0; i < count; ++i) {
      if (bits == 4) {
        lower[i / 2] |= static_cast<uint8_t>((values[i] & 15) << 4 * (i % 2));
      } else {
        lower[i] = static_cast<uint8_t>(values[i] & 255), upper[i] = static_cast<uint8_t>(values[i] >> 8);
      }
    }
    low = Upload(lower), high = Upload(upper);
  }
  cuda::WholeHeads heads() const { return {low.data(), high.data()}; }
};

// The pattern with vectors of queries; those beyond its rows have no keys.
AttentionPattern PatternOf(const CsrMatrix& vectors) {
  AttentionPattern pattern;
  pattern.tokens = std::max(vectors.rows * kVectorRows, vectors.cols);
  pattern.row_offsets = {0};
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    if (const int64_t row = query / kVectorRows; row < vectors.rows) {
      pattern.col_indices.insert(pattern.col_indices.end(), vectors.col_indices.begin() + vectors.row_offsets[row],
                                 vectors.col_indices.begin() + vectors.row_offsets[row + 1]);
    }
    pattern.row_offsets.push_back(static_cast<uint32_t>(pattern.col_indices.size()));
  }
  return pattern;
}

// Whether the sums of some panels are right, in 32 bits.
bool AreRight(const cuda::KeyPanels& pattern, const WholeRows& q, const WholeRows& k, int64_t depth,
              const cuda::DeviceArray<int32_t>& sums) {
  constexpr int kStep = cuda::BytePanels::kStep;
  const auto panels = Download(pattern.panels().panels(), pattern.panels().count());
  const auto columns = Download(pattern.panels().columns(), pattern.slots());
  const auto masks = Download(pattern.masks(), pattern.slots());
  const auto actual = Download(sums.data(), pattern.head_values());
  for (int i = 0; i < kCheckedPanels; ++i) {
    const cuda::BytePanel& panel = panels[panels.size() * i / kCheckedPanels];
    for (int64_t slot = 0; slot < int64_t{panel.steps} * kStep; ++slot) {
      const int64_t at = int64_t{panel.step} * kStep + slot, in_step = slot % kStep;
      const int64_t key = columns[at - in_step + in_step % 4 * 8 + in_step / 4];
      for (int row = 0; row < kVectorRows; ++row) {
        if ((masks[at] >> row & 1) == 0) continue;
        uint32_t sum = 0;
        for (int64_t d = 0; d < depth; ++d) {
          sum += static_cast<uint32_t>(q.values[(panel.row + row) * depth + d]) *
                 static_cast<uint32_t>(k.values[key * depth + d]);
        }
        if (static_cast<uint32_t>(actual[at * kVectorRows + row]) != sum) return false;
      }
    }
  }
  return true;
}

AttentionPattern DrawPattern(int64_t tokens, double sparsity) {
  std::mt19937 random(5);
  CsrMatrix vectors;
  vectors.rows = tokens / kVectorRows, vectors.cols = tokens, vectors.row_offsets = {0};
  std::bernoulli_distribution kept(1 - sparsity);
  for (int64_t row = 0; row < vectors.rows; ++row) {
    for (int64_t key = 0; key < tokens; ++key) {
      if (kept(random)) vectors.col_indices.push_back(static_cast<uint32_t>(key));
    }
    vectors.row_offsets.push_back(static_cast<uint32_t>(vectors.col_indices.size()));
  }
  return PatternOf(vectors);
}

}  // namespace

nlohmann::ordered_json SampledProducts::Run(const CsrMatrix& pattern, int64_t depth) {
  nlohmann::ordered_json facts = {{"m", pattern.rows * kVectorRows}, {"n", pattern.cols}, {"k", depth}};
  const AttentionPattern places = PatternOf(pattern);
  {
    CsrMatrix dilated;
    dilated.rows = pattern.rows * kVectorRows, dilated.cols = pattern.cols;
    dilated.row_offsets.assign(places.row_offsets.begin(), places.row_offsets.begin() + dilated.rows + 1);
    dilated.col_indices = places.col_indices, dilated.values.resize(places.col_indices.size());
    facts["cusparse_f16_us"] = TimeCusparse(dilated, depth);
  }
  facts["cublas_f16_us"] = TimeCublas(pattern.rows * kVectorRows, pattern.cols, depth);
  const auto panels = *cuda::KeyPanels::Make(places);
  const cuda::HeadCounts counts = {1, 1, static_cast<int>(depth)};
  const auto sums = Allocate<int32_t>(panels->head_values());
  for (const int bits : {16, 8, 4}) {
    const WholeRows q(places.tokens * depth, bits, random_), k(places.tokens * depth, bits, random_);
    const auto work = [&] {
      cuda::QueueSddmmBytes(*panels, counts, bits, q.heads(), k.heads(), const_cast<int32_t*>(sums.data()),
                            timer_.queue());
    };
    Must(cudaMemset(const_cast<int32_t*>(sums.data()), 0x5A, sums.bytes()), "poison");
    work();
    Must(cudaStreamSynchronize(timer_.queue()), "run");
    if (!AreRight(*panels, q, k, depth, sums)) facts["wrong"] = bits;
    facts[Concat(bits, "-", bits, "_us")] = timer_.Time(work);
  }
  return facts;
}

double SampledProducts::TimeCusparse(const CsrMatrix& dilated, int64_t depth) {
  const DeviceCsr csr(dilated, DType::kFloat16);
  const auto q = Upload(DrawHalves(dilated.rows * depth, random_)),
             k = Upload(DrawHalves(dilated.cols * depth, random_));
  const auto pointer = [](const auto& array) { return const_cast<void*>(static_cast<const void*>(array.data())); };
  const auto good = [](cusparseStatus_t status) { Must(status == CUSPARSE_STATUS_SUCCESS, "run cuSPARSE's SDDMM"); };
  cusparseSpMatDescr_t y;
  cusparseDnMatDescr_t left, right;
  good(cusparseSetStream(cusparse_, timer_.queue()));
  good(cusparseCreateCsr(&y, dilated.rows, dilated.cols, dilated.nnz(), pointer(csr.offsets), pointer(csr.columns),
                         pointer(csr.values), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                         CUDA_R_16F));
  good(cusparseCreateDnMat(&left, dilated.rows, depth, depth, pointer(q), CUDA_R_16F, CUSPARSE_ORDER_ROW));
  good(cusparseCreateDnMat(&right, depth, dilated.cols, depth, pointer(k), CUDA_R_16F, CUSPARSE_ORDER_COL));
  const float one = 1, zero = 0;
  constexpr auto kSame = CUSPARSE_OPERATION_NON_TRANSPOSE;
  size_t bytes = 0;
  good(cusparseSDDMM_bufferSize(cusparse_, kSame, kSame, &one, left, right, &zero, y, CUDA_R_32F,
                                CUSPARSE_SDDMM_ALG_DEFAULT, &bytes));
  auto buffer = Allocate<std::byte>(static_cast<int64_t>(bytes) + 16);
  good(cusparseSDDMM_preprocess(cusparse_, kSame, kSame, &one, left, right, &zero, y, CUDA_R_32F,
                                CUSPARSE_SDDMM_ALG_DEFAULT, buffer.data()));
  const double us = timer_.Time([&] {
    good(cusparseSDDMM(cusparse_, kSame, kSame, &one, left, right, &zero, y, CUDA_R_32F, CUSPARSE_SDDMM_ALG_DEFAULT,
                       buffer.data()));
  });
  cusparseDestroySpMat(y), cusparseDestroyDnMat(left), cusparseDestroyDnMat(right);
  return us;
}

double SampledProducts::TimeCublas(int64_t rows, int64_t cols, int64_t depth) {
  const auto q = Upload(DrawHalves(rows * depth, random_)), k = Upload(DrawHalves(cols * depth, random_));
  auto y = Allocate<__half>(rows * cols);
  const float one = 1, zero = 0;
  const int m = static_cast<int>(cols), n = static_cast<int>(rows), d = static_cast<int>(depth);
  return timer_.Time([&] {
    Must(
        cublasGemmEx(cublas_, CUBLAS_OP_T, CUBLAS_OP_N, m, n, d, &one, k.data(), CUDA_R_16F, d, q.data(), CUDA_R_16F, d,
                     &zero, y.data(), CUDA_R_16F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS,
        "run cuBLAS");
  });
}

// [sequences][tokens][heads][64].
struct AttentionRace::Operands {
  std::vector<__half> values[3];
  cuda::DeviceArray<__half> q, k, v, output;

  explicit Operands(int64_t numbers) {
    std::mt19937 random(6);
    for (auto& of : values) of = DrawHalves(numbers, random);
    q = Upload(values[0]), k = Upload(values[1]), v = Upload(values[2]), output = Allocate<__half>(numbers);
  }

  // Of the first head.
  cuda::RoundedTokens Rounded(const AttentionShape& shape, int bits) const {
    cuda::RoundedTokens tokens;
    for (int of = 0; of < 3; ++of) {
      for (int64_t token = 0; token < shape.tokens; ++token) {
        tokens[of].push_back(
            cuda::RoundHead(bits, {values[of].data() + token * shape.heads * kHeadDim, size_t{kHeadDim}}));
      }
    }
    return tokens;
  }
};

nlohmann::ordered_json AttentionRace::Run(const AttentionShape& shape) {
  auto& [drawn, pattern] = patterns_[{shape.tokens, shape.sparsity}];
  if (pattern == nullptr) {
    drawn = DrawPattern(shape.tokens, shape.sparsity);
    pattern = *cuda::KeyPanels::Make(drawn);
  }
  const cuda::HeadCounts counts = {shape.sequences, shape.heads, kHeadDim};
  Operands operands(shape.sequences * shape.tokens * counts.channels());
  nlohmann::ordered_json facts = {
      {"sequences", shape.sequences}, {"heads", shape.heads}, {"tokens", shape.tokens}, {"sparsity", shape.sparsity}};
  const Expected exact = [&](int64_t query) { return Exact(shape, drawn.Keys(query), query, operands); };
  for (const auto& [bits, most_error] : cuda::kAttentionBounds) {
    auto workspace = Allocate<uint8_t>(
        static_cast<int64_t>(cuda::ByteAttentionWorkspaceBytes(shape.tokens, pattern->slots(), counts, bits)));
    const cuda::ByteAttention attention = {counts,
                                           operands.q.data(),
                                           operands.k.data(),
                                           operands.v.data(),
                                           operands.output.data(),
                                           kScale,
                                           workspace.data(),
                                           bits};
    const auto work = [&] { cuda::QueueByteAttention(*pattern, attention, timer_.queue()); };
    Must(cudaMemset(operands.output.data(), 0xFF, operands.output.bytes()), "poison");
    work();
    const cuda::RoundedTokens rounded = operands.Rounded(shape, bits.operands);
    const double from_rounded = Error(shape, operands, [&](int64_t query) {
      return cuda::AttendRounded(rounded, query, drawn.Keys(query), bits.shares, kScale);
    });
    const bool usual = bits.shares == 8 && bits.operands == 8;
    const std::string name = usual ? "" : Concat(bits.shares, "-", bits.operands, "_");
    facts[name + "error"] = Error(shape, operands, exact);
    facts[name + "rounding_error"] = from_rounded;
    facts[usual ? "ours_us" : name + "us"] = timer_.Time(work);
    if (!(from_rounded <= kFewQueries * most_error)) facts["wrong"] = Concat(bits.shares, "-", bits.operands);
  }
  facts["parts_us"] = TimeParts(shape, operands);
  facts["fused_us"] = TimeFused(shape, operands);
  facts["layers_us"] = TimeLayers(shape, operands);
  return facts;
}

// A query's output in the first head, with nothing rounded.
std::vector<double> AttentionRace::Exact(const AttentionShape& shape, std::span<const uint32_t> keys, int64_t query,
                                         const Operands& operands) {
  const int64_t channels = int64_t{shape.heads} * kHeadDim;
  const auto at = [&](int operand, int64_t token, int d) {
    return double{__half2float(operands.values[operand][token * channels + d])};
  };
  double total = 0;
  std::vector<double> output(kHeadDim);
  for (const uint32_t key : keys) {
    double score = 0;
    for (int d = 0; d < kHeadDim; ++d) score += at(0, query, d) * at(1, key, d);
    const double share = std::exp(score * kScale);
    total += share;
    for (int d = 0; d < kHeadDim; ++d) output[d] += share * at(2, key, d);
  }
  for (double& value : output) value /= total;
  return output;
}

// Over the largest that is expected, on some queries of the first head.
double AttentionRace::Error(const AttentionShape& shape, const Operands& operands, const Expected& expected) {
  Must(cudaStreamSynchronize(timer_.queue()), "run");
  const auto actual = Download(operands.output.data(), static_cast<int64_t>(operands.output.size()));
  const int64_t channels = int64_t{shape.heads} * kHeadDim;
  double largest = 0, error = 0;
  for (int64_t query = 0; query < shape.tokens; query += shape.tokens / 16 + 1) {
    const std::vector<double> wanted = expected(query);
    for (int d = 0; d < kHeadDim; ++d) {
      largest = std::max(largest, std::abs(wanted[d]));
      const double difference = std::abs(wanted[d] - __half2float(actual[query * channels + d]));
      error = difference <= error ? error : difference;
    }
  }
  return error / largest;
}

// Of heads that lie one after the other, which suits cuBLAS.
double AttentionRace::TimeParts(const AttentionShape& shape, Operands& operands) {
  const int heads = shape.sequences * shape.heads, tokens = static_cast<int>(shape.tokens);
  const int64_t of_head = shape.tokens * kHeadDim, of_scores = shape.tokens * shape.tokens;
  auto scores = Allocate<__half>(heads * of_scores);
  const float one = 1, zero = 0;
  return timer_.Time([&] {
    bool fine =
        cublasGemmStridedBatchedEx(cublas_, CUBLAS_OP_T, CUBLAS_OP_N, tokens, tokens, kHeadDim, &one, operands.k.data(),
                                   CUDA_R_16F, kHeadDim, of_head, operands.q.data(), CUDA_R_16F, kHeadDim, of_head,
                                   &zero, scores.data(), CUDA_R_16F, tokens, of_scores, heads, CUBLAS_COMPUTE_32F,
                                   CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
    QueueDenseSoftmax(scores.data(), heads * shape.tokens, tokens, kScale, timer_.queue());
    fine &= cublasGemmStridedBatchedEx(cublas_, CUBLAS_OP_N, CUBLAS_OP_N, kHeadDim, tokens, tokens, &one,
                                       operands.v.data(), CUDA_R_16F, kHeadDim, of_head, scores.data(), CUDA_R_16F,
                                       tokens, of_scores, &zero, operands.output.data(), CUDA_R_16F, kHeadDim, of_head,
                                       heads, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
    Must(fine, "run cuBLAS");
  });
}

double AttentionRace::TimeFused(const AttentionShape& shape, Operands& operands) {
  auto found = full_.find(shape.tokens);
  if (found == full_.end()) {
    auto blocks = cuda::AttentionBlocks::Make(AttentionPattern::FromBand(shape.tokens, shape.tokens, false));
    Must(blocks.ok(), "cut a full pattern into blocks");
    found = full_.emplace(shape.tokens, *std::move(blocks)).first;
  }
  const int64_t channels = int64_t{shape.heads} * kHeadDim;
  const cuda::SparseAttentionArgs args = {.dtype = DType::kFloat16,
                                          .queries = {operands.q.data(), channels, kHeadDim},
                                          .keys = {operands.k.data(), channels, kHeadDim},
                                          .values = {operands.v.data(), channels, kHeadDim},
                                          .output = {operands.output.data(), channels, kHeadDim},
                                          .heads = shape.heads,
                                          .head_dim = kHeadDim,
                                          .scale = kScale};
  const auto work = [&] {
    cuda::QueueBlockAttention(args, found->second, shape.sequences, Multiprocessors(), timer_.queue());
  };
  Must(cudaMemset(operands.output.data(), 0xFF, operands.output.bytes()), "poison");
  work();
  std::vector<uint32_t> keys(shape.tokens);
  std::iota(keys.begin(), keys.end(), 0u);
  const double error = Error(shape, operands, [&](int64_t query) { return Exact(shape, keys, query, operands); });
  Must(error < 0.01, "trust fused dense attention: it is wrong");
  return timer_.Time(work);
}

// Queries, keys and values, the output, and a feed-forward network four times as wide, of whatever numbers are there.
double AttentionRace::TimeLayers(const AttentionShape& shape, const Operands& operands) {
  const int hidden = shape.heads * kHeadDim, tokens = static_cast<int>(shape.sequences * shape.tokens);
  auto x = Allocate<__half>(int64_t{4} * hidden * tokens), y = Allocate<__half>(int64_t{4} * hidden * tokens);
  for (int64_t i = 0; i < 4; ++i) {
    Must(cudaMemcpy(x.data() + i * hidden * tokens, operands.q.data(), operands.q.bytes(), cudaMemcpyDeviceToDevice),
         "copy");
  }
  const float one = 1, zero = 0;
  return timer_.Time([&] {
    for (const auto& [out, in] : {std::pair{3, 1}, {1, 1}, {4, 1}, {1, 4}}) {
      Must(cublasGemmEx(cublas_, CUBLAS_OP_T, CUBLAS_OP_N, out * hidden, tokens, in * hidden, &one, operands.k.data(),
                        CUDA_R_16F, in * hidden, x.data(), CUDA_R_16F, in * hidden, &zero, y.data(), CUDA_R_16F,
                        out * hidden, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS,
           "run cuBLAS");
    }
  });
}

}  // namespace swizzle::bench
