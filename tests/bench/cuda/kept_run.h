// What the benchmarks of a GPU keep beside their figures: options, of which machine, day and commit they are, and how
// they were measured. Functions and a value type only.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_KEPT_RUN_H_
#define SWIZZLE_TESTS_BENCH_CUDA_KEPT_RUN_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace swizzle::bench {

struct KeptRun {
  std::string output = {}, machine = "NVIDIA H200", date = {}, commit = {};
  int rounds = 5;
  int launches = 10;  // in a graph; 0: there are none
};

// --output, --machine, --date, --commit, --rounds and, where there are graphs, --launches.
void AddRunOptions(CLI::App& app, KeptRun& run);

// "machine", "date" and "commit" as members of a JSON object, without braces.
std::string FactsOf(const KeptRun& run);
// "CUDA graph of 10 launches, median of 5 replays, warm L2, microseconds a launch".
std::string MethodOf(const KeptRun& run);

double GeometricMean(const std::vector<double>& values);  // of none, 0

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_KEPT_RUN_H_
