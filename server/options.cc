#include "server/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/devices.h"
#include "model_loader/plan/choose/plan_options.h"
#include "server/net/listening_socket.h"
#include "server/shutdown_signals.h"

namespace swizzle {
namespace {

constexpr int kMaxThreads = 1024;
constexpr double kMaxDelaySeconds = 3600.0;
constexpr int64_t kMinMessageBytes = 1024, kMaxMessageBytes = 1 << 30;
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr double kMaxLimitSeconds = 1e6;

// CLI11's convention for checks: empty for a good value, else what is wrong with it.
std::string CheckDevice(const std::string& device) { return std::string(ParseDevice(device).status().message()); }

std::string CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon != std::string::npos && colon > 0) {
    const char* end = address.data() + address.size();
    const auto [stop, error] = std::from_chars(address.data() + colon + 1, end, port);
    if (error != std::errc() || stop != end) port = -1;
  }
  if (port >= 0 && port <= 65535) return "";
  return "'" + address + "' is not HOST:PORT with a port from 0 to 65535";
}

std::string CheckEndpoint(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  const std::string wrong = "'" + url + "' is not http://HOST:PORT with a port from 1 to 65535";
  if (!url.starts_with(kScheme)) return wrong;
  const std::string address = url.substr(kScheme.size());
  return CheckAddress(address).empty() && !address.ends_with(":0") ? "" : wrong;
}

std::string CheckGrpcAddress(const std::string& address) {
  return UnixPath(address).empty() ? CheckAddress(address) : "";
}

// What names stand for. Others have to be refused before, by IsMember, which is transformed first if it is added last:
// CLI11's own words for them print the values, too, and end at one that is no printable character.
template <typename T>
CLI::CheckedTransformer NamedValues(const std::map<std::string, T>& values) {
  CLI::CheckedTransformer transformer(values);
  transformer.description("");
  return transformer;
}

// Where the server listens and what it serves.
void AddServing(CLI::App& app, ServerOptions& options) {
  app.add_option(
         "--model-repository", options.model_repositories,
         "Directory of models: DIR/MODEL/VERSION/model.onnx, model.swz or model.safetensors; may be given again "
         "for others")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option_function<std::vector<std::string>>(
         "--model",
         [&options](const std::vector<std::string>& given) {
           for (const std::string& text : given) {
             StatusOr<NamedModel> model = ParseNamedModel(text);
             if (!model.ok()) throw CLI::ValidationError("--model", std::string(model.status().message()));
             options.models.push_back(*std::move(model));
           }
         },
         "A model that is in no repository: a file, a checkpoint's folder, or a model's folder with its versions; "
         "by default its name is the file's or the folder's; with text=embedding, text=token_embedding or "
         "text=classification it takes texts, by the tokeniser in its folder; may be given again for others")
      ->type_name("PATH[,name=NAME][,text=TASK]")
      ->allow_extra_args(false);
  app.add_option("--grpc-address", options.grpc_address,
                 "Where gRPC listens; port 0 takes a free one; unix:PATH is a socket for clients on this host")
      ->type_name("HOST:PORT")
      ->capture_default_str()
      ->check(CheckGrpcAddress);
  app.add_option(
         "--http-address", options.http_address,
         "Where the protocol is served over HTTP, too (Triton's clients expect port 8000); nowhere unless given")
      ->type_name("HOST:PORT")
      ->check(CheckAddress);
  app.add_option("--metrics-address", options.metrics_address, "Where /metrics, /livez, /readyz and /startupz listen")
      ->type_name("HOST:PORT")
      ->capture_default_str()
      ->check(CheckAddress);
  app.add_option_function<std::string>(
         "--metrics-compat", [&options](const std::string& whose) { options.triton_metrics = whose == "triton"; },
         "Expose what models do by another server's names as well: none or triton")
      ->type_name("SERVER")
      ->default_str("none")
      ->check(CLI::IsMember({"none", "triton"}).description(""));
  app.add_option("--device", options.device,
                 "Where models run: cpu, cuda (all GPUs), cuda:0,2 (these), auto (GPUs where there are any)")
      ->type_name("DEVICE")
      ->capture_default_str()
      ->check(CheckDevice);
  app.add_option(
         "--port-file", options.port_file,
         "Write {\"grpc\": N, \"metrics\": N} here when ready, and \"http\", \"control\" and \"http_control\", where "
         "there are such")
      ->type_name("FILE");
}

