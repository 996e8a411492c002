#include "client/cli/cli.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/connection.h"
#include "client/client.h"

namespace swizzle::client {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 done; 1 the server answered no; 2 the command line or a file that it names is wrong; 3 no server "
    "answered.";
constexpr int kMaxConcurrency = 1024;  // each request in flight has a thread

// CLI11's own checks print the largest double, in 309 digits, as the end of the range. Numbers are parsed after these.
std::string IsPositive(const std::string& number) {
  double value = 1;
  if (!absl::SimpleAtod(number, &value)) return "";
  if (!std::isfinite(value)) return absl::StrCat(number, " is not finite");
  return value > 0 ? "" : absl::StrCat(number, " is not more than 0");
}
std::string IsNotNegative(const std::string& number) {
  double value = 0;
  if (!absl::SimpleAtod(number, &value)) return "";
  if (!std::isfinite(value)) return absl::StrCat(number, " is not finite");
  return value >= 0 ? "" : absl::StrCat(number, " is less than 0");
}

using Command = std::function<absl::Status(Client&, Terminal&)>;

// The flags of all commands, and what was asked for once they are parsed.
class CommandLine {
 public:
  CommandLine()
      : app_("Talks to a Swizzle inference server, or to any server of the Open Inference Protocol.", "swizzle") {
    app_.footer(kFooter);
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.get_formatter()->column_width(34);
    AddConnection();
    app_.add_option("-o,--output", output_, "How to print: text or json")
        ->type_name("FORMAT")
        ->capture_default_str()
        ->check(CLI::IsMember({"text", "json"}).description(""));
    AddHealth();
    AddMetadata();
    AddControl();
    AddInfer();
    AddBench();
    AddClassify();
  }

  CLI::App& app() { return app_; }
  const Command& command() const { return command_; }
  bool json() const { return output_ == "json"; }
  const ConnectionFlags& connection() const { return connection_; }

 private:
  void AddConnection() {
    app_.add_option("--address", connection_.address, "Where the server listens")
        ->type_name("HOST:PORT")
        ->capture_default_str();
    app_.add_option("--timeout", connection_.timeout_s, "Seconds that a call may take")
        ->type_name("SECONDS")
        ->capture_default_str()
        ->check(IsPositive);
    app_.add_flag("--tls", connection_.tls, "Connect over TLS, to a server that the system's authorities know");
    const auto add_file = [&](const char* flag, std::string& file, const char* description) {
      return app_.add_option(flag, file, description)->type_name("FILE");
    };
    add_file("--tls-ca", connection_.tls_ca, "Connect over TLS, to a server that these authorities know; PEM");
    auto* certificate = add_file("--tls-cert", connection_.tls_certificate, "The certificate to show the server; PEM");
    auto* key = add_file("--tls-key", connection_.tls_key, "Its private key; PEM");
    certificate->needs(key);
    key->needs(certificate);
    add_file("--token-file", connection_.token_file, "Send the bearer token that this file holds");
  }

  void AddHealth() {
    CLI::App* command = app_.add_subcommand("health", "Is the server, or a model, ready? Exit code 0 says yes");
    AddModel(command, health_.model, "A model; without it, the server");
    command->add_option("--wait", health_wait_s_, "Seconds to wait until it is")
        ->type_name("SECONDS")
        ->check(IsNotNegative);
    command->callback([this] {
      health_.wait = absl::Seconds(health_wait_s_);
      command_ = [this](Client& client, Terminal& terminal) { return RunHealth(client, health_, terminal); };
    });
  }

  void AddMetadata() {
    CLI::App* command = app_.add_subcommand("metadata", "Inputs, outputs, sparsity and kernels of a model");
    AddModel(command, metadata_.model, "A model; without it, the server");
    command->callback([this] {
      command_ = [this](Client& client, Terminal& terminal) { return RunMetadata(client, metadata_, terminal); };
    });
  }

  void AddControl() {
    CLI::App* models = app_.add_subcommand("models", "The models of the server, with their versions and states");
    models->callback([this] { command_ = RunModels; });
    CLI::App* load = app_.add_subcommand(
        "load", "Loads a model, or loads it again, where the server takes orders (its --control-address)");
    AddModel(load, load_.model, "The model")->required();
    load->add_option("--wait", load_wait_s_, "Seconds to wait until it serves")
        ->type_name("SECONDS")
        ->capture_default_str()
        ->check(IsPositive);
    load->callback([this] {
      load_.wait = absl::Seconds(load_wait_s_);
      command_ = [this](Client& client, Terminal& terminal) { return RunLoad(client, load_, terminal); };
    });
    CLI::App* unload = app_.add_subcommand("unload", "Unloads a model there; requests that it has are finished");
    AddModel(unload, unload_.model, "The model")->required();
    unload->callback([this] {
      command_ = [this](Client& client, Terminal& terminal) { return RunUnload(client, unload_, terminal); };
    });
  }

