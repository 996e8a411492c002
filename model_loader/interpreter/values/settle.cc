#include "model_loader/interpreter/values/settle.h"

#include <algorithm>
#include <vector>

#include "model_loader/interpreter/values/box_copy.h"

namespace swizzle::interpreter {
namespace {

// Whether its elements lie one after another from the box's first on.
bool IsDense(const Moved& moved) {
  if (moved.boxes.size() != 1 || moved.boxes[0].extent != moved.dims) return false;
  const Shape dense = DenseStrides(moved.dims);
  for (size_t d = 0; d < dense.size(); ++d) {
    if (moved.dims[d] > 1 && moved.boxes[0].strides[d] != dense[d]) return false;
  }
  return true;
}

int64_t BytesBefore(const Moved& moved) {
  return moved.boxes[0].offset * static_cast<int64_t>(ElementBytes(moved.sources[0].dtype));
}

// A part of another array, or all of it.
Array PartOf(const Moved& moved, const Shape& shape) {
  const Array& source = moved.sources[moved.boxes[0].source];
  Array part = source;
  part.shape = shape;
  part.data = std::shared_ptr<std::byte[]>(source.data, source.data.get() + BytesBefore(moved));
  return part;
}

// Whether it may be a part of the array that it lies in.
bool CanShare(const Array& array, bool on_device) {
  const Moved& moved = *array.moved;
  if (!IsDense(moved)) return false;
  constexpr int64_t kDeviceBytes = 16;  // a device's kernels read packs of so many
  if (on_device) return BytesBefore(moved) % kDeviceBytes == 0;
  return PartMayShare(array.elements(), moved.sources[moved.boxes[0].source]);
}

StatusOr<Array> Copied(const Array& array, Memory& memory, Stream& stream, Device* device) {
  const Moved& moved = *array.moved;
  SWIZZLE_ASSIGN_OR_RETURN(Array made, memory.Allocate(array.dtype, array.shape));
  const auto element = static_cast<int64_t>(ElementBytes(array.dtype));
  const Shape dense = DenseStrides(moved.dims);
  std::vector<BoxCopy> copies;
  copies.reserve(moved.boxes.size());
  for (const Moved::Box& box : moved.boxes) {
    int64_t offset = 0;
    for (size_t d = 0; d < dense.size(); ++d) offset += box.start[d] * dense[d];
    copies.push_back({box.extent, box.strides, dense, moved.sources[box.source].data.get() + box.offset * element,
                      made.data.get() + offset * element});
  }
  if (device != nullptr) {
    SWIZZLE_RETURN_IF_ERROR(CopyBoxesOnDevice(*device, static_cast<size_t>(element), copies));
  } else {
    CopyBoxes(stream, static_cast<size_t>(element), copies);
  }
  return made;
}

}  // namespace

bool PartMayShare(int64_t elements, const Array& of) {
  constexpr int64_t kLeastPart = 8;
  return elements * kLeastPart >= of.elements();
}

StatusOr<Array> Settled(const Array& array, Memory& memory, Stream& stream, Device* device) {
  if (array.moved == nullptr) return array;
  const Moved& moved = *array.moved;
  if (!moved.made) {
    if (CanShare(array, device != nullptr)) {
      moved.made = PartOf(moved, array.shape);
    } else {
      SWIZZLE_ASSIGN_OR_RETURN(moved.made, Copied(array, memory, stream, device));
    }
  }
  return *moved.made;
}

StatusOr<Array> Unsettled(Call& call, Shape shape, Moved moved) {
  const DType dtype = moved.sources.front().dtype;
  if (call.device() != nullptr && moved.rank() > kMaxStridedRank && !IsDense(moved)) {
    return Unimplemented("it has too many dimensions for a device");
  }
  Array array{dtype, std::move(shape), nullptr};
  array.place = call.device() == nullptr ? Place::kHost : Place::kDevice;
  array.moved = std::make_shared<const Moved>(std::move(moved));
  const bool settles = call.device() == nullptr && array.bytes() < kWorthWaiting;
  return settles ? Settled(array, call.memory(), call.stream(), nullptr) : array;
}

}  // namespace swizzle::interpreter
