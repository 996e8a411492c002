#include "server/python/status_error.h"

#include <string>

namespace swizzle::python {
namespace {

PyObject* model_error = nullptr;  // kept for good

PyObject* TypeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return PyExc_ValueError;
    case absl::StatusCode::kNotFound:
      return PyExc_FileNotFoundError;
    case absl::StatusCode::kAlreadyExists:
      return PyExc_FileExistsError;
    case absl::StatusCode::kPermissionDenied:
      return PyExc_PermissionError;
    case absl::StatusCode::kUnimplemented:
      return PyExc_NotImplementedError;
    case absl::StatusCode::kResourceExhausted:
      return PyExc_MemoryError;
    case absl::StatusCode::kFailedPrecondition:
      return model_error;
    case absl::StatusCode::kDeadlineExceeded:
      return PyExc_TimeoutError;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return PyExc_OSError;
    default:
      return PyExc_RuntimeError;
  }
}

}  // namespace

void BindModelError(nanobind::module_& module) {
  model_error = PyErr_NewExceptionWithDoc(
      "swizzle_engine.ModelError",
      "No input can make this model run: it is at fault, or needs what the engine lacks, or has to be opened again.",
      PyExc_RuntimeError, nullptr);
  if (model_error == nullptr) throw nanobind::python_error();
  module.attr("ModelError") = nanobind::handle(model_error);
}

void Raise(PyObject* type, std::string_view message) {
  PyErr_SetObject(type, Text(message).ptr());
  throw nanobind::python_error();
}

void Raise(const absl::Status& status) {
  const std::string message(status.message());
  Raise(TypeOf(status.code()), message);
}

nanobind::str Text(std::string_view text) {
  PyObject* const decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (decoded == nullptr) throw nanobind::python_error();
  return nanobind::steal<nanobind::str>(decoded);
}

}  // namespace swizzle::python
