// The flags of the commands of `swizzle`. Each function adds some commands to the tool; once the command line is
// parsed, `chosen` is the one that it names, with what it was given.
#ifndef SWIZZLE_CLIENT_CLI_FLAGS_H_
#define SWIZZLE_CLIENT_CLI_FLAGS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/cli/command.h"

namespace swizzle::client {

// A command makes its own client of these, for some need none, or another than the flags say.
using Command = std::function<absl::Status(const ClientOptions& connection, Terminal& terminal)>;

// Reads the flags of the connection, and those of the server, when the command runs.
void AddServe(CLI::App& app, const ConnectionFlags& connection, const std::vector<std::string>& server_flags,
              Command& chosen);
void AddQueries(CLI::App& app, Command& chosen);      // health, metadata
void AddObservation(CLI::App& app, Command& chosen);  // models, stats, watch, config
void AddControl(CLI::App& app, Command& chosen);      // load, unload
void AddInfer(CLI::App& app, Command& chosen);
void AddBench(CLI::App& app, Command& chosen);
void AddClassify(CLI::App& app, Command& chosen);

// A command of the tool that runs `run(client, options, terminal)` with the options that it returns, to be filled in by
// flags, which live as long as the command.
template <typename Options>
struct Added {
  CLI::App* command;
  std::shared_ptr<Options> options;
};

template <typename Options>
Added<Options> AddCommand(CLI::App& app, const char* name, const char* description, Command& chosen,
                          absl::Status (*run)(Client&, const Options&, Terminal&)) {
  const Added<Options> added{app.add_subcommand(name, description), std::make_shared<Options>()};
  added.command->callback([options = added.options, run, &chosen] {
    chosen = [options, run](const ClientOptions& connection, Terminal& terminal) {
      return run(*NewClient(connection), *options, terminal);
    };
  });
  return added;
}

// Checks of numbers: CLI11's own print the largest double, in 309 digits, as the end of the range. Numbers are parsed
// after these.
std::string IsPositive(const std::string& number);
std::string IsNotNegative(const std::string& number);

CLI::Option* AddModel(CLI::App* command, std::string& model, const char* description);
CLI::Option* AddInputs(CLI::App* command, std::vector<std::string>& inputs, const char* description);
// Seconds, more than 0.
CLI::Option* AddSeconds(CLI::App* command, const char* flag, double& seconds, const char* description);
void AddConcurrency(CLI::App* command, int& concurrency);
CLI::Option* AddBatch(CLI::App* command, int64_t& batch, const char* description);
void AddWarmup(CLI::App* command, int64_t& warmup);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_FLAGS_H_
