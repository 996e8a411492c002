#include <unistd.h>

#include <iostream>

#include "client/cli/cli.h"

int main(int argc, char** argv) {
  return swizzle::client::RunCli(argc, argv, std::cout, std::cerr, isatty(STDERR_FILENO) == 1);
}
