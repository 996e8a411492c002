// GoogleTest matchers for Status and StatusOr.
#ifndef SWIZZLE_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define SWIZZLE_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <string>

#include "gmock/gmock.h"
#include "kernels/base/status.h"

namespace swizzle::testing {

inline constexpr StatusCode kInvalid = StatusCode::kInvalidArgument, kUnsupported = StatusCode::kUnimplemented;

MATCHER(IsOk, "") {
  if (arg.ok()) return true;
  *result_listener << internal::AsStatus(arg).ToString();
  return false;
}

// An error of this code whose message contains `text`.
MATCHER_P2(IsError, code, text, Concat(absl::StatusCodeToString(code), " with '", text, "'")) {
  const Status& status = internal::AsStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code && std::string(status.message()).find(text) != std::string::npos;
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_STATUS_MATCHERS_H_
