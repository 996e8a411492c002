#include <unistd.h>

#include <iostream>

#include "client/cli/cli.h"

int main(int argc, char** argv) {
  const swizzle::client::Watched watched{isatty(STDOUT_FILENO) == 1, isatty(STDERR_FILENO) == 1};
  return swizzle::client::RunCli(argc, argv, std::cout, std::cerr, watched);
}
