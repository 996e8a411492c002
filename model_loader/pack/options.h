// The command line of swizzle-pack.
#ifndef SWIZZLE_MODEL_LOADER_PACK_OPTIONS_H_
#define SWIZZLE_MODEL_LOADER_PACK_OPTIONS_H_

#include <optional>
#include <string>

#include "model_loader/pack/commands.h"

namespace swizzle::pack {

struct CommandLine {
  std::optional<Command> command;  // empty: print `text` and leave
  Outcome outcome = Outcome::kOk;  // kOk for --help and --version
  std::string text;                // one line where it is an error
  std::string reason = {};         // what that is, alone
};

// Pure. All values are in range, and endings of files to write are right, where a command comes back.
CommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_OPTIONS_H_