// Who may connect.
void AddSecurity(CLI::App& app, ServerOptions& options) {
  const auto add = [&](const char* flag, std::filesystem::path& file, const char* text) {
    return app.add_option(flag, file, text)->type_name("FILE");
  };
  auto* const certificate =
      add("--tls-cert", options.tls.certificate,
          "Serve gRPC and HTTP over TLS, with this certificate, those between it and its authority behind "
          "it; PEM, read again when it changes");
  auto* const key = add("--tls-key", options.tls.key, "Its private key; likewise");
  certificate->needs(key);
  key->needs(certificate);
  add("--tls-client-ca", options.tls.client_ca,
      "Take only clients that show a certificate of one of these authorities; likewise")
      ->needs(certificate);
  auto* const tokens =
      add("--auth-tokens", options.auth_tokens,
          "Take only calls that show a bearer token of this file, each line CLASS[,CLASS...] [models=NAME[,NAME...]] "
          "TOKEN; read again when it changes");
  app.add_flag("--metrics-auth", options.metrics_auth, "Ask for one of class metrics on /metrics, too")->needs(tokens);
}

// How models are run.
void AddRunning(CLI::App& app, ServerOptions& options, double& tuning_seconds) {
  const std::map<std::string, PinThreads> pins = {
      {"auto", PinThreads::kAuto}, {"on", PinThreads::kOn}, {"off", PinThreads::kOff}};
  app.add_option(
         "--threads", options.threads,
         "Threads for each model, no more than processors; 0: all that this process may use, those that share a "
         "last-level cache for one executor each")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, kMaxThreads));
  app.add_option(
         "--pin-threads", options.pin_threads,
         "Keep each thread of an executor to one processor: on, off, or auto, where it has 8 or more and a model's "
         "executors have all processors of this process")
      ->type_name("WHEN")
      ->transform(NamedValues(pins))
      ->transform(CLI::IsMember(pins).description(""))
      ->default_str("auto");
  const std::map<std::string, Tune> tunes = {
      {"background", Tune::kBackground}, {"before-ready", Tune::kBeforeReady}, {"off", Tune::kOff}};
  app.add_option("--tune", options.tune,
                 "When kernels are measured: background, while a model serves and no request is there; before-ready; "
                 "off")
      ->type_name("WHEN")
      ->transform(NamedValues(tunes))
      ->transform(CLI::IsMember(tunes).description(""))
      ->default_str("background");
  app.add_option("--tuning-budget", tuning_seconds,
                 "Seconds that measuring may take in all, for each model; 0: nothing is measured")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0.0, kMaxDelaySeconds));
  app.add_option("--weight-budget", options.weight_budget,
                 "Memory for packed weights, as a multiple of what they take once each; more than 1 lets small and "
                 "large batches run on kernels that read them in different forms; 0: 1.25 on a GPU, 1 on a CPU")
      ->type_name("FACTOR")
      ->capture_default_str()
      ->check((CLI::Range(1.0, kMostWeightBudget) | CLI::IsMember({"0"})).description(""));
  app.add_option("--tuning-cache", options.tuning_cache,
                 "Keep measured times here, so that the next start need not measure")
      ->type_name("FILE");
}

// When the server is ready.
void AddReadiness(CLI::App& app, std::string& ready) {
  app.add_option("--ready", ready,
                 "Which models have to serve for the server to be ready: all, any, or names separated by commas")
      ->type_name("MODELS")
      ->capture_default_str()
      ->check([](const std::string& text) { return std::string(ParseReadyRule(text).status().message()); });
}

