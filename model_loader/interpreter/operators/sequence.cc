// Operators on sequences of tensors.
#include <algorithm>
#include <cstring>
#include <utility>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

using Items = std::vector<Array>;

StatusOr<Array> SequenceOf(DType dtype, Items items) {
  if (static_cast<int64_t>(items.size()) > kMaxListLength) {
    return MakeError(StatusCode::kResourceExhausted, "a sequence has more than ", kMaxListLength, " tensors");
  }
  for (const Array& item : items) {
    if (item.IsSequence() || item.data == nullptr) return InvalidArgument("a sequence may hold tensors only");
    if (item.dtype != dtype) {
      return InvalidArgument("a sequence of ", DTypeName(dtype), " is given ", DTypeName(item.dtype));
    }
  }
  return Array{dtype, {}, nullptr, std::make_shared<const Items>(std::move(items))};
}

StatusOr<Items> ItemsOf(const Call& call, size_t i) {
  if (!call.Has(i) || !call.In(i).IsSequence()) return InvalidArgument("input ", i, " must be a sequence");
  return *call.In(i).items;
}

Status CheckTensor(const Call& call, size_t i) {
  return call.Has(i) && !call.In(i).IsSequence() ? Status() : InvalidArgument("input ", i, " must be a tensor");
}

// Input i, a place in a sequence: from 0, or from -1 backwards, to `last`.
StatusOr<size_t> PlaceOf(const Call& call, size_t i, size_t size, size_t last) {
  SWIZZLE_RETURN_IF_ERROR(CheckTensor(call, i));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t place, call.IntScalar(i, 0));
  const auto count = static_cast<int64_t>(size);
  if (place < -count || place > static_cast<int64_t>(last)) {
    return InvalidArgument("there is no place ", place, " in a sequence of ", size);
  }
  return static_cast<size_t>(place < 0 ? place + count : place);
}

// [begin, end) along the axis.
StatusOr<Array> SliceAlong(Call& call, const Array& array, size_t axis, int64_t begin, int64_t end) {
  Shape shape = array.shape;
  shape[axis] = end - begin;
  const Shape strides = DenseStrides(array.shape);
  SWIZZLE_ASSIGN_OR_RETURN(Array part, call.New(array.dtype, shape));
  if (part.elements() > 0) SWIZZLE_RETURN_IF_ERROR(CopyStrided(call, array, begin * strides[axis], strides, part));
  return part;
}

// How long SplitToSequence's parts are along an axis of `size`.
StatusOr<std::vector<int64_t>> PartLengths(const Call& call, int64_t size) {
  std::vector<int64_t> lengths;
  int64_t each = 1;
  if (call.Has(1)) {
    SWIZZLE_RETURN_IF_ERROR(CheckTensor(call, 1));
    SWIZZLE_ASSIGN_OR_RETURN(lengths, call.List(1));
    if (call.In(1).rank() == 1) {
      int64_t rest = size;
      for (const int64_t length : lengths) {
        if (length < 0 || length > rest) return InvalidArgument("the lengths of the parts do not add up to ", size);
        rest -= length;
      }
      return rest == 0 ? StatusOr<std::vector<int64_t>>(lengths)
                       : InvalidArgument("the lengths of the parts do not add up to ", size);
    }
    each = lengths[0];
    if (each < 1) return InvalidArgument("parts of ", each, " are none");
    lengths.clear();
  }
  if (size / each > kMaxListLength) {
    return MakeError(StatusCode::kResourceExhausted, "more than ", kMaxListLength, " parts");
  }
  for (int64_t begin = 0; begin < size; begin += std::min(each, size - begin)) {
    lengths.push_back(std::min(each, size - begin));
  }
  return lengths;
}

}  // namespace

StatusOr<Array> SequenceEmpty(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t number, call.Int("dtype", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const DType dtype, ElementTypeOf(number));
  return SequenceOf(dtype, {});
}

