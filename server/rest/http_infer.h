// An inference that came over HTTP: its message, which is made here rather than received, and what came beside it.
#ifndef SWIZZLE_SERVER_REST_HTTP_INFER_H_
#define SWIZZLE_SERVER_REST_HTTP_INFER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/http_call.h"
#include "server/rpc/infer_call.h"

namespace swizzle {

// JSON that a thread of HTTP's reads by itself, at about 100 MB/s, while its other connections wait.
inline constexpr size_t kMostInlineJson = 16 << 10;

// Made before the call that has a reference to it.
struct HttpInferMessage {
  grpc::ByteBuffer wire;  // a ModelInferRequest
};

// What derives from it gives up the call with its answer. Thread-safe, as InferCall is.
class HttpInfer : private HttpInferMessage, public InferCall {
 protected:
  HttpInfer(InferCalls& calls, std::shared_ptr<HttpCall> call, const grpc::ByteBuffer& bytes)
      : HttpInferMessage{bytes}, InferCall(calls, wire, {}), call_(std::move(call)) {}

  std::shared_ptr<HttpCall> call_;  // null once it is answered

 private:
  std::string Peer() const override { return call_->peer(); }
  std::string_view Header(std::string_view name) const override { return call_->head().Header(name); }
  std::string_view Shown() const override { return call_->head().OnlyHeader("authorization"); }
  Instant AskedDeadline() const override { return Instant::InfiniteFuture(); }
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_HTTP_INFER_H_
