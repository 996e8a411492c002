// serve: a swizzle-server in the foreground, and how to call it.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/clock.h"
#include "client/cli/command.h"
#include "client/cli/interrupt.h"
#include "client/cli/printable.h"
#include "client/cli/report.h"
#include "client/cli/server_process.h"
#include "client/cli/snippet.h"

namespace swizzle::client {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(50);
constexpr int64_t kTokens = 8;                           // of sequences in what is printed
constexpr int64_t kFreeDimensions[] = {8, 32, 64, 224};  // tried in turn where the model does not say what it takes

// A folder for the file that the server writes its ports to; gone with this.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "swizzle-XXXXXX").string();
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }  // empty: there is none

 private:
  std::string path_;
};

struct Ports {
  int grpc = 0, http = 0, metrics = 0;
};

std::optional<Ports> ReadPorts(const std::string& file) {
  std::ifstream in(file);
  const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("grpc") || !json.contains("metrics")) return std::nullopt;
  return Ports{json["grpc"].get<int>(), json.value("http", 0), json["metrics"].get<int>()};
}

// What listens everywhere, or on this machine alone, is called localhost.
std::string NameOf(const std::string& host) {
  return host == "0.0.0.0" || host == "::" || host == "127.0.0.1" ? "localhost" : host;
}

std::vector<std::string> ServerArguments(const ServeOptions& options, const std::string& port_file) {
  const auto address = [&](const char* flag, int port, int preferred) {
    return absl::StrCat(flag, "=", options.host, ":", port >= 0 ? port : PortOrFree(options.host, preferred));
  };
  std::vector<std::string> arguments = {
      address("--grpc-address", options.grpc_port, 8001), address("--http-address", options.http_port, 8000),
      address("--metrics-address", options.metrics_port, 8002), absl::StrCat("--port-file=", port_file)};
  for (const std::string& model : options.models) arguments.push_back(absl::StrCat("--model=", model));
  bool levelled = false;
  for (const std::string& flag : options.server_flags) levelled = levelled || absl::StartsWith(flag, "--log-level");
  if (!levelled) arguments.push_back("--log-level=warning");
  arguments.insert(arguments.end(), options.server_flags.begin(), options.server_flags.end());
  return arguments;
}

// A model that serves, and what is printed of it.
struct Shown {
  ModelMetadata metadata;
  std::string curl, python;
  std::string remark;  // why they may not work; empty: they do
};

class Serving {
 public:
  Serving(const ServeOptions& options, ClientOptions connection, Terminal& terminal)
      : options_(options), connection_(std::move(connection)), terminal_(terminal) {}

  absl::Status Run() {
    const absl::StatusOr<std::string> program = FindProgram("swizzle-server");
    if (!program.ok()) return program.status();
    if (folder_.path().empty()) return UsageError(absl::StrCat("no temporary folder: ", std::strerror(errno)));
    const std::string port_file = folder_.path() + "/ports.json";
    auto server = ServerProcess::Start(*program, ServerArguments(options_, port_file));
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    absl::Status status = AwaitStart(port_file);
    if (status.ok() && ports_) status = Show();
    if (!status.ok() || !ports_) return status;
    return AwaitEnd();
  }

 private:
  // Reads what the server says until `most` has passed, it ends, or somebody interrupts. Whether it still runs.
  bool Listen(absl::Duration most) {
    pollfd watched[] = {{server_->output(), POLLIN, 0}, {interrupt_.descriptor(), POLLIN, 0}};
    poll(watched, 2, static_cast<int>(absl::ToInt64Milliseconds(most)));
    return server_->Read(said_);
  }

  void Forward() {
    if (!said_.empty()) terminal_.err << std::exchange(said_, "") << std::flush;
  }

  // Until the server has tried to load all models. OK without ports where somebody interrupts meanwhile.
  absl::Status AwaitStart(const std::string& port_file) {
    const Stopwatch stopwatch;
    bool runs = true;
    while (runs && !(ports_ = ReadPorts(port_file))) {
      runs = Listen(kPoll);
      if (terminal_.show_progress) {
        terminal_.err << absl::StrFormat("\r\033[K  swizzle-server starts, %.0f s",
                                         absl::ToDoubleSeconds(stopwatch.elapsed()))
                      << std::flush;
      }
      if (runs && interrupt_.Take()) break;
    }
    ClearProgressLine(terminal_);
    if (runs) return absl::OkStatus();
    Forward();
    const int status = server_->Wait();
    const std::string text = absl::StrCat("swizzle-server ", EndText(status), " before it served");
    return WIFEXITED(status) && WEXITSTATUS(status) == kExitUsage ? UsageError(text) : absl::InternalError(text);
  }

  std::string HttpAddress() const { return absl::StrCat(NameOf(options_.host), ":", ports_->http); }

  absl::Status Show() {
    connection_.address = absl::StrCat(NameOf(options_.host), ":", ports_->grpc);
    const std::unique_ptr<Client> client = NewClient(connection_);
    const absl::StatusOr<std::vector<ListedModel>> models = client->ListModels();
    if (!models.ok()) return models.status();
    std::vector<Shown> shown;
    std::vector<std::string> failures;
    for (const ListedModel& model : *models) {
      if (model.state == "READY" && (shown.empty() || shown.back().metadata.name != model.name)) {
        absl::StatusOr<Shown> one = ShownOf(*client, model.name);
        if (!one.ok()) return one.status();
        shown.push_back(*std::move(one));
      } else if (model.state != "READY") {
        failures.push_back(absl::StrCat("model '", model.name, "' does not serve: ", model.reason));
      }
    }
    if (shown.empty()) return absl::FailedPreconditionError(absl::StrJoin(failures, "; "));
    Forward();
    for (const std::string& failure : failures) terminal_.err << failure << '\n';
    if (terminal_.json) {
      PrintJson(AsJson(shown), terminal_);
    } else {
      Print(shown);
    }
    terminal_.out << std::flush;
    return absl::OkStatus();
  }

