#include "server/python/element_types.h"

#include <nanobind/ndarray.h>

#include <array>

namespace swizzle::python {
namespace {

namespace nb = nanobind;

using Code = nb::dlpack::dtype_code;

struct ElementType {
  std::string_view datatype;
  std::string_view formats;  // of buffers
  const char* numpy;         // what numpy.dtype makes it of
  Code code;
  uint8_t bits;
};

constexpr std::array kTypes = {
    ElementType{"FP32", "f", "f", Code::Float, 32},  ElementType{"FP64", "d", "d", Code::Float, 64},
    ElementType{"FP16", "e", "e", Code::Float, 16},  ElementType{"BF16", "", "f", Code::Bfloat, 16},
    ElementType{"INT64", "lq", "l", Code::Int, 64},  ElementType{"INT32", "i", "i", Code::Int, 32},
    ElementType{"INT16", "h", "h", Code::Int, 16},   ElementType{"INT8", "b", "b", Code::Int, 8},
    ElementType{"UINT8", "B", "B", Code::UInt, 8},   ElementType{"UINT16", "H", "H", Code::UInt, 16},
    ElementType{"UINT32", "I", "I", Code::UInt, 32}, ElementType{"UINT64", "LQ", "L", Code::UInt, 64},
    ElementType{"BOOL", "?", "?", Code::Bool, 8},
};

}  // namespace

std::string_view DatatypeOfFormat(std::string_view format) {
  if (format.size() == 2 && (format[0] == '=' || format[0] == '<' || format[0] == '@')) format.remove_prefix(1);
  if (format.size() != 1) return {};
  for (const ElementType& type : kTypes) {
    if (type.formats.find(format[0]) != std::string_view::npos) return type.datatype;
  }
  return {};
}

std::string_view DatatypeOfDlpack(uint8_t code, uint8_t bits, uint16_t lanes) {
  for (const ElementType& type : kTypes) {
    if (static_cast<uint8_t>(type.code) == code && type.bits == bits && lanes == 1) return type.datatype;
  }
  return {};
}

nb::handle NumpyType(std::string_view datatype) {
  static std::array<PyObject*, kTypes.size()> made = {};  // kept for good
  static PyObject* objects = nullptr;
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].datatype != datatype) continue;
    if (made[i] == nullptr) made[i] = nb::module_::import_("numpy").attr("dtype")(kTypes[i].numpy).release().ptr();
    return made[i];
  }
  if (objects == nullptr) objects = nb::module_::import_("numpy").attr("dtype")("O").release().ptr();
  return objects;
}

}  // namespace swizzle::python
