// Answers of HTTP to what went wrong, and the status of each code: those that Triton's clients expect. Functions only.
#ifndef SWIZZLE_SERVER_REST_REST_ANSWER_H_
#define SWIZZLE_SERVER_REST_REST_ANSWER_H_

#include <string>

#include "kernels/base/status.h"
#include "proto/message_json.h"
#include "server/http/http_call.h"

namespace swizzle {

inline int HttpStatusOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kAlreadyExists:
      return 400;
    case StatusCode::kUnauthenticated:
      return 401;
    case StatusCode::kPermissionDenied:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kCancelled:
      return 499;
    case StatusCode::kUnimplemented:
      return 501;
    case StatusCode::kUnavailable:
    case StatusCode::kResourceExhausted:  // what is too large is 413, and says so itself
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

inline HttpAnswer ErrorAnswer(int status, std::string_view why) {
  HttpAnswer answer = {.status = status, .body = {ErrorJson(why)}};
  if (status == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

inline HttpAnswer ErrorAnswer(const Status& status) {
  return ErrorAnswer(HttpStatusOf(status.code()), std::string(status.message()));
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REST_ANSWER_H_
