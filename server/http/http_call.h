// A request of HTTP as those see it who answer it: what it says, its body, and where its answer goes.
#ifndef SWIZZLE_SERVER_HTTP_HTTP_CALL_H_
#define SWIZZLE_SERVER_HTTP_HTTP_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/model/inflight_bytes.h"

namespace swizzle {

// Value type.
struct HttpHead {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case; in their order

  // The first of that name, which is in lower case; empty where there is none.
  std::string_view Header(std::string_view name) const;
  // The only one; empty where there is none, or several.
  std::string_view OnlyHeader(std::string_view name) const;
};

// A body, which counts among those that are on their way or held until it goes. Move-only.
struct HttpBody {
  std::unique_ptr<char[]> bytes;
  size_t size = 0;
  HeldBytes held;

  std::string_view text() const { return {bytes.get(), size}; }
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::vector<std::string> body = {};  // one after the other
};

// One request that has come whole. Whoever has it answers it once; what is dropped without an answer ends its
// connection, and so does a callback that throws. Thread-safe, but for OnLeft, which comes before others have it.
class HttpCall {
 public:
  virtual ~HttpCall() = default;

  virtual const HttpHead& head() const = 0;
  // Names the connection among all that there are and were.
  virtual std::string peer() const = 0;
  // Shared, so that parts of it may be used without a copy.
  virtual std::shared_ptr<const HttpBody> TakeBody() = 0;
  // `left` runs once, on one of the server's threads, if the client leaves before the answer.
  virtual void OnLeft(std::function<void()> left) = 0;
  // `sent` runs once, when the answer is sent or cannot be: perhaps before this returns.
  virtual void Answer(HttpAnswer answer, std::function<void()> sent) = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_HTTP_HTTP_CALL_H_
