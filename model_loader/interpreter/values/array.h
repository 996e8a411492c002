// The values of the interpreter: owned, dense, row-major tensors whose shapes are known only when they are made.
//
// A value may also be strings, or a sequence of arrays of one type. Only operators for such values, and those that pass
// values on, take them (graph/operator_table.h).
//
// An Array shares its elements with copies of itself; whoever made it writes them before anybody else sees it, after
// that they don't change. They lie in the host's memory, or in a device's, where the host doesn't reach them. Those of
// a moved one lie in other arrays yet (moved.h): only operators that move elements are given such. One that has neither
// elements nor items stands for an input that is left out. Array is thread-compatible, Memory is thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_ARRAY_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_ARRAY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "model_loader/interpreter/memory/block_range.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::interpreter {

struct Limits {
  int64_t max_array_bytes = int64_t{1} << 31;
  int64_t max_live_bytes = int64_t{1} << 34;    // of all arrays of one run together
  int64_t max_body_runs = int64_t{1} << 16;     // of the graphs within nodes, in one run
  std::shared_ptr<RunBudget> budget = nullptr;  // of several runs on the host; null: there is none
};

enum class Place : uint8_t { kHost, kDevice };

struct Moved;

struct Array {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::shared_ptr<std::byte[]> data;
  std::shared_ptr<const std::vector<Array>> items = nullptr;  // of a sequence, which has no shape and no data
  int64_t text_bytes = 0;                                     // of strings, which lie as in a TensorView
  Place place = Place::kHost;
  std::shared_ptr<const Moved> moved = nullptr;  // where it is not made yet; then there is no data

  bool IsLeftOut() const { return data == nullptr && moved == nullptr && items == nullptr; }
  bool IsSequence() const { return items != nullptr; }
  bool HasStrings() const { return dtype == DType::kString && !IsSequence(); }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t elements() const;
  int64_t bytes() const { return HasStrings() ? text_bytes : elements() * static_cast<int64_t>(ElementBytes(dtype)); }

  // REQUIRES: T has the size of the elements, which lie in the host's memory.
  template <typename T>
  std::span<const T> As() const {
    SWIZZLE_CHECK(sizeof(T) == ElementBytes(dtype) && place == Place::kHost);
    return {reinterpret_cast<const T*>(data.get()), static_cast<size_t>(elements())};
  }
  // REQUIRES: the same, and nobody else has seen the array.
  template <typename T>
  std::span<T> Mutable() {
    SWIZZLE_CHECK(sizeof(T) == ElementBytes(dtype) && place == Place::kHost);
    return {reinterpret_cast<T*>(data.get()), static_cast<size_t>(elements())};
  }

  std::span<const std::byte> AsBytes() const { return {data.get(), static_cast<size_t>(bytes())}; }

  // The same elements in another shape. REQUIRES: as many elements, which are made.
  Array WithShape(Shape other) const;
};

// ONNX sets no bound, but real models stay far below this one, and loops over dimensions need one.
inline constexpr size_t kMaxRank = 64;

// Behind each array lie so many bytes more: kernels of plans read and write whole vectors.
inline constexpr int64_t kSlackBytes = 64;

// Where arrays come from. Counts what is alive, and outlives it: arrays keep their Memory.
class Memory : public std::enable_shared_from_this<Memory> {
 public:
  // blocks: where they are kept between runs; null: nowhere.
  static std::shared_ptr<Memory> New(const Limits& limits, std::shared_ptr<BlockStore> blocks = nullptr) {
    return std::shared_ptr<Memory>(new Memory(limits, std::move(blocks), Place::kHost));
  }
  // Of a device's blocks.
  static std::shared_ptr<Memory> NewOnDevice(const Limits& limits, std::shared_ptr<BlockStore> blocks) {
    return std::shared_ptr<Memory>(new Memory(limits, std::move(blocks), Place::kDevice));
  }

  // An array with no particular elements. INVALID_ARGUMENT for an impossible shape, RESOURCE_EXHAUSTED beyond a limit.
  // Dimensions of 0 count as 1 against the limit, so that loops over the others are bounded too.
  // UNIMPLEMENTED for strings.
  StatusOr<Array> Allocate(DType dtype, Shape shape);

  // Whether there could be such an array, but for what others take: the errors of Allocate.
  Status Check(DType dtype, const Shape& shape) const;

  // Room for strings that take so many bytes, their lengths included.
  StatusOr<Array> AllocateStrings(Shape shape, int64_t bytes);

  int64_t live_bytes() const { return live_bytes_; }

  // Before each run of a graph within a node. RESOURCE_EXHAUSTED beyond the limit: loops end.
  Status CountBodyRun();

 private:
  Memory(const Limits& limits, std::shared_ptr<BlockStore> blocks, Place place)
      : limits_(limits),
        blocks_(blocks != nullptr ? std::move(blocks) : std::make_shared<BlockRange>(limits.budget, 0)),
        place_(place) {}

  struct Front;
  template <typename T>
  struct FrontAllocator;

  // Bytes that are counted as long as they are held.
  StatusOr<std::shared_ptr<std::byte[]>> Take(int64_t bytes);
  void GiveBack(const BlockStore::Block& block, int64_t bytes);

  const Limits limits_;
  const std::shared_ptr<BlockStore> blocks_;
  const Place place_;
  std::atomic<int64_t> live_bytes_ = 0;
  std::atomic<int64_t> body_runs_ = 0;
};

// The elements as `to`, as Cast does it (semantics/element_types.h). Shares the elements if the type is the same.
// UNIMPLEMENTED if it is not, and they lie on a device.
StatusOr<Array> Convert(Memory& memory, const Array& from, DType to);

// Calls visit(T()) with the C++ type of a compute type.
template <typename Visit>
void VisitComputeType(DType dtype, const Visit& visit) {
  if (dtype == DType::kFloat32) return visit(float());
  if (dtype == DType::kFloat64) return visit(double());
  if (dtype == DType::kUint64) return visit(uint64_t());
  SWIZZLE_CHECK(dtype == DType::kInt64);
  visit(int64_t());
}

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_ARRAY_H_
