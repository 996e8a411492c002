#include "model_loader/sequences/types.h"

namespace swizzle {

std::optional<DType> CastTarget(const Node& node) {
  const auto to = IntAttribute(node, "to", 0);
  switch (to.ok() ? *to : 0) {  // by the numbers that ONNX gives types
    case 1:
      return DType::kFloat32;
    case 2:
      return DType::kUint8;
    case 3:
      return DType::kInt8;
    case 6:
      return DType::kInt32;
    case 7:
      return DType::kInt64;
    case 9:
      return DType::kBool;
    case 11:
      return DType::kFloat64;
    default:
      return std::nullopt;
  }
}

}  // namespace swizzle