  void AddInfer() {
    CLI::App* command = app_.add_subcommand("infer", "Sends one request and prints the outputs");
    AddModel(command, infer_.model, "The model")->required();
    AddInputs(command, infer_.inputs, "An input and its array; once for each input")->required();
    command->add_option("--output-dir", infer_.output_directory, "Save each output there as NAME.npy, too")
        ->type_name("DIR");
    command->add_option("--top", infer_.top, "Print the N best of each row instead")->type_name("N")->check(IsPositive);
    command->callback([this] {
      command_ = [this](Client& client, Terminal& terminal) { return RunInfer(client, infer_, terminal); };
    });
  }

  void AddBench() {
    CLI::App* command = app_.add_subcommand("bench", "Measures rate and latency with N requests always in flight");
    AddModel(command, bench_.model, "The model")->required();
    AddConcurrency(command, bench_.concurrency);
    auto* requests = command->add_option("--requests", bench_.requests, "How many to send; 1000 without --duration")
                         ->type_name("N")
                         ->check(IsPositive);
    command->add_option("--duration", bench_.duration_s, "Or for how many seconds")
        ->type_name("SECONDS")
        ->check(IsPositive)
        ->excludes(requests);
    AddWarmup(command, bench_.warmup);
    auto* batch = AddBatch(command, bench_.batch, "Rows of a request");
    AddInputs(command, bench_.inputs, "An input and its array, once for each input; drawn at random without it")
        ->excludes(batch);
    command->callback([this] {
      command_ = [this](Client& client, Terminal& terminal) { return RunBench(client, bench_, terminal); };
    });
  }

  void AddClassify() {
    CLI::App* command =
        app_.add_subcommand("classify", "Sends a file of images to a classifier and counts right answers");
    AddModel(command, classify_.model, "The model: one input, first output one row of FP32 per image")->required();
    const auto add_file = [&](const char* flag, std::string& file, const char* description) {
      return command->add_option(flag, file, description)->type_name("FILE.npy");
    };
    add_file("--images", classify_.images, "Images, one a row")->required();
    add_file("--labels", classify_.labels, "The class of each");
    add_file("--predictions", classify_.predictions, "Where to write the predicted classes");
    AddBatch(command, classify_.batch, "Images of a request");
    AddWarmup(command, classify_.warmup);
    AddConcurrency(command, classify_.concurrency);
    command->callback([this] {
      command_ = [this](Client& client, Terminal& terminal) { return RunClassify(client, classify_, terminal); };
    });
  }

  static CLI::Option* AddModel(CLI::App* command, std::string& model, const char* description) {
    return command->add_option("MODEL", model, description)->type_name("");
  }

  static CLI::Option* AddInputs(CLI::App* command, std::vector<std::string>& inputs, const char* description) {
    return command->add_option("--input", inputs, description)->type_name("NAME=FILE.npy")->allow_extra_args(false);
  }

  static void AddConcurrency(CLI::App* command, int& concurrency) {
    command->add_option("--concurrency", concurrency, absl::StrCat("Requests in flight, 1 to ", kMaxConcurrency))
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(1, kMaxConcurrency).description(""));
  }

  static CLI::Option* AddBatch(CLI::App* command, int64_t& batch, const char* description) {
    return command->add_option("--batch", batch, description)->type_name("N")->capture_default_str()->check(IsPositive);
  }

  static void AddWarmup(CLI::App* command, int64_t& warmup) {
    command->add_option("--warmup", warmup, "Requests sent first and not measured")
        ->type_name("N")
        ->capture_default_str();
  }

  CLI::App app_;
  ConnectionFlags connection_;
  std::string output_ = "text";
  HealthOptions health_;
  double health_wait_s_ = 0;
  MetadataOptions metadata_;
  LoadModelOptions load_;
  double load_wait_s_ = 600;
  UnloadModelOptions unload_;
  InferOptions infer_;
  BenchOptions bench_;
  ClassifyOptions classify_;
  Command command_;
};

// Errors are one line, whatever the server's message holds.
std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int ReportParseResult(const CLI::App& app, const CLI::ParseError& result, std::ostream& out, std::ostream& err) {
  if (result.get_exit_code() == 0) return app.exit(result, out, err);  // --help
  err << "swizzle: " << OneLine(result.what()) << "; see --help\n";
  return kExitUsage;
}

}  // namespace

int RunCli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, bool err_is_terminal) {
  CommandLine line;
  try {
    line.app().parse(argc, argv);
  } catch (const CLI::ParseError& result) {
    return ReportParseResult(line.app(), result, out, err);
  }
  Terminal terminal{out, err, err_is_terminal, line.json()};
  const absl::StatusOr<ClientOptions> connection = ReadConnection(line.connection());
  absl::Status status = connection.status();
  if (status.ok()) status = line.command()(*NewClient(*connection), terminal);
  if (!status.ok()) err << "swizzle: " << OneLine(std::string(status.message())) << '\n';
  return ExitCodeOf(status);
}

}  // namespace swizzle::client
