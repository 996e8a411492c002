// The Open Inference Protocol's datatypes, and how Python spells them.
#ifndef SWIZZLE_SERVER_PYTHON_ELEMENT_TYPES_H_
#define SWIZZLE_SERVER_PYTHON_ELEMENT_TYPES_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string_view>

namespace swizzle::python {

// Of the format of a buffer, as PEP 3118 has it: "f", "l", "=f"; empty where the engine has no such elements, or they
// are not this machine's.
std::string_view DatatypeOfFormat(std::string_view format);

// Of an element type of DLPack; empty where the engine has none.
std::string_view DatatypeOfDlpack(uint8_t code, uint8_t bits, uint16_t lanes);

// numpy.dtype of a datatype: FP32 for BF16, which numpy lacks, and objects for BYTES. With the interpreter's lock.
nanobind::handle NumpyType(std::string_view datatype);

}  // namespace swizzle::python

#endif  // SWIZZLE_SERVER_PYTHON_ELEMENT_TYPES_H_
