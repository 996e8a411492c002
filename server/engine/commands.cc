// The commands of swizzle-pack, called by their flags, which are checked in one place.
#include "model_loader/pack/commands.h"

#include <cctype>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model_loader/pack/options.h"
#include "server/engine/engine.h"
#include "server/telemetry/containment.h"

namespace swizzle::engine {
namespace {

struct OptionRow {
  std::string_view flag, option;
};
constexpr OptionRow kOptions[] = {
    {"--calibration", "calibration"}, {"--format", "format"},     {"--method", "method"},
    {"--observer", "observer"},       {"--out", "output"},        {"--pattern", "pattern"},
    {"--scores", "scores"},           {"--skip", "skip"},         {"--sparsity", "sparsity"},
    {"--threads", "threads"},         {"--vector", "vector_rows"}};

bool IsOfWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '/'; }

// The option whose flag is at this place of the text.
const OptionRow* FlagAt(std::string_view text, size_t place) {
  if (place > 0 && IsOfWord(text[place - 1])) return nullptr;
  const std::string_view rest = text.substr(place);
  for (const OptionRow& row : kOptions) {
    if (rest.starts_with(row.flag) && (rest.size() == row.flag.size() || !IsOfWord(rest[row.flag.size()]))) return &row;
  }
  return nullptr;
}

// What a command says of its flags, said of options: --vector is option 'vector_rows', --method=block is method=block.
std::string OfOptions(std::string_view text) {
  std::string said;
  if (constexpr std::string_view kOutput = "OUT: "; text.starts_with(kOutput)) {
    said = "option 'output': ";
    text.remove_prefix(kOutput.size());
  }
  for (size_t place = 0; place < text.size(); ++place) {
    const OptionRow* const row = FlagAt(text, place);
    if (row == nullptr) {
      said += text[place];
      continue;
    }
    place += row->flag.size() - 1;
    const bool has_value = place + 1 < text.size() && text[place + 1] == '=';
    said += has_value ? std::string(row->option) : Concat("option '", row->option, "'");
  }
  return said;
}

StatusOr<std::string> Run(const std::vector<std::string>& arguments, const Progress& progress) {
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

StatusOr<std::string> Execute(const std::vector<std::string>& arguments, const Progress& progress) {
  const StatusOr<std::string> said = Run(arguments, progress);
  if (!said.ok()) return MakeError(said.status().code(), OfOptions(std::string(said.status().message())));
  return OfOptions(*said);
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
