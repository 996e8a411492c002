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
  Array array = *this;
  array.shape = std::move(other);
  SWIZZLE_CHECK(moved == nullptr && array.elements() == elements());
  return array;
}

Status Memory::Check(DType dtype, const Shape& shape) const {
  if (shape.size() > kMaxRank)
    return InvalidArgument("a value has ", shape.size(), " dimensions; the limit is ", kMaxRank);
  SWIZZLE_RETURN_IF_ERROR(ElementCount(shape));
  Shape counted = shape;
  for (int64_t& dimension : counted) dimension = std::max<int64_t>(dimension, 1);
  const StatusOr<int64_t> bound = ElementCount(counted);
  const auto element_bytes = static_cast<int64_t>(ElementBytes(dtype));
  if (element_bytes == 0) return Unimplemented("strings are not supported here");
  if (!bound.ok() || *bound > limits_.max_array_bytes / element_bytes) {
    return MakeError(StatusCode::kResourceExhausted, "a value of shape ", ShapeText(shape), " and type ",
                     DTypeName(dtype), " is larger than the limit of ", limits_.max_array_bytes, " bytes");
  }
  return {};
}

StatusOr<Array> Memory::Allocate(DType dtype, Shape shape) {
  SWIZZLE_RETURN_IF_ERROR(Check(dtype, shape));
  Array array{dtype, std::move(shape), nullptr};
  SWIZZLE_ASSIGN_OR_RETURN(array.data, Take(array.bytes()));
  array.place = place_;
  return array;
}

StatusOr<Array> Memory::AllocateStrings(Shape shape, int64_t bytes) {
  if (shape.size() > kMaxRank || bytes > limits_.max_array_bytes) {
    return MakeError(StatusCode::kResourceExhausted, "strings of shape ", ShapeText(shape), " that take ", bytes,
                     " bytes are above the limit of ", limits_.max_array_bytes, " bytes and ", kMaxRank, " dimensions");
  }
  SWIZZLE_RETURN_IF_ERROR(ElementCount(shape));
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte[]> data, Take(bytes));
  return Array{DType::kString, std::move(shape), std::move(data), nullptr, bytes};
}

StatusOr<std::shared_ptr<std::byte[]>> Memory::Take(int64_t bytes) {
  if (live_bytes_.fetch_add(bytes) + bytes > limits_.max_live_bytes) {
    live_bytes_ -= bytes;
    return MakeError(StatusCode::kResourceExhausted, "the model's values together need more than the limit of ",
                     limits_.max_live_bytes, " bytes");
  }
  const BlockStore::Block block = blocks_->Take(static_cast<size_t>(bytes + kSlackBytes));
  if (block.data == nullptr) {
    live_bytes_ -= bytes;
    return MakeError(StatusCode::kResourceExhausted, "there is no room for ", bytes, " bytes more");
  }
  const auto release = [self = shared_from_this(), bytes, block](std::byte*) {
    self->blocks_->Give(block);
    self->live_bytes_ -= bytes;
  };
  return std::shared_ptr<std::byte[]>(block.data, release);
}

Status Memory::CountBodyRun() {
  if (++body_runs_ <= limits_.max_body_runs) return {};
  return MakeError(StatusCode::kResourceExhausted, "the graphs within nodes run more often than the limit of ",
                   limits_.max_body_runs, " times");
}

StatusOr<Array> Convert(Memory& memory, const Array& from, DType to) {
  if (from.dtype == to) return from;
  if (from.place == Place::kDevice) return Unimplemented("a device does not convert its types here");
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
