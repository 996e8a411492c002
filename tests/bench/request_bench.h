// Models of any kind as an executor runs requests, for plan_bench: inputs are copied to the device and back in every
// run, from memory that it reads by itself, as a server has them, or from other memory.
#ifndef SWIZZLE_TESTS_BENCH_REQUEST_BENCH_H_
#define SWIZZLE_TESTS_BENCH_REQUEST_BENCH_H_

#include "model_loader/load/loader.h"
#include "tests/bench/plan_bench_options.h"

namespace swizzle::bench {

// Prints a result for each precision and batch: times, what was planned, what lies between plans and where, and, where
// that is asked for, the largest difference from the host's outputs in FP32, as a share of the largest magnitude.
Status MeasureRequests(const PlanBenchOptions& options, const RunnableModel& model);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_REQUEST_BENCH_H_
