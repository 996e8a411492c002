// swizzle-pack: looks into, prunes, packs and checks models.
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "model_loader/pack/commands.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error of the write, which says so
  swizzle::pack::Terminal terminal{std::cout, std::cerr, isatty(STDERR_FILENO) == 1};
  return swizzle::pack::RunTool(argc, argv, terminal);
}
