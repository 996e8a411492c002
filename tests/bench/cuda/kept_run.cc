#include "tests/bench/cuda/kept_run.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/status.h"

namespace swizzle::bench {

void AddRunOptions(CLI::App& app, KeptRun& run) {
  app.add_option("--rounds", run.rounds, "replays, of which the median counts");
  if (run.launches > 0) app.add_option("--launches", run.launches, "in a graph");
  app.add_option("--machine", run.machine, "for the results");
  app.add_option("--date", run.date, "for the results");
  app.add_option("--commit", run.commit, "for the results");
  app.add_option("-o,--output", run.output, "JSON file");
}

std::string FactsOf(const KeptRun& run) {
  return Concat("\"machine\": ", nlohmann::json(run.machine).dump(), ", \"date\": ", nlohmann::json(run.date).dump(),
                ", \"commit\": ", nlohmann::json(run.commit).dump());
}

std::string MethodOf(const KeptRun& run) {
  return Concat("CUDA graph of ", run.launches, " launches, median of ", run.rounds,
                " replays, warm L2, microseconds a launch");
}

double GeometricMean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace swizzle::bench
