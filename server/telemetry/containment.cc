#include "server/telemetry/containment.h"

#include <exception>
#include <new>
#include <system_error>

#include "server/telemetry/log_event.h"

namespace swizzle {
namespace {

// Of the exception that is being handled.
Status Describe(const char* what) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return MakeError(StatusCode::kResourceExhausted, "there is not enough memory to ", what);
  } catch (const std::system_error& error) {
    Log(LogLevel::kError, "the system refused", {{"to", what}, {"error", error.what()}});
    return MakeError(StatusCode::kResourceExhausted, "the system has no thread, memory or file left to ", what);
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "unexpected exception", {{"to", what}, {"error", error.what()}});
  } catch (...) {
    Log(LogLevel::kError, "unexpected exception", {{"to", what}});
  }
  return MakeError(StatusCode::kInternal, "could not ", what);
}

}  // namespace

Status CaughtStatus(const char* what) noexcept {
  try {
    return Describe(what);
  } catch (...) {
    return Status(StatusCode::kResourceExhausted, "");  // with no message it needs no memory
  }
}

}  // namespace swizzle
