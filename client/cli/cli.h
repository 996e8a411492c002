// The command line tool `swizzle`, without its main().
#ifndef SWIZZLE_CLIENT_CLI_CLI_H_
#define SWIZZLE_CLIENT_CLI_CLI_H_

#include <ostream>

namespace swizzle::client {

// Parses the command line, runs the command, and returns the process's exit code (ExitCode in command.h). Results go to
// `out`; errors, one line each, and progress to `err`. `err_is_terminal` says whether a person watches `err`.
int RunCli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, bool err_is_terminal);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_CLI_H_
