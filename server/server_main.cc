#include "server/server_main.h"

#include <cstdio>

#include "server/options.h"
#include "server/server.h"
#include "server/shutdown_signals.h"
#include "server/telemetry/logging.h"

namespace swizzle {
namespace {

int PrintKernels(const ServerOptions& options) {
  const auto devices = Devices::Open(options.device);
  if (!devices.ok()) {
    std::fprintf(stderr, "swizzle-server: %s\n", devices.status().ToString().c_str());
    return kCannotStart;
  }
  std::fputs(KernelListing(devices->main()).c_str(), stdout);
  return 0;
}

}  // namespace

int ServerMain(int argc, char** argv) {
  const CommandLine line = ParseCommandLine(argc, argv);
  if (line.exit_code) {
    std::fputs(line.text.c_str(), *line.exit_code == 0 ? stdout : stderr);
    return *line.exit_code;
  }
  if (line.options.list_kernels) return PrintKernels(line.options);
  InitLogging(line.options.log_format, line.options.log_level);
  return RunServer(line.options);
}

}  // namespace swizzle
