// swizzle-server and swizzle-pack in one file, for wheels: both have the engine in them, and so a wheel holds it once
// less. It is the program by whose name it is called.
#include <string_view>

#include "model_loader/pack/tool_main.h"
#include "server/server_main.h"

int main(int argc, char** argv) {
  const bool is_pack = argc > 0 && std::string_view(argv[0]).ends_with("swizzle-pack");
  return is_pack ? swizzle::pack::ToolMain(argc, argv) : swizzle::ServerMain(argc, argv);
}
