// GOAWAY on the connections of a running gRPC server, for a drain that no call notices.
//
// gRPC's own Shutdown says GOAWAY only together with refusing all calls, and resets those that it then finds half
// received: their clients see CANCELLED, which nobody retries. The library can say it before, but shows that in no
// header: its function is looked up by name, in the versions that this was tried with. In others clients hear nothing
// at the start of a drain. Their new calls are answered UNAVAILABLE, and when the others are answered the connections
// end (ConnectionAcceptor::EndAll), which is UNAVAILABLE as well. Thread-safe; may block for a moment.
#ifndef SWIZZLE_SERVER_RPC_CONNECTIONS_H_
#define SWIZZLE_SERVER_RPC_CONNECTIONS_H_

#include <grpcpp/grpcpp.h>

namespace swizzle {

// Whether it can be said with the gRPC that this was built with and runs on.
bool CanSayGoaway();

// Says GOAWAY on every connection: calls that have come are answered, for others their clients connect anew, and
// connections without calls are closed. False, and nothing is said, where it can't be, or gRPC's threads take it up
// within no second.
bool SendGoaways(grpc::Server& server);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_CONNECTIONS_H_
