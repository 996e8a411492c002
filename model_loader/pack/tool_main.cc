#include "model_loader/pack/tool_main.h"

#include <unistd.h>

#include <csignal>
#include <iostream>

#include "model_loader/pack/commands.h"

namespace swizzle::pack {

int ToolMain(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error of the write, which says so
  Terminal terminal{.out = std::cout, .err = std::cerr, .show_progress = isatty(STDERR_FILENO) == 1, .in = &std::cin};
  return RunTool(argc, argv, terminal);
}

}  // namespace swizzle::pack
