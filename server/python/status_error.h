// Python's exceptions for what a Status says, with the message as it is:
//
//   INVALID_ARGUMENT, OUT_OF_RANGE  ValueError           NOT_FOUND               FileNotFoundError
//   UNIMPLEMENTED                   NotImplementedError  ALREADY_EXISTS          FileExistsError
//   FAILED_PRECONDITION             ModelError           PERMISSION_DENIED       PermissionError
//   RESOURCE_EXHAUSTED              MemoryError          UNAVAILABLE, DATA_LOSS  OSError
//   INTERNAL, and what is left      RuntimeError         DEADLINE_EXCEEDED       TimeoutError
//
// ModelError is a RuntimeError of this module's: the model as it is cannot be run, whatever it is given.
//
// Thread-safe, with the interpreter's lock.
#ifndef SWIZZLE_SERVER_PYTHON_STATUS_ERROR_H_
#define SWIZZLE_SERVER_PYTHON_STATUS_ERROR_H_

#include <nanobind/nanobind.h>

#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace swizzle::python {

// Adds ModelError. To be called before anything else of this.
void BindModelError(nanobind::module_& module);

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
