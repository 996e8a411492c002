#include "model_loader/interpreter/values/box_copy.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/transpose.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

// A box as matrices, one for each index of the other dimensions: neighbours of `from` lie along its rows, neighbours of
// `to` along its columns.
struct Matrices {
  static constexpr int64_t kColumns = 64;  // of a unit

  Shape outer;  // of the other dimensions
  Shape from_strides, to_strides;
  int64_t rows = 0, columns = 0;
  int64_t from_stride = 0, to_stride = 0;

  int64_t blocks() const { return CeilDiv(columns, kColumns); }
  int64_t units() const { return ProductOf(outer, 0, static_cast<int64_t>(outer.size())) * blocks(); }
};

// Nothing where neighbours of both are along the same dimension, or those of `to` not along the last.
std::optional<Matrices> MatricesOf(const StridedLoop<2>& loop) {
  const Extents &shape = loop.dims(), &from_strides = loop.strides(0), &to_strides = loop.strides(1);
  size_t neighbours = shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && from_strides[d] == 1) neighbours = d;
  }
  if (neighbours + 1 >= shape.size() || to_strides.back() != 1) return std::nullopt;
  Matrices matrices{{}, {}, {}, shape.back(), shape[neighbours], from_strides.back(), to_strides[neighbours]};
  for (size_t d = 0; d + 1 < shape.size(); ++d) {
    if (d == neighbours || shape[d] == 1) continue;
    matrices.outer.push_back(shape[d]);
    matrices.from_strides.push_back(from_strides[d]);
    matrices.to_strides.push_back(to_strides[d]);
  }
  return matrices;
}

// A box in units that threads share.
template <typename T>
class Copier {
 public:
  explicit Copier(const BoxCopy& box)
      : loop_(box.dims, {box.from_strides, box.to_strides}),
        from_(reinterpret_cast<const T*>(box.from)),
        to_(reinterpret_cast<T*>(box.to)) {
    constexpr int64_t kWorthBlocks = 1024;  // elements
    if (sizeof(T) == sizeof(float) && loop_.runs() * loop_.dims().back() >= kWorthBlocks) matrices_ = MatricesOf(loop_);
    pieces_ = CeilDiv(loop_.dims().back(), kPiece);
  }

  int64_t units() const { return matrices_ ? matrices_->units() : loop_.runs() * pieces_; }

  void Copy(int64_t begin, int64_t end) const {
    if (matrices_) return Transpose(begin, end);
    if (pieces_ == 1)
      return loop_.ForRuns(begin, end, [&](int64_t, const auto& offsets, int64_t count) {
        CopyRun(from_ + offsets[0], to_ + offsets[1], count);
      });
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces_ * kPiece;
      loop_.ForRuns(i / pieces_, i / pieces_ + 1, [&](int64_t, const auto& offsets, int64_t count) {
        CopyRun(from_ + offsets[0] + first * loop_.Step(0), to_ + offsets[1] + first * loop_.Step(1),
                std::min(kPiece, count - first));
      });
    }
  }

 private:
  static constexpr int64_t kPiece = 1 << 14;  // elements of a long run

  void CopyRun(const T* from, T* to, int64_t count) const {
    const int64_t step = loop_.Step(0), out = loop_.Step(1);
    if (step == 1 && out == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
    } else if (step == 0 && out == 1) {
      std::fill(to, to + count, *from);
    } else if (out == 1) {
      for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
    } else {
      for (int64_t i = 0; i < count; ++i) to[i * out] = from[i * step];
    }
  }

  void Transpose(int64_t begin, int64_t end) const {
    const Matrices& m = *matrices_;
    const int64_t blocks = m.blocks();
    for (int64_t i = begin; i < end; ++i) {
      int64_t matrix = i / blocks, from_offset = 0, to_offset = 0;
      for (size_t d = m.outer.size(); d-- > 0; matrix /= m.outer[d]) {
        from_offset += matrix % m.outer[d] * m.from_strides[d];
        to_offset += matrix % m.outer[d] * m.to_strides[d];
      }
      const int64_t first = i % blocks * Matrices::kColumns, columns = std::min(Matrices::kColumns, m.columns - first);
      cpu::Transpose(reinterpret_cast<const float*>(from_) + from_offset + first, m.from_stride,
                     reinterpret_cast<float*>(to_) + to_offset + first * m.to_stride, m.to_stride, m.rows, columns);
    }
  }

  StridedLoop<2> loop_;
  const T* from_;
  T* to_;
  std::optional<Matrices> matrices_;
  int64_t pieces_ = 1;  // of a run
};

