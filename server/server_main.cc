// swizzle-server: serves the models of a directory over gRPC.
#include <cstdio>

#include "server/options.h"
#include "server/server.h"
#include "server/shutdown_signals.h"
#include "server/telemetry/logging.h"

namespace {

int PrintKernels(const swizzle::ServerOptions& options) {
  const auto devices = swizzle::Devices::Open(options.device);
  if (!devices.ok()) {
    std::fprintf(stderr, "swizzle-server: %s\n", devices.status().ToString().c_str());
    return swizzle::kCannotStart;
  }
  std::fputs(swizzle::KernelListing(devices->main()).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const swizzle::CommandLine line = swizzle::ParseCommandLine(argc, argv);
  if (line.exit_code) {
    std::fputs(line.text.c_str(), *line.exit_code == 0 ? stdout : stderr);
    return *line.exit_code;
  }
  if (line.options.list_kernels) return PrintKernels(line.options);
  swizzle::InitLogging(line.options.log_format, line.options.log_level);
  return swizzle::RunServer(line.options);
}
