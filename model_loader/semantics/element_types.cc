#include "model_loader/semantics/element_types.h"

namespace swizzle {

StatusOr<DType> ElementTypeOf(int64_t number) {
  constexpr DType kTypes[] = {DType::kFloat32, DType::kUint8,  DType::kInt8,   DType::kUint16, DType::kInt16,
                              DType::kInt32,   DType::kInt64,  DType::kString, DType::kBool,   DType::kFloat16,
                              DType::kFloat64, DType::kUint32, DType::kUint64};
  constexpr int64_t kBFloat16 = 16;
  if (number == kBFloat16) return DType::kBFloat16;
  const bool listed = number >= 1 && number <= static_cast<int64_t>(std::size(kTypes));
  if (!listed || kTypes[number - 1] == DType::kString) {
    return Unimplemented("the ONNX data type ", number, " is not supported");
  }
  return kTypes[number - 1];
}

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

DType ComputeType(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
      return DType::kFloat32;
    case DType::kFloat64:
      return DType::kFloat64;
    case DType::kUint64:
      return DType::kUint64;
    default:
      return DType::kInt64;
  }
}

int64_t Wrapped(int64_t whole, DType dtype) {
  int64_t wrapped = whole;
  VisitElementType(dtype, [&]<typename T>(T) { wrapped = static_cast<int64_t>(Widened(Narrowed<T>(whole))); });
  return wrapped;
}

}  // namespace swizzle
