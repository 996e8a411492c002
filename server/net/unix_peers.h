// Names for the clients of Unix sockets.
//
// gRPC tells connections apart by the address of their other end, and all that is counted or ended by connection goes
// by that. Clients of a Unix socket have none: gRPC would call each of them "unix:". It asks the system, by
// getpeername. This library has a getpeername of its own, which a process gets in the system's place: what has no name
// gets one of its connection's number there, as if the client had bound an abstract socket. Functions only.
#ifndef SWIZZLE_SERVER_NET_UNIX_PEERS_H_
#define SWIZZLE_SERVER_NET_UNIX_PEERS_H_

#include <string>

namespace swizzle {

// What gRPC calls the other end of a Unix socket's connection; empty if the descriptor is no such connection.
std::string UnixPeerOf(int descriptor);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_NET_UNIX_PEERS_H_
