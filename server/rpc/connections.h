// The connections of a running gRPC server, for a drain that no call notices.
//
// gRPC's own Shutdown says GOAWAY only together with refusing all calls, and resets those that it then finds half
// received: their clients see CANCELLED, which nobody retries. So GOAWAY has to be said first, and Shutdown called when
// the connections are gone. The library can do that, but shows it in no header: its functions are looked up by name
// when they are needed, in the versions that this was tried with. In others, and where they aren't found, nothing here
// does anything, and GOAWAY waits for Shutdown. Thread-safe; may block for a moment.
#ifndef SWIZZLE_SERVER_RPC_CONNECTIONS_H_
#define SWIZZLE_SERVER_RPC_CONNECTIONS_H_

#include <grpcpp/grpcpp.h>

namespace swizzle {

// Says GOAWAY on every connection: calls that have come are answered, and for others their clients connect anew.
void SendGoaways(grpc::Server& server);

// False where it isn't known.
bool HasConnections(grpc::Server& server);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_CONNECTIONS_H_
