#include "model_loader/semantics/element_types.h"

#include <optional>

#include "kernels/base/dtype_row.h"

namespace swizzle {

StatusOr<DType> ElementTypeOf(int64_t number) {
  const std::optional<DType> dtype = DTypeWhere(&DTypeRow::onnx, number);
  if (!dtype || *dtype == DType::kString) return Unimplemented("the ONNX data type ", number, " is not supported");
  return *dtype;
}

bool IsFloating(DType dtype) { return RowOf(dtype).kind == DTypeKind::kReal; }

DType ComputeType(DType dtype) {
  if (dtype == DType::kFloat64 || dtype == DType::kUint64) return dtype;
  return IsFloating(dtype) ? DType::kFloat32 : DType::kInt64;
}

int64_t Wrapped(int64_t whole, DType dtype) {
  int64_t wrapped = whole;
  VisitElementType(dtype, [&]<typename T>(T) { wrapped = static_cast<int64_t>(Widened(Narrowed<T>(whole))); });
  return wrapped;
}

}  // namespace swizzle
