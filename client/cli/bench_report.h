// What bench prints: a level at a time as text, all of them as JSON, and as perf_analyzer's CSV.
#ifndef SWIZZLE_CLIENT_CLI_BENCH_REPORT_H_
#define SWIZZLE_CLIENT_CLI_BENCH_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "client/cli/report.h"
#include "client/load_generator.h"
#include "client/model_statistics.h"

namespace swizzle::client {

struct BenchLevel {
  bool is_rate = false;  // else of requests in flight
  double level = 0;
  LoadReport report;
  int windows = 0;  // of --measurement-interval
  bool stable = true;
  std::optional<ModelStatistics> server;  // what the server counted meanwhile, where it tells
};

struct BenchSettings {
  std::string model;
  std::vector<Tensor> inputs;  // their data is not needed
  int64_t rows = 1;            // of a request
  double percentile = 0;       // besides the usual ones; 0: none
};

// "8 in flight", "100 requests a second".
std::string LevelText(const BenchLevel& level);

// One level alone, as a block; or as a row of a table with this head.
std::string BlockText(const BenchSettings& settings, const BenchLevel& level);
std::string TableHead(const BenchSettings& settings, bool is_rate);
std::string TableRow(const BenchSettings& settings, const BenchLevel& level);

Json LevelJson(const BenchSettings& settings, const BenchLevel& level);

// The columns of perf_analyzer, in microseconds, sorted by rate as it does. "Client Recv" is 0: what it takes to parse
// an answer is part of "Network+Server Send/Recv".
std::string BenchCsv(const BenchSettings& settings, std::vector<BenchLevel> levels);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_BENCH_REPORT_H_
