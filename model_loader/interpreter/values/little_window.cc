#include "model_loader/interpreter/values/little_window.h"

#include <cstring>
#include <utility>

#include "model_loader/interpreter/values/settle.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

// Whether the loop is one run of neighbours.
bool IsDense(const StridedLoop<1>& loop) {
  return loop.dims().size() == 1 && (loop.dims()[0] == 1 || loop.strides(0)[0] == 1);
}

template <typename T>
void CopyRuns(const StridedLoop<1>& loop, const T* from, T* to) {
  const int64_t step = loop.Step(0);
  loop.ForEachRun([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
    const T* const run = from + offsets[0];
    if (step == 1) {
      std::memcpy(to + position, run, static_cast<size_t>(count) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < count; ++i) to[position + i] = run[i * step];
  });
}

}  // namespace

bool IsLittle(const Call& call, const Array& array, const Shape& part) {
  if (array.place != Place::kHost || array.moved != nullptr || array.data == nullptr || call.on_device()) return false;
  const int64_t element = static_cast<int64_t>(ElementBytes(array.dtype));
  return element > 0 && ProductOf(part, 0, std::ssize(part)) * element < kWorthWaiting;
}

StatusOr<Array> LittleWindow(Call& call, const Array& array, std::span<const SliceRange> ranges, Shape shape) {
  Extents dims(ranges.size()), strides(ranges.size());
  int64_t offset = 0, stride = 1;
  for (size_t d = ranges.size(); d-- > 0; stride *= array.shape[d]) {
    dims[d] = ranges[d].count;
    strides[d] = dims[d] > 1 ? stride * ranges[d].step : 0;
    offset += stride * ranges[d].start;
  }
  const StridedLoop<1> loop(dims, std::array<Extents, 1>{std::move(strides)});
  const size_t element = ElementBytes(array.dtype);
  std::byte* const from = array.data.get() + offset * static_cast<int64_t>(element);
  if (IsDense(loop) && PartMayShare(ProductOf(shape, 0, std::ssize(shape)), array)) {
    return Array{array.dtype, std::move(shape), std::shared_ptr<std::byte[]>(array.data, from)};
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array window, call.New(array.dtype, std::move(shape)));
  VisitSize(element, [&]<typename T>(T) {
    CopyRuns<T>(loop, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(window.data.get()));
  });
  return window;
}

}  // namespace swizzle::interpreter
