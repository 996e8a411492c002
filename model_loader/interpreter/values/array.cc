#include "model_loader/interpreter/values/array.h"

#include <algorithm>
#include <new>
#include <utility>

namespace swizzle::interpreter {
namespace {

// Bytes before an array's elements in its block: what the array needs besides them, so that it takes one block alone.
constexpr int64_t kFrontBytes = 128;

}  // namespace

// What stands at the front of a block; the count of who shares the array follows.
struct Memory::Front {
  std::shared_ptr<Memory> memory;
  BlockStore::Block block;
  int64_t bytes;
};

// Gives std::shared_ptr the rest of the front for its counts. Once it needs them no more, the block is given back.
template <typename T>
struct Memory::FrontAllocator {
  using value_type = T;

  explicit FrontAllocator(Front* at) : front(at) {}
  template <typename U>
  FrontAllocator(const FrontAllocator<U>& other) : front(other.front) {}  // NOLINT: allocators convert

  T* allocate(size_t) {
    static_assert(sizeof(Front) + sizeof(T) <= kFrontBytes && sizeof(Front) % alignof(T) == 0);
    return reinterpret_cast<T*>(front + 1);
  }
  void deallocate(T*, size_t) {
    const Front held = std::move(*front);
    front->~Front();
    held.memory->GiveBack(held.block, held.bytes);
  }
  bool operator==(const FrontAllocator&) const = default;

  Front* front;
};

int64_t Array::elements() const {
  int64_t count = 1;
  for (const int64_t dimension : shape) count *= dimension;
  return count;
}

Array Array::WithShape(Shape other) const {
  Array array{dtype, std::move(other), data, items, text_bytes, place};
  SWIZZLE_CHECK(moved == nullptr && array.elements() == elements());
  return array;
}

Status Memory::Check(DType dtype, const Shape& shape) const {
  if (shape.size() > kMaxRank)
    return InvalidArgument("a value has ", shape.size(), " dimensions; the limit is ", kMaxRank);
  SWIZZLE_RETURN_IF_ERROR(ElementCount(shape));
  int64_t bound = 1;
  bool fits = true;
  for (const int64_t dimension : shape) {
    fits = fits && !__builtin_mul_overflow(bound, std::max<int64_t>(dimension, 1), &bound);
  }
  const auto element_bytes = static_cast<int64_t>(ElementBytes(dtype));
  if (element_bytes == 0) return Unimplemented("strings are not supported here");
  if (!fits || bound > limits_.max_array_bytes / element_bytes) {
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

void Memory::GiveBack(const BlockStore::Block& block, int64_t bytes) {
  blocks_->Give(block);
  live_bytes_ -= bytes;
}

StatusOr<std::shared_ptr<std::byte[]>> Memory::Take(int64_t bytes) {
  if (live_bytes_.fetch_add(bytes) + bytes > limits_.max_live_bytes) {
    live_bytes_ -= bytes;
    return MakeError(StatusCode::kResourceExhausted, "the model's values together need more than the limit of ",
                     limits_.max_live_bytes, " bytes");
  }
  const bool on_host = place_ == Place::kHost;
  const BlockStore::Block block = blocks_->Take(static_cast<size_t>((on_host ? kFrontBytes : 0) + bytes + kSlackBytes));
  if (block.data == nullptr) {
    live_bytes_ -= bytes;
    return MakeError(StatusCode::kResourceExhausted, "there is no room for ", bytes, " bytes more");
  }
  if (!on_host) {
    const auto release = [self = shared_from_this(), bytes, block](std::byte*) { self->GiveBack(block, bytes); };
    return std::shared_ptr<std::byte[]>(block.data, release);
  }
  auto* const front = new (block.data) Front{shared_from_this(), block, bytes};
  return std::shared_ptr<std::byte[]>(
      block.data + kFrontBytes, [](std::byte*) {}, FrontAllocator<std::byte>(front));
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

}  // namespace swizzle::interpreter
