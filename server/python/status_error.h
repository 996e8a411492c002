// Python's exceptions for what a Status says: ValueError, FileNotFoundError, NotImplementedError, MemoryError and so
// on, with the message as it is.
//
// Thread-safe, with the interpreter's lock.
#ifndef SWIZZLE_SERVER_PYTHON_STATUS_ERROR_H_
#define SWIZZLE_SERVER_PYTHON_STATUS_ERROR_H_

#include <nanobind/nanobind.h>

#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace swizzle::python {

// Throws; `status` is not OK.
[[noreturn]] void Raise(const absl::Status& status);
[[noreturn]] void Raise(PyObject* type, std::string_view message);

template <typename T>
T ValueOrRaise(absl::StatusOr<T> value) {
  if (!value.ok()) Raise(value.status());
  return *std::move(value);
}

// Text that may not be UTF-8 throughout.
nanobind::str Text(std::string_view text);

}  // namespace swizzle::python

#endif  // SWIZZLE_SERVER_PYTHON_STATUS_ERROR_H_
