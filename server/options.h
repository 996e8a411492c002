// The command line of swizzle-server.
#ifndef SWIZZLE_SERVER_OPTIONS_H_
#define SWIZZLE_SERVER_OPTIONS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/model/model.h"
#include "server/repository/model_repository.h"
#include "server/rpc/rpc_limits.h"
#include "server/security/tls_certificates.h"
#include "server/telemetry/logging.h"
#include "server/tracing/request_sampler.h"

namespace swizzle {

struct ServerOptions {
  std::vector<std::filesystem::path> model_repositories;
  std::vector<NamedModel> models;  // beside those of repositories
  ModelControl model_control = ModelControl::kNone;
  std::vector<std::string> load_models;          // at the start, where that is kExplicit; "*": all
  absl::Duration poll = absl::Seconds(15);       // between two looks, where it is kPoll
  std::string control_address;                   // where models are loaded and unloaded by calls; empty: nowhere
  bool allow_load_overrides = false;             // by what such a call brings
  std::string grpc_address = "0.0.0.0:8001";     // port 0 takes a free one
  std::string http_control_address;              // likewise, over HTTP; empty: nowhere
  std::string http_address;                      // the protocol over HTTP; empty: it is not served
  std::string metrics_address = "0.0.0.0:8002";  // the same
  std::string device = "auto";                   // or "cpu", "cuda", "cuda:0,2"
  std::filesystem::path port_file;               // empty: none
  int threads = 0;                               // for each model; 0: all that this process may use
  PinThreads pin_threads = PinThreads::kAuto;
  Tune tune = Tune::kBackground;
  absl::Duration tuning_budget = absl::Seconds(15);  // for all that is measured, for each model
  ReadyRule ready;
  double weight_budget = 0.0;          // see PlanOptions
  std::filesystem::path tuning_cache;  // empty: none
  absl::Duration drain_delay = absl::ZeroDuration();
  bool says_goaway = true;  // in a drain, where it can be said; tests say no
  RpcLimits rpc;
  TlsFiles tls;
  std::filesystem::path auth_tokens;  // empty: nobody needs one
  bool metrics_auth = false;
  int64_t memory_limit = 0;          // bytes; 0: what control groups and the machine leave
  int64_t max_run_bytes = 0;         // of models in regions, or node by node; 0: what is left of that
  int64_t response_cache_bytes = 0;  // 0: no answers are kept
  bool triton_metrics = false;       // metrics by Triton's names as well
  SamplingOptions sampling;          // what is logged of requests, and traced
  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  bool list_kernels = false;
};

// What the command line asks for: to run with `options`, or, where `exit_code` is set, to print `text` and leave
// (0: help or version, on standard output; 2: a wrong command line, on standard error).
struct CommandLine {
  ServerOptions options;
  std::optional<int> exit_code;
  std::string text;
};

CommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_OPTIONS_H_