  // What is printed is tried before, but for the way of it.
  absl::StatusOr<Shown> ShownOf(Client& client, const std::string& model) const {
    absl::StatusOr<ModelMetadata> metadata = client.GetModelMetadata(model);
    if (!metadata.ok()) return metadata.status();
    Shown shown{*std::move(metadata), "", "", ""};
    std::vector<InputPlan> plans;
    for (const int64_t free : kFreeDimensions) {
      absl::StatusOr<std::vector<InputPlan>> tried =
          PlanInputs(shown.metadata, {.tokens = kTokens, .free = free}, /*strings=*/true);
      if (!tried.ok()) return tried.status();
      if (!plans.empty() && tried->front().shape == plans.front().shape) break;  // nothing is free
      const absl::Status status = Try(client, model, *tried);
      if (plans.empty()) {
        plans = *tried;
        shown.remark = std::string(status.message());
      }
      if (!status.ok()) continue;
      plans = *std::move(tried);
      shown.remark = "";
      break;
    }
    Callee callee{HttpAddress(), options_.connection, model, std::move(plans), {}};
    for (const TensorMetadata& output : shown.metadata.outputs) callee.outputs.push_back(output.name);
    shown.curl = CurlCommand(callee);
    shown.python = PythonProgram(callee);
    return shown;
  }

  static absl::Status Try(Client& client, const std::string& model, const std::vector<InputPlan>& plans) {
    absl::StatusOr<std::vector<Tensor>> inputs = DrawInputs(plans, /*seed=*/1);
    if (!inputs.ok()) return inputs.status();
    InferRequest request;
    request.model = model;
    request.inputs = *std::move(inputs);
    return client.Infer(request).status();
  }

  void Print(const std::vector<Shown>& models) const {
    const auto text = [](std::string* out, const TensorMetadata& tensor) {
      absl::StrAppend(out, tensor.name, " ", tensor.datatype, " ", ShapeText(tensor.shape));
    };
    for (const Shown& shown : models) {
      const ModelMetadata& metadata = shown.metadata;
      terminal_.out << "# "
                    << Printable(absl::StrCat(metadata.name, ": ", absl::StrJoin(metadata.inputs, ", ", text), " -> ",
                                              absl::StrJoin(metadata.outputs, ", ", text)))
                    << "\n";
      if (!shown.remark.empty()) {
        terminal_.out << "# Give it what it takes; of such values it says: " << Printable(shown.remark) << "\n";
      }
      terminal_.out << "\n"
                    << shown.curl << "\n# In Python (pip install numpy 'tritonclient[http]'):\n\n"
                    << shown.python << "\n";
    }
    const std::string host = NameOf(options_.host);
    terminal_.out << absl::StrFormat("# HTTP at %s, gRPC at %s:%d; http://%s:%d/ shows what it does. Ctrl-C ends it.\n",
                                     HttpAddress(), host, ports_->grpc, host, ports_->metrics);
  }

  Json AsJson(const std::vector<Shown>& models) const {
    Json json = {{"host", NameOf(options_.host)},
                 {"http", ports_->http},
                 {"grpc", ports_->grpc},
                 {"metrics", ports_->metrics},
                 {"models", Json::array()}};
    for (const Shown& shown : models) {
      json["models"].push_back({{"model", shown.metadata.name},
                                {"inputs", TensorsJson(shown.metadata.inputs)},
                                {"outputs", TensorsJson(shown.metadata.outputs)},
                                {"curl", shown.curl},
                                {"python", shown.python},
                                {"remark", shown.remark}});
    }
    return json;
  }

  // A first Ctrl-C lets the server finish what it has; a second one ends it at once.
  absl::Status AwaitEnd() {
    bool asked = false;
    while (Listen(absl::Hours(1))) {
      Forward();
      if (!interrupt_.Take()) continue;
      server_->Signal(SIGTERM);
      if (!std::exchange(asked, true) && terminal_.show_progress) {
        terminal_.err << "\nswizzle-server finishes what it has; Ctrl-C again ends it at once\n" << std::flush;
      }
    }
    Forward();
    const int status = server_->Wait();
    if (asked && WIFEXITED(status)) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("swizzle-server ", EndText(status)));
  }

  const ServeOptions& options_;
  ClientOptions connection_;
  Terminal& terminal_;
  const TemporaryFolder folder_;
  Interrupt interrupt_;
  std::unique_ptr<ServerProcess> server_;
  std::optional<Ports> ports_;
  std::string said_;  // by the server, and not forwarded yet
};

}  // namespace

absl::Status RunServe(const ServeOptions& options, const ClientOptions& connection, Terminal& terminal) {
  if (connection.address != ClientOptions().address) {
    return UsageError("serve starts a server of its own; --host and --grpc-port say where it listens");
  }
  return Serving(options, connection, terminal).Run();
}

}  // namespace swizzle::client
