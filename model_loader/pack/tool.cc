#include "model_loader/pack/commands.h"
#include "model_loader/pack/options.h"

namespace swizzle::pack {

int RunTool(int argc, const char* const* argv, Terminal& terminal) {
  const CommandLine line = ParseCommandLine(argc, argv);
  if (!line.command) {
    (line.outcome == Outcome::kOk ? terminal.out : terminal.err) << line.text << std::flush;
    return static_cast<int>(line.outcome);
  }
  StatusOr<Outcome> outcome =
      std::visit([&](const auto& command) { return Execute(command, terminal); }, *line.command);
  if (outcome.ok() && !terminal.out.flush()) outcome = MakeError(StatusCode::kUnavailable, "cannot write the output");
  if (outcome.ok()) return static_cast<int>(*outcome);
  terminal.err << "swizzle-pack: " << outcome.status().message() << std::endl;
  return static_cast<int>(Outcome::kBadInput);
}

}  // namespace swizzle::pack
