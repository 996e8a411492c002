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
};

struct HealthOptions {
  std::string model;  // empty: the server alone
  absl::Duration wait;
};

struct MetadataOptions {
  std::string model;  // empty: of the server
};

struct LoadModelOptions {
  std::string model;
  absl::Duration wait;  // until it serves
};

struct UnloadModelOptions {
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
  int64_t requests = 0;
  double duration_s = 0;
  int64_t warmup = 10;  // requests that are not measured
  int64_t batch = 1;
  std::vector<std::string> inputs;  // NAME=FILE.npy; empty: drawn at random
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

absl::Status RunHealth(Client& client, const HealthOptions& options, Terminal& terminal);
absl::Status RunMetadata(Client& client, const MetadataOptions& options, Terminal& terminal);
absl::Status RunModels(Client& client, Terminal& terminal);
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
