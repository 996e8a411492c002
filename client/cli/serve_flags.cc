// Flags of serve.
#include <memory>

#include "client/cli/flags.h"

namespace swizzle::client {
namespace {

void AddPort(CLI::App* command, const char* flag, int& port, const char* description) {
  command->add_option(flag, port, description)->type_name("PORT")->check(CLI::Range(0, 65535).description(""));
}

}  // namespace

void AddServe(CLI::App& app, const ConnectionFlags& connection, const std::vector<std::string>& server_flags,
              Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "serve", "Serves models until Ctrl-C, and prints how to call them; flags of swizzle-server may follow behind --");
  const auto options = std::make_shared<ServeOptions>();
  command
      ->add_option("FILE", options->models,
                   "ONNX files, packed models, or folders of a checkpoint or a model; ,name=NAME behind one names it")
      ->type_name("")
      ->required();
  command->add_option("--host", options->host, "Where it listens; 0.0.0.0: for other machines, too")
      ->type_name("HOST")
      ->capture_default_str();
  AddPort(command, "--http-port", options->http_port, "For HTTP; 0 takes a free one; without it 8000, if that is free");
  AddPort(command, "--grpc-port", options->grpc_port, "For gRPC; likewise, 8001");
  AddPort(command, "--metrics-port", options->metrics_port, "For the status page, metrics and probes; likewise, 8002");
  command->callback([options, &connection, &server_flags, &chosen] {
    chosen = [options, &connection, &server_flags](const ClientOptions& base, Terminal& terminal) {
      options->connection = connection;
      options->server_flags = server_flags;
      return RunServe(*options, base, terminal);
    };
  });
}

}  // namespace swizzle::client
