// What plan_bench is told.
#ifndef SWIZZLE_TESTS_BENCH_PLAN_BENCH_OPTIONS_H_
#define SWIZZLE_TESTS_BENCH_PLAN_BENCH_OPTIONS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/precision.h"
#include "model_loader/plan/choose/plan_options.h"

namespace swizzle::bench {

// What the command line says.
struct PlanBenchOptions {
  std::string model = "mobilenet_v1";
  double sparsity = 0.9;
  int64_t vector_rows = 1;
  std::string device = "auto";
  std::vector<std::string> precisions = {"FP32"};
  std::vector<int64_t> batches = {1};
  int64_t max_batch = 0;
  int64_t micro_batch = 0;
  int64_t length = 128;
  int64_t ids = 200;
  int threads = 0;
  int rounds = 101;
  int streams = 1;
  double budget = 20.0;
  double weight_budget = 0.0;
  double pause = 0.0;
  bool json = false;
  bool layers = false;
  bool candidates = false;
  bool steps = false;
  bool pin_threads = false;
  bool against_single = false;
  bool byte_images = false;
  bool int8 = false;
  bool alone = false;
  bool dense = false;
  bool staged = false;
  bool check = false;
  std::string tuning_cache;
  std::string write;
  std::string lock;
};

// Of a plan in this precision, of which batches have so many tokens a row.
inline PlanOptions OptionsOfPlan(const PlanBenchOptions& options, const std::string& precision, bool dense_only,
                                 int64_t length = 1) {
  PlanOptions plan;
  plan.max_batch = std::max(std::ranges::max(options.batches), options.max_batch);
  plan.max_tokens = plan.max_batch * length;
  plan.threads = options.threads;
  plan.precision = *PrecisionFromName(precision);
  plan.dense_only = dense_only;
  plan.micro_batch = options.micro_batch;
  plan.weight_budget = options.weight_budget;
  plan.tuning_budget = absl::Seconds(options.budget);
  return plan;
}

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_PLAN_BENCH_OPTIONS_H_
