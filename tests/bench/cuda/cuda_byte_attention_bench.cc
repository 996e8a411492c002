// Sparse attention in whole numbers, whole and its SDDMM (Magicube's workload): patterns drawn in vectors of 8 queries,
// 90 and 95 % sparse, 4,096 and 8,192 tokens, heads of 64, against dense attention in FP16 in three parts: cuBLAS'
// batched products and a softmax between them. dense_attention.py beside this times dense fused attention.
//
//   cuda_byte_attention_bench [--rounds=9] [-o results.json]
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <random>

#include "kernels/cuda/int8/attention_bytes.h"
#include "tests/bench/cuda/contenders.h"
#include "tests/bench/cuda/dense_softmax.h"
#include "tests/bench/cuda/kept_run.h"

namespace swizzle::bench {
namespace {

struct Options {
  KeptRun run = {.rounds = 9, .launches = 0};
};

struct Shape {
  int sequences, heads;
  int64_t tokens;
  double sparsity;
};
constexpr int kHeadDim = 64;

struct Line {
  Shape shape = {};
  double dense = 0, ours = 0, sddmm[3] = {}, error = 0;
};

AttentionPattern DrawPattern(int64_t tokens, double sparsity, std::mt19937& random) {
  AttentionPattern pattern;
  pattern.tokens = tokens;
  pattern.row_offsets = {0};
  std::bernoulli_distribution kept(1 - sparsity);
  std::vector<uint32_t> keys;
  for (int64_t query = 0; query < tokens; ++query) {
    if (query % 8 == 0) {
      keys.clear();
      for (int64_t key = 0; key < tokens; ++key) {
        if (kept(random)) keys.push_back(static_cast<uint32_t>(key));
      }
    }
    pattern.col_indices.insert(pattern.col_indices.end(), keys.begin(), keys.end());
    pattern.row_offsets.push_back(static_cast<uint32_t>(pattern.col_indices.size()));
  }
  return pattern;
}

class Bench {
 public:
  explicit Bench(const Options& options) : timer_(1, options.run.rounds) {
    Must(cublasCreate(&cublas_) == CUBLAS_STATUS_SUCCESS, "start cuBLAS");
    Must(cublasSetStream(cublas_, timer_.queue()) == CUBLAS_STATUS_SUCCESS, "use cuBLAS");
    Must(cudaMalloc(&workspace_, kWorkspace), "allocate");
    cublasSetWorkspace(cublas_, workspace_, kWorkspace);
  }

  Line Run(const Shape& shape) {
    std::mt19937 random(5);
    const AttentionPattern drawn = DrawPattern(shape.tokens, shape.sparsity, random);
    const auto pattern = *cuda::KeyPanels::Make(drawn);
    const cuda::HeadCounts counts = {shape.sequences, shape.heads, kHeadDim};
    const int64_t numbers = shape.sequences * shape.tokens * counts.channels();
    std::vector<__half> values[3];
    std::vector<cuda::DeviceArray<__half>> memory;
    std::normal_distribution<float> normal;
    for (auto& of : values) {
      of.resize(numbers);
      for (__half& value : of) value = __float2half_rn(normal(random));
      memory.push_back(*cuda::DeviceArray<__half>::Upload(of));
    }
    memory.push_back(*cuda::DeviceArray<__half>::Allocate(numbers));
    auto workspace = *cuda::DeviceArray<uint8_t>::Allocate(
        cuda::ByteAttentionWorkspaceBytes(shape.tokens, pattern->slots(), counts));
    const cuda::ByteAttention attention = {counts,           memory[0].data(), memory[1].data(), memory[2].data(),
                                           memory[3].data(), 1.0f / 8,         workspace.data()};
    Line line{.shape = shape};
    const auto work = [&] { cuda::QueueByteAttention(*pattern, attention, timer_.queue()); };
    work();
    line.error = Error(shape, drawn, values, memory[3]);
    line.ours = timer_.Time(work);
    const int64_t sums = int64_t{shape.sequences} * shape.heads * pattern->head_values();
    auto scores = *cuda::DeviceArray<int32_t>::Allocate(sums);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(memory[0].data());
    const auto* const others = reinterpret_cast<const uint8_t*>(memory[1].data());
    const cuda::WholeHeads q = {bytes, bytes + numbers}, k = {others, others + numbers};
    for (int i = 0; i < 3; ++i) {
      const int bits = 4 << i;
      line.sddmm[i] =
          timer_.Time([&] { cuda::QueueSddmmBytes(*pattern, counts, bits, q, k, scores.data(), timer_.queue()); });
    }
    line.dense = TimeDense(shape, memory);
    return line;
  }

 private:
  static constexpr size_t kWorkspace = size_t{64} << 20;

