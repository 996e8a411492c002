// Loops over arrays with a stride per dimension: broadcasting, transposing, slicing.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_STRIDED_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_STRIDED_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model_loader/interpreter/values/box_copy.h"
#include "model_loader/interpreter/values/call.h"

namespace swizzle::interpreter {

// Calls visit(T()) with an unsigned type of the elements' size.
template <typename Visit>
void VisitSize(size_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1:
      return visit(uint8_t());
    case 2:
      return visit(uint16_t());
    case 4:
      return visit(uint32_t());
    default:
      SWIZZLE_CHECK(bytes == 8);
      return visit(uint64_t());
  }
}

// A walk over all elements of `dims`, row-major, that keeps an offset into each of N arrays with strides of their own.
template <size_t N>
class StridedLoop {
 public:
  // REQUIRES: all strides have dims.size() entries.
  StridedLoop(std::span<const int64_t> dims, std::array<Extents, N> strides)
      : dims_(dims.begin(), dims.end()), strides_(std::move(strides)) {
    if (dims_.empty()) {
      dims_ = {1};
      for (Extents& s : strides_) s = {0};
    }
    MergeDimensions();
  }
  StridedLoop(std::span<const int64_t> dims, const std::array<Shape, N>& strides)
      : StridedLoop(dims, ExtentsOf(strides)) {}

  // The dimensions that are left, and what array i has for strides along them.
  const Extents& dims() const { return dims_; }
  const Extents& strides(size_t i) const { return strides_[i]; }

  // How far array i moves per element within one run.
  int64_t Step(size_t i) const { return strides_[i].back(); }

  // Along the innermost dimension, one for each index of the others.
  int64_t runs() const {
    if (dims_.back() == 0) return 0;
    int64_t count = 1;
    for (size_t d = 0; d + 1 < dims_.size(); ++d) count *= dims_[d];
    return count;
  }

  // Calls body(position, offsets, count) for each run of elements along the innermost dimension; position counts
  // elements from the start.
  template <typename Body>
  void ForEachRun(const Body& body) const {
    ForRuns(0, runs(), body);
  }

  // The same for runs [begin, end).
  template <typename Body>
  void ForRuns(int64_t begin, int64_t end, const Body& body) const {
    if (begin >= end) return;
    const size_t outer = dims_.size() - 1;
    const int64_t count = dims_[outer];
    Extents index(outer, 0);
    std::array<int64_t, N> offsets = {};
    int64_t rest = begin;
    for (size_t d = outer; d-- > 0; rest /= dims_[d]) {
      index[d] = rest % dims_[d];
      for (size_t i = 0; i < N; ++i) offsets[i] += strides_[i][d] * index[d];
    }
    for (int64_t run = begin;;) {
      body(run * count, offsets, count);
      if (++run == end) return;
      for (size_t d = outer; d-- > 0;) {
        for (size_t i = 0; i < N; ++i) offsets[i] += strides_[i][d];
        if (++index[d] < dims_[d]) break;
        for (size_t i = 0; i < N; ++i) offsets[i] -= strides_[i][d] * dims_[d];
        index[d] = 0;
      }
    }
  }

 private:
  static std::array<Extents, N> ExtentsOf(const std::array<Shape, N>& shapes) {
    std::array<Extents, N> extents;
    for (size_t i = 0; i < N; ++i) extents[i].assign(shapes[i].begin(), shapes[i].end());
    return extents;
  }

  // Joins neighbours that all arrays step through as if they were one dimension: longer runs.
  void MergeDimensions() {
    for (size_t d = dims_.size() - 1; d > 0; --d) {
      bool joins = true;
      for (const Extents& s : strides_) joins &= dims_[d - 1] == 1 || s[d - 1] == s[d] * dims_[d];
      if (!joins && dims_[d] != 1) continue;
      for (Extents& s : strides_) {
        if (dims_[d] == 1) s[d] = s[d - 1];
        s.erase(s.begin() + static_cast<ptrdiff_t>(d - 1));
      }
      dims_[d] *= dims_[d - 1];
      dims_.erase(dims_.begin() + static_cast<ptrdiff_t>(d - 1));
    }
  }

  Extents dims_;
  std::array<Extents, N> strides_;
};

// to[row-major] = from[offset + index . strides], for every index of `to`. Any element type. Both lie where the call
// runs. UNIMPLEMENTED on a device for more dimensions than its functions take.
// REQUIRES: both have the same type; every offset reached lies in `from`.
Status CopyStrided(Call& call, const Array& from, int64_t offset, const Shape& strides, Array& to);

// Copies that lie where the call runs. UNIMPLEMENTED as CopyStrided.
Status Copy(Call& call, size_t element_bytes, std::span<const BoxCopy> copies);

// The array with its dimensions in the order `order`. Shares the elements where that changes nothing.
StatusOr<Array> Transposed(Call& call, Array array, const std::vector<int64_t>& order);

// A place in an array for each place along a result's dimensions; `memory`, which counts them, has them.
struct IndexMaps {
  Array memory;
  std::vector<std::span<int64_t>> of;  // [dimension]
};
// As long as these dimensions, and not filled.
StatusOr<IndexMaps> NewIndexMaps(Call& call, const Shape& shape);

// An array whose element is array[maps.of[0][i0], maps.of[1][i1], ...], or the one at `fill` where a map says -1. Each
// map is as long as the result's dimension. REQUIRES: fill points to an element if a map has -1.
StatusOr<Array> Picked(Call& call, const Array& array, const IndexMaps& maps, const std::byte* fill);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_STRIDED_H_
