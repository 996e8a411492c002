// One sparse product Y = W X on a GPU by every contender: ours, cuSPARSE's best, a Sputnik-style kernel with its
// ablation, and dense cuBLAS, of FP32 ours and the dense one also in three products of FP16 parts. Ours is the fastest
// of the kernel table's rows, each with the plan it would choose, as a server's planner measures them. Every
// contender's sums are checked against double precision first. Errors of CUDA end the program. Single-threaded.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_SPMM_RACE_H_
#define SWIZZLE_TESTS_BENCH_CUDA_SPMM_RACE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/conv/csr/conv_csr_wgmma.h"
#include "tests/bench/cuda/contenders.h"
#include "tests/bench/cuda/products_in_parts.h"

namespace swizzle::bench {

// A product, and what each contender took, in microseconds; those that did not run took 0.
struct SpmmCase {
  std::string name;
  int64_t rows = 0, cols = 0, columns = 0, nonzeros = 0;
  double ours = 0, cusparse = 0, sputnik = 0, cublas = 0, parts = 0, best_plan = 0;
  double sparse_parts = 0;     // ours in three products of FP16 parts
  double simt = 0, wgmma = 0;  // ours on fp32 units and, for fp32, on tensor cores
  double dense_error = 0, parts_error = 0, sparse_parts_error = 0, wgmma_error = 0;
  std::string plan, best_plan_text, algorithm;
  double unbalanced = 0, scalar = 0, unscaled = 0, rolled = 0;  // the Sputnik-style kernel without a part
  std::map<std::string, double> plans;

  double better() const { return sputnik > 0 ? std::min(cusparse, sputnik) : cusparse; }
  double in_parts() const { return std::min({ours, parts, sparse_parts}); }  // where precision allows these
  double flops() const { return 2.0 * static_cast<double>(nonzeros) * static_cast<double>(columns); }
};

struct SpmmRaceOptions {
  std::string dtype = "f32";
  int rounds = 5, launches = 10;
  bool every_plan = false;  // times every way to lay out our kernel
  bool ablation = false;    // times the Sputnik-style kernel without its parts
};

class SpmmRace {
 public:
  explicit SpmmRace(const SpmmRaceOptions& options);
  // Draws X. N is `columns`.
  SpmmCase Run(const std::string& name, const CsrMatrix& matrix, int64_t columns);
  // Results that were wrong so far; each was printed.
  int wrong() const { return wrong_; }

 private:
  // cuts_off: it sums products of halves in tensor cores alone (tests/kernels/closeness.cc).
  void Expect(double error, const SpmmCase& c, const std::string& what, bool cuts_off = false) const;
  double TimeOneSputnik(Product& product, const SputnikMatrix& matrix, const SputnikParts& parts, const SpmmCase& c);
  void TimeSputnik(Product& product, const DeviceCsr& csr, SpmmCase& c);
  void TimeOurs(Product& product, SpmmCase& c);
  // On tensor cores.
  void TimeWgmma(Product& product, SpmmCase& c);

  const SpmmRaceOptions options_;
  Timer timer_;
  ProductsInParts in_parts_;
  const cuda::SpmmDevice device_;
  const cuda::WgmmaDevice wgmma_device_ = cuda::CurrentWgmmaDevice();
  DType dtype_;
  cusparseHandle_t cusparse_;
  cublasHandle_t cublas_;
  mutable int wrong_ = 0;
};

// Rows of `cols * (1 - sparsity)` entries on average and this coefficient of variation, columns drawn.
CsrMatrix DrawMatrix(int64_t rows, int64_t cols, double sparsity, double cov);

double Percentile(std::vector<double> values, double share);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_SPMM_RACE_H_
