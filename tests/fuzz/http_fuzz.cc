// What comes on a connection of HTTP, from anyone: heads, bodies whole and in chunks, one request behind the other, and
// what the paths of the protocol read from bodies without a token that allows it having been seen to be right.
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_connection.h"
#include "server/rest/order_json.h"
#include "server/rest/region_json.h"
#include "server/rest/rest_path.h"
#include "server/rest/settings_json.h"
#include "server/security/access_class.h"
#include "tests/fuzz/quiet_protobuf.h"

namespace swizzle {
namespace {

constexpr int64_t kMostBytes = 4096;

template <typename Request>
void Check(const StatusOr<Request>& read) {
  if (read.ok()) return;
  SWIZZLE_CHECK(read.status().code() == StatusCode::kInvalidArgument && read.status().message().size() < 1024);
}

void ReadBody(const RestPath& path, std::string_view text) {
  switch (path.action) {
    case RestAction::kLoad: {
      const auto order = ReadLoadOrder(text, path.model);
      Check(order);
      size_t bytes = 0;
      if (order.ok()) {
        for (const auto& [key, value] : order->parameters()) bytes += key.size() + value.bytes_param().size();
      }
      SWIZZLE_CHECK(bytes <= text.size());
      break;
    }
    case RestAction::kUnload:
      Check(ReadUnloadOrder(text, path.model));
      break;
    case RestAction::kLogSettings:
      Check(ReadLogSettings(text));
      break;
    case RestAction::kTraceSettings:
      Check(ReadTraceSettings(text, path.model));
      break;
    case RestAction::kRegisterSystem:
      Check(ReadSystemRegion(text, path.region));
      break;
    case RestAction::kRegisterCuda:
      Check(ReadCudaRegion(text, path.region));
      break;
    default:
      break;
  }
}

class Paths final : public HttpService {
 public:
  HttpAdmission Admit(const HttpHead& head) override {
    const std::optional<RestPath> path = ParseRestPath(head.target);
    if (!path) return {.refusal = HttpAnswer{.status = 404}};
    SWIZZLE_CHECK(FindAccessRule(path->rule).has_value());
    SWIZZLE_CHECK(path->model.size() + path->version.size() + path->region.size() <= head.target.size());
    SWIZZLE_CHECK(head.Header("authorization").size() <= kMostHead);
    return {.most_body_bytes = kMostBytes};
  }
  void Take(std::shared_ptr<HttpCall> call) override {
    const auto body = call->TakeBody();
    SWIZZLE_CHECK(body->size <= static_cast<size_t>(kMostBytes));
    ReadBody(*ParseRestPath(call->head().target), body->text());
    call->Answer(HttpAnswer{.body = {"{}"}}, nullptr);
  }
  HttpAnswer Error(int status, const std::string& why) override {
    SWIZZLE_CHECK(status >= 400 && status < 600 && !why.empty());
    return {.status = status, .body = {why}};
  }

  static constexpr int64_t kMostHead = 1024;
};

void Serve(std::string_view bytes) {
  static Paths paths;
  static HttpConnections connections({.head_bytes = Paths::kMostHead, .body_bytes = 2 * kMostBytes}, paths);
  int ends[2];
  SWIZZLE_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  (void)send(ends[0], bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(ends[0], SHUT_WR);
  NewHttpConnection(connections, ends[1], nullptr)->Start();
  boost::asio::io_context& io = connections.loops.front().io;
  io.restart();
  io.run();
  SWIZZLE_CHECK(connections.All().empty() && connections.bodies.held() == 0);
  char answer[9];
  const ssize_t got = recv(ends[0], answer, sizeof(answer), 0);
  SWIZZLE_CHECK(got <= 0 || std::string_view(answer, static_cast<size_t>(got)) == "HTTP/1.1 ");
  close(ends[0]);
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  swizzle::Serve({reinterpret_cast<const char*>(data), size});
  return 0;
}
