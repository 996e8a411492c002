// One connection of an HttpServer. Functions only.
#ifndef SWIZZLE_SERVER_HTTP_HTTP_CONNECTION_H_
#define SWIZZLE_SERVER_HTTP_HTTP_CONNECTION_H_

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "server/http/http_connections.h"

namespace swizzle {

// Becomes the owner of a connected socket, which does not block. `tls`: null where it is plain. Throws what Asio does.
// Called on the acceptor's thread.
std::shared_ptr<HttpConnection> NewHttpConnection(HttpConnections& all, int descriptor,
                                                  std::shared_ptr<boost::asio::ssl::context> tls);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_HTTP_HTTP_CONNECTION_H_
