#include "server/python/input_array.h"

#include <string>
#include <utility>

#include "server/python/element_types.h"
#include "server/python/status_error.h"

namespace swizzle::python {
namespace {

namespace nb = nanobind;

constexpr std::string_view kBFloat16 = "BF16", kBytes = "BYTES";

std::string_view Utf8(nb::handle text) {
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

// Whether elements of `found` are the input's as they lie there. BF16 is made of FP32, and strings of anything; other
// elements the engine refuses, by name.
bool AsTheyAre(std::string_view found, std::string_view expected) {
  if (found.empty() || expected == kBytes) return false;
  return expected != kBFloat16 || found == kBFloat16;
}

bool IsContiguous(const nb::ndarray<nb::ro>& array) {
  int64_t stride = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride) return false;
    stride *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

}  // namespace

InputArray::~InputArray() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

void InputArray::Read(nb::str name, const engine::TensorInfo* expected, nb::handle value) {
  name_ = Utf8(name);
  key_ = std::move(name);
  if (expected == nullptr) return;
  const bool is_text = PyBytes_Check(value.ptr()) || PyUnicode_Check(value.ptr());
  if (!is_text && (ReadBuffer(value, expected->datatype) || ReadDlpack(value, expected->datatype))) return;
  ReadConverted(*expected, value);
}

bool InputArray::ReadBuffer(nb::handle value, std::string_view expected) {
  if (!PyObject_CheckBuffer(value.ptr())) return false;
  if (PyObject_GetBuffer(value.ptr(), &buffer_, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();  // elements that buffers have no format for
    buffer_.obj = nullptr;
    return false;
  }
  const std::string_view found = DatatypeOfFormat(buffer_.format == nullptr ? "B" : buffer_.format);
  if (!AsTheyAre(found, expected) || PyBuffer_IsContiguous(&buffer_, 'C') == 0) {
    PyBuffer_Release(&buffer_);
    buffer_.obj = nullptr;
    return false;
  }
  datatype_ = found;
  shape_.assign(buffer_.shape, buffer_.shape + buffer_.ndim);
  data_ = {static_cast<const std::byte*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
  return true;
}

bool InputArray::ReadDlpack(nb::handle value, std::string_view expected) {
  if (!nb::hasattr(value, "__dlpack__") || !nb::hasattr(value, "__dlpack_device__")) return false;
  const nb::object device = value.attr("__dlpack_device__")();
  const int kind = nb::cast<int>(nb::object(device[0]));
  if (kind != nb::device::cpu::value && kind != nb::device::cuda_host::value) {
    Raise(PyExc_TypeError, "input '" + std::string(name_) +
                               "' does not lie in the host's memory: move it there first, in PyTorch by .cpu()");
  }
  nb::ndarray<nb::ro> array;
  try {
    if (!nb::try_cast(nb::object(value.attr("__dlpack__")()), array)) return false;
  } catch (const nb::python_error& error) {
    if (error.matches(PyExc_BufferError)) return false;  // what is only read, to some that export
    throw;
  }
  const nb::dlpack::dtype type = array.dtype();
  const std::string_view found = DatatypeOfDlpack(static_cast<uint8_t>(type.code), type.bits, type.lanes);
  if (!AsTheyAre(found, expected) || !IsContiguous(array)) return false;
  datatype_ = found;
  for (size_t i = 0; i < array.ndim(); ++i) shape_.push_back(static_cast<int64_t>(array.shape(i)));
  data_ = {static_cast<const std::byte*>(array.data()), array.nbytes()};
  dlpack_ = std::move(array);
  return true;
}

void InputArray::ReadConverted(const engine::TensorInfo& expected, nb::handle value) {
  const nb::object convert = nb::module_::import_("swizzle_engine.arrays").attr("to_elements");
  const auto made = nb::cast<nb::tuple>(convert(key_, expected.datatype.c_str(), value));
  made_datatype_ = made[0];
  datatype_ = Utf8(made_datatype_);
  for (const nb::handle size : nb::cast<nb::tuple>(made[1])) shape_.push_back(nb::cast<int64_t>(size));
  made_ = made[2];
  if (PyObject_GetBuffer(made_.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  data_ = {static_cast<const std::byte*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
  copied_ = true;
}

}  // namespace swizzle::python
