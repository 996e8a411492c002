// swizzle-server: serves the models of a directory over gRPC.
#include "server/server_main.h"

int main(int argc, char** argv) { return swizzle::ServerMain(argc, argv); }
