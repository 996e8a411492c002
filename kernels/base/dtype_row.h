// What is to be known of an element type, a row each: how large it is, what numbers it holds, and what the formats and
// protocols that have it call it, for every reader and writer of them. Plain values, in one table.
#ifndef SWIZZLE_KERNELS_BASE_DTYPE_ROW_H_
#define SWIZZLE_KERNELS_BASE_DTYPE_ROW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/base/dtype.h"

namespace swizzle {

enum class DTypeKind : uint8_t { kTruth, kUnsigned, kSigned, kReal, kText };

// Names are empty, and numbers 0, where there are none.
struct DTypeRow {
  std::string_view name;  // the Open Inference Protocol's; Triton's configurations have it behind TYPE_, but kText
  size_t bytes;           // of one element, if all have as many
  DTypeKind kind;
  int digits;                    // bits of the whole numbers that it holds, without their sign
  int onnx;                      // of onnx.TensorProto.DataType
  std::string_view safetensors;  // in the header of such a file
  std::string_view npy;          // NumPy's description of the type, in little-endian order
};

const DTypeRow& RowOf(DType dtype);

// The type whose row has this, which is not empty, there: DTypeWhere(&DTypeRow::npy, "<f4").
std::optional<DType> DTypeWhere(std::string_view DTypeRow::*column, std::string_view value);
std::optional<DType> DTypeWhere(int DTypeRow::*column, int64_t value);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_DTYPE_ROW_H_