// Durations that are given in seconds.
class SecondsFlags {
 public:
  explicit SecondsFlags(CLI::App& app) : app_(app) {}

  void Add(const std::string& flag, absl::Duration& target, double least, const std::string& text) {
    Flag& added = *flags_.emplace_back(std::make_unique<Flag>(Flag{absl::ToDoubleSeconds(target), target}));
    app_.add_option(flag, added.seconds, text)
        ->type_name("SECONDS")
        ->capture_default_str()
        ->check(CLI::Range(least, kMaxLimitSeconds));
  }
  // Once the command line is parsed.
  void Store() const {
    for (const auto& flag : flags_) flag->target = absl::Seconds(flag->seconds);
  }

 private:
  struct Flag {
    double seconds;
    absl::Duration& target;
  };
  CLI::App& app_;
  std::vector<std::unique_ptr<Flag>> flags_;
};

// Who says which models serve, and where.
void AddControl(CLI::App& app, ServerOptions& options, SecondsFlags& seconds) {
  const std::map<std::string, ModelControl> controls = {
      {"none", ModelControl::kNone}, {"poll", ModelControl::kPoll}, {"explicit", ModelControl::kExplicit}};
  app.add_option("--model-control", options.model_control,
                 "Which models serve: none, those that the directories hold at the start; poll, those that they hold, "
                 "looked at now and then; explicit, those that calls load (--control-address, "
                 "--http-control-address)")
      ->type_name("MODE")
      ->transform(NamedValues(controls))
      ->transform(CLI::IsMember(controls).description(""))
      ->default_str("none");
  seconds.Add("--repository-poll-secs", options.poll, 0.01,
              "With --model-control=poll, time between two looks; a folder that changes has to be the same twice");
  app.add_option("--load-model", options.load_models,
                 "With --model-control=explicit, a model to load at the start; may be given again; *: all")
      ->type_name("MODEL")
      ->allow_extra_args(false);
  app.add_option("--control-address", options.control_address,
                 "Where operators load and unload models; whoever reaches it may, so let it be a loopback address")
      ->type_name("HOST:PORT")
      ->check(CheckAddress);
  app.add_option("--http-control-address", options.http_control_address,
                 "The same over HTTP, by Triton's paths; likewise")
      ->type_name("HOST:PORT")
      ->check(CheckAddress);
  app.add_flag("--allow-load-overrides", options.allow_load_overrides,
               "A call that loads a model may bring a configuration in place of its config.pbtxt, and files in place "
               "of its folder");
}

template <typename Number>
void AddNumber(CLI::App& app, const std::string& flag, Number& target, const char* unit, Number least, Number most,
               const std::string& text) {
  app.add_option(flag, target, text)->type_name(unit)->capture_default_str()->check(CLI::Range(least, most));
}

// What one call may take.
void AddCallLimits(CLI::App& app, RpcLimits& limits, SecondsFlags& seconds) {
  AddNumber(app, "--max-message-bytes", limits.max_message_bytes, "BYTES", kMinMessageBytes, kMaxMessageBytes,
            "Largest request: as sent, decompressed, and parsed. A model whose inputs cannot be as large takes less");
  AddNumber(app, "--max-response-bytes", limits.max_response_bytes, "BYTES", kMinMessageBytes, kMostResponseBytes,
            "Largest response");
  AddNumber(app, "--max-metadata-bytes", limits.max_metadata_bytes, "BYTES", 1024, 1 << 20,
            "Largest headers of a call");
  seconds.Add("--max-deadline", limits.max_deadline, 0.001,
              "Longest time in a queue, of calls without a deadline, too");
  seconds.Add("--request-timeout", limits.request_timeout, 0.001,
              "Time for a client to send a request, while no other comes whole on its connection, which is then ended");
  seconds.Add("--response-timeout", limits.response_timeout, 0.001,
              "Time for a client to read a response; the call is then ended");
}

