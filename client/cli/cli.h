// The command line tool `swizzle`, without its main().
#ifndef SWIZZLE_CLIENT_CLI_CLI_H_
#define SWIZZLE_CLIENT_CLI_CLI_H_

#include <ostream>

namespace swizzle::client {

// Which of the two streams are terminals that a person watches.
struct Watched {
  bool out = false;
  bool err = false;
};

// Parses the command line, runs the command, and returns the process's exit code (ExitCode in command.h). Results go to
// `out`; errors, one line each, and progress to `err`.
int RunCli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, Watched watched);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_CLI_H_
