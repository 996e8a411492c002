#include "kernels/base/tensor.h"

namespace swizzle {

std::string ShapeText(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += Concat(i == 0 ? "" : ",", shape[i]);
  return text + "]";
}

StatusOr<int64_t> ElementCount(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0) return InvalidArgument("shape ", ShapeText(shape), " has a negative dimension");
    if (__builtin_mul_overflow(count, dimension, &count)) {
      return InvalidArgument("shape ", ShapeText(shape), " has more elements than fit in 64 bits");
    }
  }
  return count;
}

}  // namespace swizzle