  // Over the largest, on some queries of the first head.
  double Error(const Shape& shape, const AttentionPattern& pattern, const std::vector<__half> (&values)[3],
               const cuda::DeviceArray<__half>& output) {
    Must(cudaStreamSynchronize(timer_.queue()), "run");
    std::vector<__half> actual(output.size());
    Must(cudaMemcpy(actual.data(), output.data(), output.bytes(), cudaMemcpyDeviceToHost), "read");
    const int64_t channels = int64_t{shape.heads} * kHeadDim;
    double largest = 0, error = 0;
    for (int64_t query = 0; query < shape.tokens; query += shape.tokens / 16 + 1) {
      double total = 0, expected[kHeadDim] = {};
      for (const uint32_t key : pattern.Keys(query)) {
        double score = 0;
        for (int d = 0; d < kHeadDim; ++d) {
          score += double{__half2float(values[0][query * channels + d])} * __half2float(values[1][key * channels + d]);
        }
        const double share = std::exp(score / 8);
        total += share;
        for (int d = 0; d < kHeadDim; ++d) expected[d] += share * __half2float(values[2][key * channels + d]);
      }
      for (int d = 0; d < kHeadDim; ++d) {
        largest = std::max(largest, std::abs(expected[d] / total));
        const double difference = std::abs(expected[d] / total - __half2float(actual[query * channels + d]));
        error = difference <= error ? error : difference;
      }
    }
    return error / largest;
  }

  // Of heads that lie one after the other, which suits cuBLAS.
  double TimeDense(const Shape& shape, std::vector<cuda::DeviceArray<__half>>& memory) {
    const int heads = shape.sequences * shape.heads, tokens = static_cast<int>(shape.tokens);
    const int64_t of_head = shape.tokens * kHeadDim, of_scores = shape.tokens * shape.tokens;
    auto scores = *cuda::DeviceArray<__half>::Allocate(heads * of_scores);
    const float one = 1, zero = 0;
    bool fine = true;
    const auto work = [&] {
      fine &= cublasGemmStridedBatchedEx(cublas_, CUBLAS_OP_T, CUBLAS_OP_N, tokens, tokens, kHeadDim, &one,
                                         memory[1].data(), CUDA_R_16F, kHeadDim, of_head, memory[0].data(), CUDA_R_16F,
                                         kHeadDim, of_head, &zero, scores.data(), CUDA_R_16F, tokens, of_scores, heads,
                                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
      QueueDenseSoftmax(scores.data(), heads * shape.tokens, tokens, 1.0f / 8, timer_.queue());
      fine &= cublasGemmStridedBatchedEx(cublas_, CUBLAS_OP_N, CUBLAS_OP_N, kHeadDim, tokens, tokens, &one,
                                         memory[2].data(), CUDA_R_16F, kHeadDim, of_head, scores.data(), CUDA_R_16F,
                                         tokens, of_scores, &zero, memory[3].data(), CUDA_R_16F, kHeadDim, of_head,
                                         heads, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
    };
    const double us = timer_.Time(work);
    Must(fine, "run cuBLAS");
    return us;
  }

  Timer timer_;
  cublasHandle_t cublas_;
  void* workspace_ = nullptr;
};

void WriteJson(const Options& options, const std::vector<Line>& lines) {
  if (options.run.output.empty()) return;
  std::ofstream out(options.run.output);
  out.precision(5);
  out << "{\n  " << FactsOf(options.run) << ",\n  \"cases\": [\n";
  const char* comma = "";
  for (const Line& line : lines) {
    out << std::exchange(comma, ",\n") << "    {\"sequences\": " << line.shape.sequences
        << ", \"heads\": " << line.shape.heads << ", \"tokens\": " << line.shape.tokens
        << ", \"sparsity\": " << line.shape.sparsity << ", \"dense_us\": " << line.dense
        << ", \"ours_us\": " << line.ours << ", \"sddmm_4_us\": " << line.sddmm[0]
        << ", \"sddmm_8_us\": " << line.sddmm[1] << ", \"sddmm_16_us\": " << line.sddmm[2]
        << ", \"error\": " << line.error << "}";
  }
  out << "\n  ]\n}\n";
}

int Main(const Options& options) {
  Bench bench(options);
  std::vector<Line> lines;
  bool wrong = false;
  for (const auto& [heads, sequences] : {std::pair{4, 2}, {4, 8}, {8, 2}, {8, 8}}) {
    for (const int64_t tokens : {4096, 8192}) {
      for (const double sparsity : {.9, .95}) {
        const Line line = lines.emplace_back(bench.Run({sequences, heads, tokens, sparsity}));
        wrong = wrong || !(line.error <= 0.1);
        std::printf(
            "%d sequences of %5ld, %d heads, %.2f | dense in parts %9.1f us | ours %8.1f | %5.2f | SDDMM 4-4 "
            "%.1f 8-8 %.1f 16-16 %.1f | error %.1e\n",
            sequences, tokens, heads, sparsity, line.dense, line.ours, line.dense / line.ours, line.sddmm[0],
            line.sddmm[1], line.sddmm[2], line.error);
        std::fflush(stdout);
      }
    }
  }
  WriteJson(options, lines);
  if (wrong) std::printf("results were WRONG\n");
  return wrong ? 1 : 0;
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("Sparse attention in whole numbers on a GPU against dense attention in parts");
  swizzle::bench::AddRunOptions(app, options.run);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