// What all calls and connections may take.
void AddServerLimits(CLI::App& app, RpcLimits& limits, SecondsFlags& seconds) {
  AddNumber<int64_t>(app, "--max-inflight-bytes", limits.max_inflight_bytes, "BYTES", 0, kMaxBytes,
                     "Memory that requests and responses may hold, the last eighth of it only those of up to 64 KiB; "
                     "0: an eighth of the memory there is, 64 MiB to 4 GiB");
  AddNumber<int64_t>(app, "--max-model-inflight-bytes", limits.max_model_inflight_bytes, "BYTES", 0, kMaxBytes,
                     "Likewise, of each model; 0: three quarters of it");
  AddNumber<int64_t>(app, "--max-connection-inflight-bytes", limits.max_connection_inflight_bytes, "BYTES", 0,
                     kMaxBytes, "Likewise, of each connection; 0: half of what a model's may");
  AddNumber<int64_t>(app, "--transport-bytes", limits.transport_bytes, "BYTES", 0, kMaxBytes,
                     "Memory that gRPC may hold of what arrives, beyond which it ends calls; 0: an eighth of the "
                     "memory there is, 64 MiB to 2 GiB");
  AddNumber(app, "--max-connections", limits.max_connections, "N", 0, 1 << 20,
            "Connections at once, never more than files may be open; 0: 4096 at most");
  AddNumber(app, "--max-streams", limits.max_streams, "N", 1, 1 << 20, "Calls at once on a connection");
  AddNumber(app, "--max-stream-requests", limits.max_stream_requests, "N", 1, 1 << 16,
            "Requests of one stream at once; the next is read when the first of them is answered");
  seconds.Add("--connection-age", limits.connection_age, 0,
              "Age, a tenth more or less, at which a client is told to connect again, so that new servers get their "
              "share; 0: never");
  seconds.Add("--connection-grace", limits.connection_grace, 0.001, "Time for its calls to end after that");
  seconds.Add("--connection-idle", limits.connection_idle, 0,
              "Time without calls, after which it is told so; 0: never");
  seconds.Add("--keepalive-time", limits.keepalive_time, 0,
              "Silence, after which a client is asked whether it is there; 0: never");
  seconds.Add("--min-ping-interval", limits.min_ping_interval, 0.001,
              "Least time between a client's pings without calls; who pings more is disconnected");
  seconds.Add("--handshake-timeout", limits.handshake_timeout, 0.001,
              "Time for a new connection to begin as HTTP/2, and, over HTTP, for the head of a request");
}

// What is told of requests.
void AddSampling(CLI::App& app, SamplingOptions& options) {
  const auto share = CLI::Range(0.0, 1.0);
  app.add_option("--request-log-rate", options.request_log_rate,
                 "Share of requests of which the log has a line of JSON; 100 lines a second at most")
      ->type_name("SHARE")
      ->capture_default_str()
      ->check(share);
  CLI::Option* const endpoint =
      app.add_option(
             "--trace-endpoint", options.trace_endpoint,
             "Collector, as http://HOST:PORT, that OpenTelemetry's traces are sent to, by OTLP over gRPC: of requests "
             "that their caller records (W3C's traceparent), and of a share of others")
          ->type_name("URL")
          ->check(CheckEndpoint);
  app.add_option("--trace-rate", options.trace_rate, "Share of the requests without traceparent that are traced")
      ->type_name("SHARE")
      ->capture_default_str()
      ->check(share)
      ->needs(endpoint);
}

