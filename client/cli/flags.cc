#include "client/cli/flags.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace swizzle::client {
namespace {
constexpr int kMaxConcurrency = 1024;  // servers let a connection have about as many calls
}  // namespace

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

CLI::Option* AddModel(CLI::App* command, std::string& model, const char* description) {
  return command->add_option("MODEL", model, description)->type_name("");
}

CLI::Option* AddInputs(CLI::App* command, std::vector<std::string>& inputs, const char* description) {
  return command->add_option("--input", inputs, description)->type_name("NAME=FILE.npy")->allow_extra_args(false);
}

CLI::Option* AddSeconds(CLI::App* command, const char* flag, double& seconds, const char* description) {
  return command->add_option(flag, seconds, description)->type_name("SECONDS")->check(IsPositive);
}

void AddConcurrency(CLI::App* command, int& concurrency) {
  command->add_option("--concurrency", concurrency, absl::StrCat("Requests in flight, 1 to ", kMaxConcurrency))
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1, kMaxConcurrency).description(""));
}

CLI::Option* AddBatch(CLI::App* command, int64_t& batch, const char* description) {
  return command->add_option("-b,--batch", batch, description)
      ->type_name("N")
      ->capture_default_str()
      ->check(IsPositive);
}

void AddWarmup(CLI::App* command, int64_t& warmup) {
  command->add_option("--warmup", warmup, "Requests sent first and not measured")
      ->type_name("N")
      ->capture_default_str();
}

void AddQueries(CLI::App& app, Command& chosen) {
  const auto health =
      AddCommand(app, "health", "Is the server, or a model, ready? Exit code 0 says yes", chosen, RunHealth);
  AddModel(health.command, health.options->model, "A model; without it, the server");
  health.command->add_option("--wait", health.options->wait_s, "Seconds to wait until it is")
      ->type_name("SECONDS")
      ->check(IsNotNegative);
  const auto metadata =
      AddCommand(app, "metadata", "Inputs, outputs, sparsity and kernels of a model", chosen, RunMetadata);
  AddModel(metadata.command, metadata.options->model, "A model; without it, the server");
}

void AddControl(CLI::App& app, Command& chosen) {
  const auto load =
      AddCommand(app, "load", "Loads a model, or loads it again, where the server takes orders (its --control-address)",
                 chosen, RunLoad);
  AddModel(load.command, load.options->model, "The model")->required();
  AddSeconds(load.command, "--wait", load.options->wait_s, "Seconds to wait until it serves")->capture_default_str();
  const auto unload =
      AddCommand(app, "unload", "Unloads a model there; requests that it has are finished", chosen, RunUnload);
  AddModel(unload.command, unload.options->model, "The model")->required();
}

void AddInfer(CLI::App& app, Command& chosen) {
  const auto infer = AddCommand(app, "infer", "Sends one request and prints the outputs", chosen, RunInfer);
  AddModel(infer.command, infer.options->model, "The model")->required();
  AddInputs(infer.command, infer.options->inputs, "An input and its array; once for each input")->required();
  infer.command->add_option("--output-dir", infer.options->output_directory, "Save each output there as NAME.npy, too")
      ->type_name("DIR");
  infer.command->add_option("--top", infer.options->top, "Print the N best of each row instead")
      ->type_name("N")
      ->check(IsPositive);
}

}  // namespace swizzle::client
