// The commands of swizzle-pack, called by their flags, which are checked in one place.
#include "model_loader/pack/commands.h"

#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model_loader/pack/options.h"
#include "server/engine/engine.h"
#include "server/telemetry/containment.h"

namespace swizzle::engine {
namespace {

StatusOr<std::string> Execute(const std::vector<std::string>& arguments, const Progress& progress) {
  std::vector<const char*> argv = {"swizzle-pack"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  const pack::CommandLine line = pack::ParseCommandLine(static_cast<int>(argv.size()), argv.data());
  if (!line.command) return InvalidArgument(line.reason);
  std::ostringstream out, err;
  pack::Terminal terminal{.out = out, .err = err, .hear = progress};
  SWIZZLE_RETURN_IF_ERROR(
      std::visit([&](const auto& command) { return pack::Execute(command, terminal); }, *line.command));
  return std::move(out).str();
}

// What is not said is left to the command.
void AddPath(const char* flag, const std::filesystem::path& path, std::vector<std::string>& arguments) {
  if (!path.empty()) arguments.push_back(Concat(flag, "=", path.string()));
}

void AddSkipped(const std::vector<std::string>& patterns, std::vector<std::string>& arguments) {
  for (const std::string& pattern : patterns) arguments.push_back("--skip=" + pattern);
}

}  // namespace

StatusOr<std::string> Prune(const PruneOptions& options) {
  return Contain("prune the model", [&] {
    const PruneOptions usual;
    std::vector<std::string> arguments = {"prune", Concat("--out=", options.output.string()),
                                          Concat("--sparsity=", options.sparsity), "--method=" + options.method};
    // The command refuses what a method has no use for.
    if (options.pattern != usual.pattern) arguments.push_back("--pattern=" + options.pattern);
    if (options.vector_rows != usual.vector_rows) arguments.push_back(Concat("--vector=", options.vector_rows));
    AddPath("--scores", options.scores, arguments);
    AddPath("--calibration", options.calibration, arguments);
    AddSkipped(options.skip, arguments);
    arguments.insert(arguments.end(), {"--", options.model.string()});
    return Execute(arguments, options.progress);
  });
}

StatusOr<std::string> Quantize(const QuantizeOptions& options) {
  return Contain("quantise the model", [&] {
    std::vector<std::string> arguments = {"quantize", Concat("--out=", options.output.string()),
                                          "--observer=" + options.observer, Concat("--threads=", options.threads)};
    AddPath("--calibration", options.calibration, arguments);
    AddSkipped(options.skip, arguments);
    arguments.insert(arguments.end(), {"--", options.model.string()});
    return Execute(arguments, options.progress);
  });
}

StatusOr<std::string> Pack(const PackOptions& options) {
  return Contain("pack the model", [&] {
    std::vector<std::string> arguments = {"pack", "--format=" + options.format, Concat("--threads=", options.threads)};
    AddPath("--calibration", options.calibration, arguments);
    arguments.insert(arguments.end(), {"--", options.model.string(), options.output.string()});
    return Execute(arguments, options.progress);
  });
}

}  // namespace swizzle::engine
