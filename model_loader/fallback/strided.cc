#include "model_loader/fallback/strided.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/transpose.h"

namespace swizzle::fallback {
namespace {

template <typename T>
void CopyElements(const Array& from, int64_t offset, const Shape& strides, Array& to) {
  const T* source = from.As<T>().data();
  T* target = to.Mutable<T>().data();
  const StridedLoop<1> loop(to.shape, {strides});
  const int64_t step = loop.Step(0);
  loop.ForEachRun([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
    const T* run = source + offset + offsets[0];
    T* out = target + position;
    if (step == 1) {
      std::memcpy(out, run, static_cast<size_t>(count) * sizeof(T));
    } else if (step == 0) {
      std::fill(out, out + count, *run);
    } else {
      for (int64_t i = 0; i < count; ++i) out[i] = run[i * step];
    }
  });
}

Status CopyOnDevice(Device& device, const Array& from, int64_t offset, const Shape& strides, Array& to) {
  if (to.elements() == 0) return {};
  const StridedLoop<2> loop(to.shape, {strides, DenseStrides(to.shape)});
  if (loop.dims().size() > kMaxStridedRank) return Unimplemented("it has too many dimensions for a device");
  const auto element = static_cast<int64_t>(ElementBytes(to.dtype));
  StridedCopy copy{.element_bytes = static_cast<size_t>(element),
                   .rank = static_cast<int>(loop.dims().size()),
                   .from = from.data.get() + offset * element,
                   .to = to.data.get()};
  std::ranges::copy(loop.dims(), copy.dims.begin());
  std::ranges::copy(loop.strides(0), copy.from_strides.begin());
  std::ranges::copy(loop.strides(1), copy.to_strides.begin());
  device.functions().Copy(copy, device.stream());
  return {};
}

// The largest unit of copies that all of these bytes are a multiple of.
size_t UnitOf(int64_t bytes) { return size_t{1} << std::min(std::countr_zero(static_cast<uint64_t>(bytes)), 3); }

// A transposition as matrices, one for each index of the other dimensions: neighbours of `from` lie along its rows,
// neighbours of the result along its columns.
struct Matrices {
  Shape outer;  // of the other dimensions
  Shape from_strides, to_strides;
  int64_t rows = 0, columns = 0;
  int64_t from_stride = 0, to_stride = 0;
};

// Nothing where the last dimension stays the last.
std::optional<Matrices> MatricesOf(Shape shape, Shape from_strides) {
  Shape to_strides = DenseStrides(shape);
  size_t neighbours = shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && from_strides[d] == 1) neighbours = d;
  }
  if (neighbours + 1 >= shape.size()) return std::nullopt;
  Matrices matrices{{}, {}, {}, shape.back(), shape[neighbours], from_strides.back(), to_strides[neighbours]};
  for (size_t d = 0; d + 1 < shape.size(); ++d) {
    if (d == neighbours || shape[d] == 1) continue;
    matrices.outer.push_back(shape[d]);
    matrices.from_strides.push_back(from_strides[d]);
    matrices.to_strides.push_back(to_strides[d]);
  }
  return matrices;
}

// By blocks of columns, shared among the stream's threads.
void TransposeMatrices(Stream& stream, const Matrices& m, const float* from, float* to) {
  constexpr int64_t kColumns = 64;
  const int64_t blocks = CeilDiv(m.columns, kColumns);
  const auto task = [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t matrix = i / blocks, from_offset = 0, to_offset = 0;
      for (size_t d = m.outer.size(); d-- > 0; matrix /= m.outer[d]) {
        from_offset += matrix % m.outer[d] * m.from_strides[d];
        to_offset += matrix % m.outer[d] * m.to_strides[d];
      }
      const int64_t first = i % blocks * kColumns, columns = std::min(kColumns, m.columns - first);
      cpu::Transpose(from + from_offset + first, m.from_stride, to + to_offset + first * m.to_stride, m.to_stride,
                     m.rows, columns);
    }
  };
  cpu::CpuStream::From(stream).ParallelRanges(ProductOf(m.outer, 0, static_cast<int64_t>(m.outer.size())) * blocks,
                                              task);
}

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
  if (call.device() != nullptr) return CopyOnDevice(*call.device(), from, offset, strides, to);
  VisitSize(ElementBytes(to.dtype), [&]<typename T>(T) { CopyElements<T>(from, offset, strides, to); });
  return {};
}

void CopyPieces(Call& call, int64_t rows, int64_t bytes, const std::byte* from, int64_t from_pitch, std::byte* to,
                int64_t to_pitch) {
  if (bytes == 0) return;
  if (Device* const device = call.device()) {
    const auto unit = static_cast<int64_t>(UnitOf(bytes | from_pitch | to_pitch | reinterpret_cast<intptr_t>(to)));
    return device->functions().Copy({.element_bytes = static_cast<size_t>(unit),
                                     .rank = 2,
                                     .dims = {rows, bytes / unit},
                                     .from_strides = {from_pitch / unit, 1},
                                     .to_strides = {to_pitch / unit, 1},
                                     .from = from,
                                     .to = to},
                                    device->stream());
  }
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * to_pitch, from + row * from_pitch, static_cast<size_t>(bytes));
  }
}

StatusOr<Array> Transposed(Call& call, const Array& array, const std::vector<int64_t>& order) {
  const Shape dense = DenseStrides(array.shape);
  Shape shape, strides;
  for (const int64_t axis : order) {
    shape.push_back(array.shape[static_cast<size_t>(axis)]);
    strides.push_back(dense[static_cast<size_t>(axis)]);
  }
  if (KeepsOrder(array.shape, order)) return array.WithShape(std::move(shape));
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(array.dtype, std::move(shape)));
  constexpr int64_t kWorthBlocks = 4096;  // elements
  if (call.device() == nullptr && ElementBytes(array.dtype) == sizeof(float) && array.elements() >= kWorthBlocks) {
    if (const auto matrices = MatricesOf(result.shape, strides)) {
      TransposeMatrices(call.stream(), *matrices, reinterpret_cast<const float*>(array.data.get()),
                        reinterpret_cast<float*>(result.data.get()));
      return result;
    }
  }
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

}  // namespace swizzle::fallback
