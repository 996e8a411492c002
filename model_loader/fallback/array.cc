#include "model_loader/fallback/array.h"

#include <algorithm>
#include <utility>

namespace swizzle::fallback {
int64_t Array::elements() const {
  int64_t count = 1;
  for (const int64_t dimension : shape) count *= dimension;
  return count;
}

Array Array::WithShape(Shape other) const {
  Array array{dtype, std::move(other), data};
  SWIZZLE_CHECK(array.elements() == elements());
  return array;
}

StatusOr<Array> Memory::Allocate(DType dtype, Shape shape) {
  if (shape.size() > kMaxRank)
    return InvalidArgument("a value has ", shape.size(), " dimensions; the limit is ", kMaxRank);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape));
  Shape counted = shape;
  for (int64_t& dimension : counted) dimension = std::max<int64_t>(dimension, 1);
  const StatusOr<int64_t> bound = ElementCount(counted);
  const auto element_bytes = static_cast<int64_t>(ElementBytes(dtype));
  if (element_bytes == 0) return Unimplemented("strings are not supported");
  if (!bound.ok() || *bound > limits_.max_array_bytes / element_bytes) {
    return MakeError(StatusCode::kResourceExhausted, "a value of shape ", ShapeText(shape), " and type ",
                     DTypeName(dtype), " is larger than the limit of ", limits_.max_array_bytes, " bytes");
  }
  const int64_t bytes = elements * element_bytes;
  if (live_bytes_.fetch_add(bytes) + bytes > limits_.max_live_bytes) {
    live_bytes_ -= bytes;
    return MakeError(StatusCode::kResourceExhausted, "the model's values together need more than the limit of ",
                     limits_.max_live_bytes, " bytes");
  }
  const BlockStore::Block block = blocks_->Take(static_cast<size_t>(bytes + kSlackBytes));
  if (block.data == nullptr) {
    live_bytes_ -= bytes;
    return MakeError(StatusCode::kResourceExhausted, "cannot allocate ", bytes, " bytes");
  }
  const auto release = [self = shared_from_this(), bytes, block](std::byte*) {
    self->blocks_->Give(block);
    self->live_bytes_ -= bytes;
  };
  return Array{dtype, std::move(shape), std::shared_ptr<std::byte[]>(block.data, release)};
}

StatusOr<Array> Convert(Memory& memory, const Array& from, DType to) {
  if (from.dtype == to) return from;
  SWIZZLE_ASSIGN_OR_RETURN(Array result, memory.Allocate(to, from.shape));
  VisitElementType(from.dtype, [&]<typename From>(From) {
    VisitElementType(to, [&]<typename To>(To) {
      const std::span<const From> source = from.As<From>();
      const std::span<To> target = result.Mutable<To>();
      for (size_t i = 0; i < source.size(); ++i) target[i] = Narrowed<To>(Widened(source[i]));
    });
  });
  return result;
}

}  // namespace swizzle::fallback
