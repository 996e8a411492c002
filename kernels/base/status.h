// Errors as values: absl::Status with messages built from any mix of strings and numbers.
//
// Debian's absl::string_view is not std::string_view, so absl::StrCat and the absl::*Error functions do not take
// std::string_view. All error text of Swizzle is therefore built here, once, as std::string.
#ifndef SWIZZLE_KERNELS_BASE_STATUS_H_
#define SWIZZLE_KERNELS_BASE_STATUS_H_

#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/base/check.h"

namespace swizzle {

using absl::Status;
using absl::StatusCode;
using absl::StatusOr;

// Concatenates anything that streams: strings, views and numbers.
template <typename... Parts>
std::string Concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// A status with a message concatenated from `parts`. The message names the thing and the fix.
template <typename... Parts>
Status MakeError(StatusCode code, const Parts&... parts) {
  return Status(code, Concat(parts...));
}

// What the caller or a file got wrong.
template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return MakeError(StatusCode::kInvalidArgument, parts...);
}

// Well formed, but not something this build supports.
template <typename... Parts>
Status Unimplemented(const Parts&... parts) {
  return MakeError(StatusCode::kUnimplemented, parts...);
}

// The same code with `context` and ": " put before the message; OK stays OK.
inline Status Annotate(const Status& status, const std::string& context) {
  if (status.ok()) return status;
  return Status(status.code(), Concat(context, ": ", std::string(status.message())));
}

namespace internal {
inline const Status& AsStatus(const Status& status) { return status; }
template <typename T>
const Status& AsStatus(const StatusOr<T>& result) {
  return result.status();
}
}  // namespace internal

}  // namespace swizzle

#define SWIZZLE_CONCAT_INNER_(a, b) a##b
#define SWIZZLE_CONCAT_(a, b) SWIZZLE_CONCAT_INNER_(a, b)

// Returns the error of `expression` (a Status or StatusOr) from the enclosing function.
#define SWIZZLE_RETURN_IF_ERROR(expression)                                \
  do {                                                                     \
    if (const auto& swizzle_result = (expression); !swizzle_result.ok()) { \
      return ::swizzle::internal::AsStatus(swizzle_result);                \
    }                                                                      \
  } while (false)

// `SWIZZLE_ASSIGN_OR_RETURN(auto x, F());` assigns the value of a StatusOr, or returns its error.
#define SWIZZLE_ASSIGN_OR_RETURN(target, expression) \
  SWIZZLE_ASSIGN_OR_RETURN_(SWIZZLE_CONCAT_(swizzle_result_, __LINE__), target, expression)
#define SWIZZLE_ASSIGN_OR_RETURN_(result, target, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return result.status();                   \
  target = *std::move(result)

#endif  // SWIZZLE_KERNELS_BASE_STATUS_H_