// What does not concern models.
void AddOperation(CLI::App& app, ServerOptions& options, double& drain_seconds) {
  AddNumber<int64_t>(app, "--memory-limit", options.memory_limit, "BYTES", 0, kMaxBytes,
                     "Memory that models, their batches, and requests may take; 0: what the control group and the "
                     "machine leave");
  AddNumber<int64_t>(app, "--max-run-bytes", options.max_run_bytes, "BYTES", 0, kMaxBytes,
                     "The part of it that runs of models in regions, or node by node, may hold together; 0: what is "
                     "left");
  AddNumber<int64_t>(app, "--response-cache-bytes", options.response_cache_bytes, "BYTES", 0, kMaxBytes,
                     "Memory for answers that are kept, of models whose configuration asks for it; 0: none are");
  app.add_option(
         "--shared-memory-prefix", options.rpc.shared_memory_prefix,
         "Clients on this host may have tensors in shared memory (/dev/shm) whose name begins so; empty: none may")
      ->type_name("PREFIX")
      ->check([](const std::string& name) {
        return name.find('/') == std::string::npos ? "" : "a name in /dev/shm has no slash";
      });
  app.add_flag("--cuda-shared-memory", options.rpc.shares_device_memory,
               "Clients on this host may have tensors in memory of the GPUs that the server uses");
  AddNumber<int64_t>(app, "--shared-memory-bytes", options.rpc.shared_memory_bytes, "BYTES", 0, kMaxBytes,
                     "Shared memory that may be registered at once");
  const std::map<std::string, LogFormat> formats = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
  const std::map<std::string, LogLevel> levels = {{"debug", LogLevel::kDebug},
                                                  {"info", LogLevel::kInfo},
                                                  {"warning", LogLevel::kWarning},
                                                  {"error", LogLevel::kError}};
  app.add_option("--drain-delay", drain_seconds,
                 "Seconds to go on accepting requests after SIGTERM, so that load balancers notice")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0.0, kMaxDelaySeconds));
  app.add_option("--log-format", options.log_format, "text or json")
      ->type_name("FORMAT")
      ->transform(NamedValues(formats))
      ->transform(CLI::IsMember(formats).description(""))
      ->default_str("text");
  app.add_option("--log-level", options.log_level, "debug, info, warning or error")
      ->type_name("LEVEL")
      ->transform(NamedValues(levels))
      ->transform(CLI::IsMember(levels).description(""))
      ->default_str("info");
  app.add_flag("--list-kernels", options.list_kernels, "Print the kernels of this build and leave");
  app.set_version_flag("--version", "swizzle-server " SWIZZLE_VERSION);
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  double drain_seconds = absl::ToDoubleSeconds(line.options.drain_delay);
  double tuning_seconds = absl::ToDoubleSeconds(line.options.tuning_budget);
  std::string ready = "all";
  CLI::App app("Inference server for pruned neural networks", "swizzle-server");
  AddServing(app, line.options);
  AddRunning(app, line.options, tuning_seconds);
  SecondsFlags seconds(app);
  AddControl(app, line.options, seconds);
  AddCallLimits(app, line.options.rpc, seconds);
  AddServerLimits(app, line.options.rpc, seconds);
  AddReadiness(app, ready);
  AddSecurity(app, line.options);
  AddSampling(app, line.options.sampling);
  AddOperation(app, line.options, drain_seconds);
  try {
    app.parse(argc, argv);
    if (!line.options.list_kernels && line.options.model_repositories.empty() && line.options.models.empty()) {
      throw CLI::ValidationError("--model-repository", "say where the models are; --model takes a single file");
    }
    if (!line.options.load_models.empty() && line.options.model_control != ModelControl::kExplicit) {
      throw CLI::ValidationError("--load-model", "it needs --model-control=explicit");
    }
  } catch (const CLI::Success& asked) {
    line.exit_code = 0;
    line.text = asked.get_name() == "CallForHelp" ? app.help() : std::string(asked.what()) + "\n";
  } catch (const CLI::Error& error) {
    line.exit_code = kWrongCommandLine;
    line.text = Concat("swizzle-server: ", error.what(), " (--help lists all flags)\n");
  }
  seconds.Store();
  std::string& endpoint = line.options.sampling.trace_endpoint;
  endpoint.erase(0, endpoint.rfind('/') + 1);  // gRPC is given HOST:PORT
  line.options.drain_delay = absl::Seconds(drain_seconds);
  line.options.tuning_budget = absl::Seconds(tuning_seconds);
  if (auto rule = ParseReadyRule(ready); rule.ok()) line.options.ready = *std::move(rule);
  return line;
}

}  // namespace swizzle
