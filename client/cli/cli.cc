#include "client/cli/cli.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/cli/command.h"
#include "client/client.h"

namespace swizzle::client {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 done; 1 the server answered no; 2 the command line or a file that it names is wrong; 3 no server "
    "answered.";
constexpr int kMaxConcurrency = 1024;  // each request in flight has a thread

using Command = std::function<absl::Status(Client&, Terminal&)>;

// The flags of all commands, and what was asked for once they are parsed.
class CommandLine {
 public:
  CommandLine()
      : app_("Talks to a Swizzle inference server, or to any server of the Open Inference Protocol.", "swizzle") {
    app_.footer(kFooter);
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_option("--address", address_, "HOST:PORT of the server")->capture_default_str();
    app_.add_option("--timeout", timeout_s_, "seconds that a call may take")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app_.add_option("-o,--output", output_, "how to print")
        ->capture_default_str()
        ->check(CLI::IsMember({"text", "json"}));
    AddHealth();
    AddMetadata();
    AddInfer();
    AddBench();
    AddClassify();
  }

  CLI::App& app() { return app_; }
  const Command& command() const { return command_; }
  bool json() const { return output_ == "json"; }
  ClientOptions client_options() const { return {.address = address_, .timeout = absl::Seconds(timeout_s_)}; }

 private:
  void AddHealth() {
    CLI::App* command = app_.add_subcommand("health", "Is the server, or a model, ready? Exit code 0 says yes");
    command->add_option("model", health_.model, "a model; without it, the server");
    command->add_option("--wait", health_wait_s_, "seconds to wait until it is")->check(CLI::NonNegativeNumber);
    command->callback([this] {
      health_.wait = absl::Seconds(health_wait_s_);
      command_ = [this](Client& client, Terminal& terminal) { return RunHealth(client, health_, terminal); };
    });
  }

  void AddMetadata() {
    CLI::App* command = app_.add_subcommand("metadata", "Inputs, outputs, sparsity and kernels of a model");
    command->add_option("model", metadata_.model, "a model; without it, the server");
    command->callback([this] {
      command_ = [this](Client& client, Terminal& terminal) { return RunMetadata(client, metadata_, terminal); };
    });
  }

  void AddInfer() {
    CLI::App* command = app_.add_subcommand("infer", "Sends one request and prints the outputs");
    command->add_option("model", infer_.model, "the model")->required();
    AddInputs(command, infer_.inputs, "an input and its array; once per input")->required();
    command->add_option("--output-dir", infer_.output_directory, "also save each output there as NAME.npy");
    command->add_option("--top", infer_.top, "print the K best of each row instead")->check(CLI::NonNegativeNumber);
    command->callback([this] {
      command_ = [this](Client& client, Terminal& terminal) { return RunInfer(client, infer_, terminal); };
    });
  }

  void AddBench() {
    CLI::App* command = app_.add_subcommand("bench", "Measures rate and latency with N requests always in flight");
    command->add_option("model", bench_.model, "the model")->required();
    AddConcurrency(command, bench_.concurrency);
    auto* requests = command->add_option("--requests", bench_.requests, "how many to send; by default 1000");
    command->add_option("--duration", bench_.duration_s, "or for how many seconds")
        ->check(CLI::PositiveNumber)
        ->excludes(requests);
    command->add_option("--warmup", bench_.warmup, "requests sent first and not measured")->capture_default_str();
    auto* batch = command->add_option("--batch", bench_.batch, "rows per request")
                      ->capture_default_str()
                      ->check(CLI::PositiveNumber);
    AddInputs(command, bench_.inputs, "an input and its array, once per input; by default drawn at random")
        ->excludes(batch);
    requests->check(CLI::PositiveNumber);
    command->callback([this] {
      command_ = [this](Client& client, Terminal& terminal) { return RunBench(client, bench_, terminal); };
    });
  }

  void AddClassify() {
    CLI::App* command =
        app_.add_subcommand("classify", "Sends a file of images to a classifier and counts right answers");
    command->add_option("model", classify_.model, "the model: one input, first output one row of FP32 per image")
        ->required();
    command->add_option("--images", classify_.images, "FILE.npy, one image per row")->required();
    command->add_option("--labels", classify_.labels, "FILE.npy, the class of each");
    command->add_option("--predictions", classify_.predictions, "FILE.npy to write the predicted classes to");
    command->add_option("--batch", classify_.batch, "images per request")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    command->add_option("--warmup", classify_.warmup, "requests sent first and not measured")->capture_default_str();
    AddConcurrency(command, classify_.concurrency);
    command->callback([this] {
      command_ = [this](Client& client, Terminal& terminal) { return RunClassify(client, classify_, terminal); };
    });
  }

  static CLI::Option* AddInputs(CLI::App* command, std::vector<std::string>& inputs, const char* description) {
    return command->add_option("--input", inputs, description)->type_name("NAME=FILE.npy")->allow_extra_args(false);
  }

  static void AddConcurrency(CLI::App* command, int& concurrency) {
    command->add_option("--concurrency", concurrency, "requests in flight")
        ->capture_default_str()
        ->check(CLI::Range(1, kMaxConcurrency));
  }

  CLI::App app_;
  std::string address_ = ClientOptions().address;
  double timeout_s_ = absl::ToDoubleSeconds(ClientOptions().timeout);
  std::string output_ = "text";
  HealthOptions health_;
  double health_wait_s_ = 0;
  MetadataOptions metadata_;
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
  const std::unique_ptr<Client> client = NewClient(line.client_options());
  const absl::Status status = line.command()(*client, terminal);
  if (!status.ok()) err << "swizzle: " << OneLine(std::string(status.message())) << '\n';
  return ExitCodeOf(status);
}

}  // namespace swizzle::client
