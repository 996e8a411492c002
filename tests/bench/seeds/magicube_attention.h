// The parts of Magicube's workload that have queries and keys: sampled products of whole numbers, and attention with
// their scores. Operands are drawn; every figure is of results that were checked before. Errors of CUDA end the
// program. Single-threaded.
#ifndef SWIZZLE_TESTS_BENCH_SEEDS_MAGICUBE_ATTENTION_H_
#define SWIZZLE_TESTS_BENCH_SEEDS_MAGICUBE_ATTENTION_H_

#include <cublas_v2.h>
#include <cusparse.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/attention/block_attention.h"
#include "kernels/cuda/int8/attention_bytes.h"
#include "kernels/format/attention_pattern.h"
#include "tests/bench/cuda/contenders.h"
#include "tests/bench/seeds/claims.h"

namespace swizzle::bench {

// `handle` goes by the timer's queue and has a workspace.
class SampledProducts {
 public:
  SampledProducts(Timer& timer, cublasHandle_t cublas, cusparseHandle_t cusparse)
      : timer_(timer), cublas_(cublas), cusparse_(cusparse) {}
  // Y = (Q K^T) at the places of `pattern`, each entry being 8 rows of Q, both `depth` deep: microseconds of cuSPARSE
  // and, of all of Y, cuBLAS, both in FP16, and ours of 16, 8 and 4 bits. Y of 4 bytes a sum. "wrong" where ours is.
  nlohmann::ordered_json Run(const CsrMatrix& pattern, int64_t depth);

 private:
  double TimeCusparse(const CsrMatrix& dilated, int64_t depth);
  double TimeCublas(int64_t rows, int64_t cols, int64_t depth);

  Timer& timer_;
  cublasHandle_t cublas_;
  cusparseHandle_t cusparse_;
  std::mt19937 random_{13};
};

struct AttentionShape {
  int sequences = 1, heads = 1;  // heads of 64
  int64_t tokens = 0;
  double sparsity = 0;
};

class AttentionRace {
 public:
  AttentionRace(Timer& timer, cublasHandle_t cublas) : timer_(timer), cublas_(cublas) {}
  // Attention of a drawn pattern in vectors of 8 queries, ours with 8-8 bits and the other published widths, beside
  // dense attention in FP16: in parts (two products of cuBLAS, a softmax between them), and fused, by our kernel for
  // blocks with all of them full. Then an encoder's four products by cuBLAS, which both need. "error" is ours against
  // attention that rounds nothing, of the largest output, "rounding_error" against what its widths say; "wrong" where
  // the latter is too large.
  nlohmann::ordered_json Run(const AttentionShape& shape);

 private:
  struct Operands;
  double TimeParts(const AttentionShape& shape, Operands& operands);
  double TimeFused(const AttentionShape& shape, Operands& operands);
  double TimeLayers(const AttentionShape& shape, const Operands& operands);
  using Expected = std::function<std::vector<double>(int64_t query)>;
  static std::vector<double> Exact(const AttentionShape& shape, std::span<const uint32_t> keys, int64_t query,
                                   const Operands& operands);
  double Error(const AttentionShape& shape, const Operands& operands, const Expected& expected);

  Timer& timer_;
  cublasHandle_t cublas_;
  std::map<int64_t, cuda::AttentionBlocks> full_;  // by tokens
  struct Pattern {
    AttentionPattern drawn;
    std::unique_ptr<const cuda::KeyPanels> panels;
  };
  std::map<std::pair<int64_t, double>, Pattern> patterns_;  // by tokens and sparsity
};

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_SEEDS_MAGICUBE_ATTENTION_H_