StatusOr<Array> SequenceConstruct(Call& call) {
  Items items;
  for (size_t i = 0; i < call.input_count(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(CheckTensor(call, i));
    items.push_back(call.In(i));
  }
  return SequenceOf(call.In(0).dtype, std::move(items));
}

StatusOr<Array> SequenceInsert(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(Items items, ItemsOf(call, 0));
  SWIZZLE_RETURN_IF_ERROR(CheckTensor(call, 1));
  size_t place = items.size();
  if (call.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(place, PlaceOf(call, 2, items.size(), items.size()));
  }
  items.insert(items.begin() + static_cast<ptrdiff_t>(place), call.In(1));
  return SequenceOf(call.In(0).dtype, std::move(items));
}

StatusOr<Array> SequenceErase(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(Items items, ItemsOf(call, 0));
  if (items.empty()) return InvalidArgument("the sequence is empty");
  size_t place = items.size() - 1;
  if (call.Has(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(place, PlaceOf(call, 1, items.size(), items.size() - 1));
  }
  items.erase(items.begin() + static_cast<ptrdiff_t>(place));
  return SequenceOf(call.In(0).dtype, std::move(items));
}

StatusOr<Array> SequenceAt(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Items items, ItemsOf(call, 0));
  if (items.empty()) return InvalidArgument("the sequence is empty");
  SWIZZLE_ASSIGN_OR_RETURN(const size_t place, PlaceOf(call, 1, items.size(), items.size() - 1));
  return items[place];
}

StatusOr<Array> SequenceLength(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Items items, ItemsOf(call, 0));
  SWIZZLE_ASSIGN_OR_RETURN(Array length, call.New(DType::kInt64, {}));
  length.Mutable<int64_t>()[0] = static_cast<int64_t>(items.size());
  return length;
}

StatusOr<Array> ConcatFromSequence(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(Items items, ItemsOf(call, 0));
  if (items.empty()) return InvalidArgument("the sequence is empty");
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t new_axis, call.Int("new_axis", 0));
  const int64_t rank = items[0].rank() + (new_axis != 0 ? 1 : 0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, rank));
  Shape shape;
  for (Array& item : items) {
    if (new_axis != 0 && item.rank() + 1 == rank) {
      Shape longer = item.shape;
      longer.insert(longer.begin() + axis, 1);
      item = item.WithShape(longer);
    }
    if (shape.empty()) shape = item.shape;
    Shape others = item.shape;
    if (others.size() == shape.size()) others[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
    if (others != shape) {
      return InvalidArgument("tensors of shapes ", ShapeText(shape), " and ", ShapeText(item.shape),
                             " cannot be put together");
    }
  }
  Shape whole = shape;
  whole[static_cast<size_t>(axis)] = 0;
  for (const Array& item : items) whole[static_cast<size_t>(axis)] += item.shape[static_cast<size_t>(axis)];
  SWIZZLE_ASSIGN_OR_RETURN(Array joined, call.New(items[0].dtype, whole));
  const int64_t outer = ProductOf(whole, 0, axis);
  const auto element = static_cast<int64_t>(ElementBytes(joined.dtype));
  std::byte* to = joined.data.get();
  for (int64_t i = 0; i < outer; ++i) {
    for (const Array& item : items) {
      const int64_t bytes = ProductOf(item.shape, axis, rank) * element;
      if (bytes > 0) std::memcpy(to, item.data.get() + i * bytes, static_cast<size_t>(bytes));
      to += bytes;
    }
  }
  return joined;
}

StatusOr<Array> SplitToSequence(Call& call) {
  SWIZZLE_RETURN_IF_ERROR(CheckTensor(call, 0));
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, x.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const bool keeps, KeepsAxes(call.node()));
  const auto at = static_cast<size_t>(axis);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, PartLengths(call, x.shape[at]));
  Items items;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    SWIZZLE_ASSIGN_OR_RETURN(Array part, SliceAlong(call, x, at, begin, begin + length));
    if (!keeps && !call.Has(1)) {
      Shape shape = part.shape;
      shape.erase(shape.begin() + axis);
      part = part.WithShape(shape);
    }
    items.push_back(std::move(part));
    begin += length;
  }
  return SequenceOf(x.dtype, std::move(items));
}

}  // namespace swizzle::interpreter
