// How to call a model, in text that works when it is pasted: a command line with curl, and a program in Python.
#ifndef SWIZZLE_CLIENT_CLI_SNIPPET_H_
#define SWIZZLE_CLIENT_CLI_SNIPPET_H_

#include <string>
#include <vector>

#include "client/cli/connection.h"
#include "client/cli/input.h"
#include "client/client.h"

namespace swizzle::client {

struct Callee {
  std::string address;         // HOST:PORT, of HTTP
  ConnectionFlags connection;  // files of certificates and tokens; its address is not looked at
  std::string model;
  std::vector<InputPlan> inputs;
  std::vector<std::string> outputs;
};

// Small inputs stand in the request's JSON; large ones, and halves, which JSON has not, follow it as zeros. A mask's
// elements are ones, if it is not large.
std::string CurlCommand(const Callee& callee);

// By tritonclient.http. Inputs are drawn as DrawInputs does.
std::string PythonProgram(const Callee& callee);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_SNIPPET_H_
