// Threads that gRPC starts by itself. Functions only.
#ifndef SWIZZLE_SERVER_RPC_GRPC_THREADS_H_
#define SWIZZLE_SERVER_RPC_GRPC_THREADS_H_

namespace swizzle {

// Has gRPC do in place what it would hand to its executor: the rest of what is to be done on a connection that several
// threads want at a time. In 1.51 the executor starts threads when it has much to do, takes one that the system refused
// for one that runs, and gives it work from then on, which hangs, with its connection, for ever. By a function that
// gRPC shows in no header, as GOAWAY is said (connections.h): false, and nothing is changed, in versions that this was
// not tried with. Once a process, before a server of gRPC's starts; later calls change nothing.
//
// Only where threads may run out: messages of many megabytes then wait for the next time that gRPC looks at its
// sockets, which may be 10 s later.
bool RunGrpcWorkInPlace();

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_GRPC_THREADS_H_
