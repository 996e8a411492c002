#include "model_loader/interpreter/values/strided.h"

#include <algorithm>
#include <cstring>

namespace swizzle::interpreter {
namespace {

template <typename T>
void PickElements(const Array& from, std::span<const std::span<int64_t>> maps, const std::byte* fill, Array& to) {
  const Shape strides = DenseStrides(from.shape);
  const size_t rank = maps.size();
  const T* source = from.As<T>().data();
  T* target = to.Mutable<T>().data();
  T filler = {};
  if (fill != nullptr) std::memcpy(&filler, fill, sizeof(T));
  const std::span<const int64_t> inner = maps[rank - 1];
  std::vector<size_t> index(rank, 0);
  const int64_t runs = ProductOf(to.shape, 0, to.rank() - 1);
  for (int64_t run = 0; run < runs; ++run) {
    int64_t offset = 0;
    bool outside = false;
    for (size_t d = 0; d + 1 < rank; ++d) {
      outside |= maps[d][index[d]] < 0;
      offset += maps[d][index[d]] * strides[d];
    }
    for (const int64_t at : inner) *target++ = outside || at < 0 ? filler : source[offset + at];
    for (size_t d = rank - 1; d-- > 0;) {
      if (++index[d] < maps[d].size()) break;
      index[d] = 0;
    }
  }
}

// Whether elements stay where they are: nothing but dimensions of 1 changes places.
bool KeepsOrder(const Shape& shape, const std::vector<int64_t>& order) {
  int64_t last = -1;
  for (const int64_t axis : order) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

}  // namespace

Status CopyStrided(Call& call, const Array& from, int64_t offset, const Shape& strides, Array& to) {
  const auto element = static_cast<int64_t>(ElementBytes(to.dtype));
  const BoxCopy copies[] = {
      {to.shape, strides, DenseStrides(to.shape), from.data.get() + offset * element, to.data.get()}};
  return Copy(call, static_cast<size_t>(element), copies);
}

Status Copy(Call& call, size_t element_bytes, std::span<const BoxCopy> copies) {
  if (call.device() != nullptr) return CopyBoxesOnDevice(*call.device(), element_bytes, copies);
  CopyBoxes(call.stream(), element_bytes, copies);
  return {};
}

StatusOr<Array> Transposed(Call& call, Array array, const std::vector<int64_t>& order) {
  if (std::ranges::is_sorted(order)) return array;
  Shape shape;
  for (const int64_t axis : order) shape.push_back(array.shape[static_cast<size_t>(axis)]);
  if (KeepsOrder(array.shape, order)) return array.WithShape(std::move(shape));
  const Shape dense = DenseStrides(array.shape);
  Shape strides;
  for (const int64_t axis : order) strides.push_back(dense[static_cast<size_t>(axis)]);
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(array.dtype, std::move(shape)));
  SWIZZLE_RETURN_IF_ERROR(CopyStrided(call, array, 0, strides, result));
  return result;
}

StatusOr<IndexMaps> NewIndexMaps(Call& call, const Shape& shape) {
  int64_t places = 0;
  for (const int64_t dimension : shape) {
    if (__builtin_add_overflow(places, dimension, &places)) return InvalidArgument("the shape is too large");
  }
  IndexMaps maps;
  SWIZZLE_ASSIGN_OR_RETURN(maps.memory, call.New(DType::kInt64, {places}));
  std::span<int64_t> rest = maps.memory.Mutable<int64_t>();
  for (const int64_t dimension : shape) {
    maps.of.push_back(rest.first(static_cast<size_t>(dimension)));
    rest = rest.subspan(static_cast<size_t>(dimension));
  }
  return maps;
}

StatusOr<Array> Picked(Call& call, const Array& array, const IndexMaps& maps, const std::byte* fill) {
  Shape shape;
  for (const auto& map : maps.of) shape.push_back(static_cast<int64_t>(map.size()));
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(array.dtype, std::move(shape)));
  if (maps.of.empty()) {
    std::memcpy(result.data.get(), array.data.get(), static_cast<size_t>(array.bytes()));
  } else if (result.elements() > 0) {
    VisitSize(ElementBytes(array.dtype), [&]<typename T>(T) { PickElements<T>(array, maps.of, fill, result); });
  }
  return result;
}

}  // namespace swizzle::interpreter
