// What the program swizzle-server does: serves the models of its command line over gRPC until it is told to end. The
// process is its own: it takes over signals and the log.
#ifndef SWIZZLE_SERVER_SERVER_MAIN_H_
#define SWIZZLE_SERVER_SERVER_MAIN_H_

namespace swizzle {

// The exit code.
int ServerMain(int argc, char** argv);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SERVER_MAIN_H_