template <typename T>
void CopyAll(Stream& stream, std::span<const BoxCopy> boxes) {
  constexpr int64_t kWorthAThread = 1 << 15;  // bytes
  std::vector<Copier<T>> copiers;
  std::vector<int64_t> first;  // unit of each, and the number of all
  int64_t units = 0, bytes = 0;
  for (const BoxCopy& box : boxes) {
    const int64_t elements = ProductOf(box.dims, 0, static_cast<int64_t>(box.dims.size()));
    if (elements == 0) continue;
    bytes += elements * static_cast<int64_t>(sizeof(T));
    copiers.emplace_back(box);
    first.push_back(units);
    units += copiers.back().units();
  }
  first.push_back(units);
  const auto copy = [&](int64_t, int64_t begin, int64_t end) {
    auto i = static_cast<size_t>(std::ranges::upper_bound(first, begin) - first.begin()) - 1;
    for (; begin < end; ++i) {
      const int64_t until = std::min(end, first[i + 1]);
      copiers[i].Copy(begin - first[i], until - first[i]);
      begin = until;
    }
  };
  if (bytes < kWorthAThread) return copy(0, 0, units);
  cpu::CpuStream::From(stream).ParallelRanges(units, copy);
}

// How many neighbours every box's copy may take at once: 1, 2, ... up to 16 bytes together.
int64_t NeighboursTogether(std::span<const StridedLoop<2>> loops, std::span<const BoxCopy> boxes, int64_t element) {
  constexpr int64_t kMostBytes = 16;
  int64_t all = kMostBytes / element;
  for (size_t i = 0; i < loops.size(); ++i) {
    const StridedLoop<2>& loop = loops[i];
    if (loop.Step(0) != 1 || loop.Step(1) != 1) return 1;
    int64_t common = loop.dims().back();
    for (size_t d = 0; d + 1 < loop.dims().size(); ++d) common |= loop.strides(0)[d] | loop.strides(1)[d];
    const auto bytes =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(boxes[i].from) | reinterpret_cast<uintptr_t>(boxes[i].to));
    while (all > 1 && (common % all != 0 || bytes % (all * element) != 0)) all /= 2;
  }
  return all;
}

StridedCopy DeviceCopyOf(const StridedLoop<2>& loop, const BoxCopy& box, int64_t element, int64_t together) {
  StridedCopy copy{.element_bytes = static_cast<size_t>(element * together),
                   .rank = static_cast<int>(loop.dims().size()),
                   .from = box.from,
                   .to = box.to};
  const size_t last = loop.dims().size() - 1;
  for (size_t d = 0; d <= last; ++d) {
    copy.dims[d] = loop.dims()[d] / (d == last ? together : 1);
    copy.from_strides[d] = d == last ? loop.Step(0) : loop.strides(0)[d] / together;
    copy.to_strides[d] = d == last ? loop.Step(1) : loop.strides(1)[d] / together;
  }
  return copy;
}

}  // namespace

void CopyBoxes(Stream& stream, size_t element_bytes, std::span<const BoxCopy> boxes) {
  VisitSize(element_bytes, [&]<typename T>(T) { CopyAll<T>(stream, boxes); });
}

Status CopyBoxesOnDevice(Device& device, size_t element_bytes, std::span<const BoxCopy> boxes) {
  std::vector<StridedLoop<2>> loops;
  for (const BoxCopy& box : boxes) {
    const StridedLoop<2>& loop = loops.emplace_back(box.dims, std::array{box.from_strides, box.to_strides});
    if (loop.dims().size() > kMaxStridedRank) return Unimplemented("it has too many dimensions for a device");
  }
  const auto element = static_cast<int64_t>(element_bytes);
  const int64_t together = NeighboursTogether(loops, boxes, element);
  std::vector<StridedCopy> copies;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (loops[i].runs() > 0) copies.push_back(DeviceCopyOf(loops[i], boxes[i], element, together));
  }
  device.functions().CopyAll(copies, device.stream());
  return {};
}

}  // namespace swizzle::interpreter
