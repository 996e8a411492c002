// The commands of `swizzle`: each takes parsed options, talks to a server, and writes to a terminal.
//
// A command returns a Status; ExitCodeOf turns it into the process's exit code. Not thread-safe.
#ifndef SWIZZLE_CLIENT_CLI_COMMAND_H_
#define SWIZZLE_CLIENT_CLI_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/connection.h"
#include "client/client.h"

namespace swizzle::client {

enum ExitCode : int {
  kExitOk = 0,
  kExitRefused = 1,      // the server answered no
  kExitUsage = 2,        // the command line, or a file that it names, is wrong
  kExitUnreachable = 3,  // no server answered
};

// Where a command writes: results to `out`, progress to `err` if a person is watching there.
struct Terminal {
  std::ostream& out;
  std::ostream& err;
  bool show_progress = false;
  bool json = false;
  bool out_is_terminal = false;  // results may be redrawn in place
};

struct ServeOptions {
  std::vector<std::string> models;  // PATH[,name=NAME][,text=TASK]
  std::string host = "127.0.0.1";
  int http_port = -1, grpc_port = -1, metrics_port = -1;  // 0: a free one; -1: the usual one, or a free one
  std::vector<std::string> server_flags;                  // others of swizzle-server
  ConnectionFlags connection;                             // how clients connect; its address is not looked at
};

struct HealthOptions {
  std::string model;  // empty: the server alone
  double wait_s = 0;
};

struct MetadataOptions {
  std::string model;  // empty: of the server
};

struct LoadModelOptions {
  std::string model;
  double wait_s = 600;  // until it serves
};

struct UnloadModelOptions {
  std::string model;
};

struct ModelsOptions {};

struct StatsOptions {
  std::string model;      // empty: all
  double interval_s = 0;  // until a second look; 0: there is none
};

struct WatchOptions {
  double interval_s = 1;
  int64_t count = 0;  // looks; 0: until it is interrupted
};

struct ConfigOptions {
  std::string model;
};

struct InferOptions {
  std::string model;
  std::vector<std::string> inputs;  // NAME=FILE.npy
  std::string output_directory;     // empty: outputs are not saved
  int top = 0;                      // of each row, this many best; 0: no ranking
};

struct BenchOptions {
  std::string model;
  int concurrency = 1;
  std::string concurrency_range, request_rate_range;  // START:END:STEP; at most one of them
  std::string request_distribution = "constant";
  int64_t requests = 0;                // at each level
  double duration_s = 0;               // or so
  double measurement_interval_ms = 0;  // or so, in windows
  double stability_percent = 10;
  int max_trials = 10;
  double percentile = 0;  // to report besides
  int64_t warmup = 10;    // requests that are not measured
  int64_t batch = 1;
  std::vector<std::string> shapes;  // NAME:D1,D2
  std::vector<std::string> inputs;  // NAME=FILE.npy; empty: drawn at random
  std::string csv;                  // file to write; empty: none
};

struct ClassifyOptions {
  std::string model;
  std::string images;       // .npy, one image per row
  std::string labels;       // .npy, the right class of each; empty: unknown
  std::string predictions;  // .npy to write; empty: none
  int64_t batch = 1;
  int concurrency = 1;
  int64_t warmup = 10;
};

// Starts a server of its own; `connection` says how to connect to it, but for the address.
absl::Status RunServe(const ServeOptions& options, const ClientOptions& connection, Terminal& terminal);
absl::Status RunHealth(Client& client, const HealthOptions& options, Terminal& terminal);
absl::Status RunMetadata(Client& client, const MetadataOptions& options, Terminal& terminal);
absl::Status RunModels(Client& client, const ModelsOptions& options, Terminal& terminal);
absl::Status RunStats(Client& client, const StatsOptions& options, Terminal& terminal);
absl::Status RunWatch(Client& client, const WatchOptions& options, Terminal& terminal);
absl::Status RunConfig(Client& client, const ConfigOptions& options, Terminal& terminal);
absl::Status RunLoad(Client& client, const LoadModelOptions& options, Terminal& terminal);
absl::Status RunUnload(Client& client, const UnloadModelOptions& options, Terminal& terminal);
absl::Status RunInfer(Client& client, const InferOptions& options, Terminal& terminal);
absl::Status RunBench(Client& client, const BenchOptions& options, Terminal& terminal);
absl::Status RunClassify(Client& client, const ClassifyOptions& options, Terminal& terminal);

// An error of the command line or of a local file.
absl::Status UsageError(const std::string& message);
// The same, of an error that names what is wrong; OK stays OK.
absl::Status AsUsageError(const absl::Status& status);

ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_COMMAND_H_
