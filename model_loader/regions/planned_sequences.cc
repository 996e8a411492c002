#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "kernels/base/integers.h"
#include "model_loader/plan/run/plan_runner.h"
#include "model_loader/regions/largest_batch.h"
#include "model_loader/regions/planned_region.h"

namespace swizzle::regions {

using interpreter::Array;
using interpreter::Results;

namespace {

struct Counts {
  int64_t rows = 0, length = 0;  // sequences, and tokens of each
};

// How many sequences inputs are, [rows, length, ...] or [rows, ...] where the length is fixed, and how long; nothing
// where they are not the network's.
std::optional<Counts> CountsOf(const Network& network, std::span<const Array> inputs) {
  if (inputs.empty() || inputs[0].shape.size() < 2) return std::nullopt;
  const int64_t length = network.sequences->length;
  const Counts counts = {inputs[0].shape[0], length > 0 ? length : inputs[0].shape[1]};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NetworkPort& port = network.inputs[i];
    if (inputs[i].dtype != port.dtype || inputs[i].shape != DimsAt(network, port, counts.rows, counts.length))
      return std::nullopt;
  }
  return counts.length > 0 ? std::optional(counts) : std::nullopt;
}

// How many rows fill whole packs in each array; a power of two.
int64_t RowsOfPacks(std::span<const Array> inputs, std::span<const Array> results, int64_t rows) {
  int64_t of_all = 1;
  for (const std::span<const Array> arrays : {inputs, results}) {
    for (const Array& array : arrays) of_all = std::max(of_all, RowsOfPack(array.bytes() / rows));
  }
  return of_all;
}

// What Sequences says of equally long sequences, in one array: their begins, and each token's position and owner.
class EvenSequences {
 public:
  static StatusOr<EvenSequences> Make(const Counts& most, interpreter::Memory& host, interpreter::Device* device) {
    const int64_t tokens = most.rows * most.length;
    SWIZZLE_ASSIGN_OR_RETURN(Array numbers, host.Allocate(DType::kInt32, {most.rows + 1 + 2 * tokens}));
    const std::span<int32_t> to = numbers.Mutable<int32_t>();
    int32_t* const begins = to.data();
    int32_t* const positions = begins + most.rows + 1;
    int32_t* const owners = positions + tokens;
    for (int64_t row = 0; row <= most.rows; ++row) begins[row] = static_cast<int32_t>(row * most.length);
    for (int64_t row = 0; row < most.rows; ++row) {
      std::iota(positions + begins[row], positions + begins[row + 1], 0);
      std::fill(owners + begins[row], owners + begins[row + 1], static_cast<int32_t>(row));
    }
    if (device != nullptr) {
      SWIZZLE_ASSIGN_OR_RETURN(numbers, device->Upload(numbers));
    }
    return EvenSequences(most, std::move(numbers), device != nullptr);
  }

  // The first of them.
  Sequences First(int64_t rows) const {
    const auto count = static_cast<size_t>(rows * most_.length);
    const auto* const begins = reinterpret_cast<const int32_t*>(numbers_.data.get());
    const int32_t* const positions = begins + most_.rows + 1;
    const int32_t* const owners = positions + most_.rows * most_.length;
    return {{begins, static_cast<size_t>(rows) + 1}, {positions, count}, {}, {owners, on_device_ ? count : 0}};
  }

 private:
  EvenSequences(const Counts& most, Array numbers, bool on_device)
      : most_(most), numbers_(std::move(numbers)), on_device_(on_device) {}

  Counts most_;
  Array numbers_;
  bool on_device_;
};

}  // namespace

StatusOr<std::optional<Results>> PlannedRegion::RunSequences(std::span<const Array> inputs, const Execution& in) const {
  std::shared_ptr<const Plan> plan = this->plan();
  const Network& network = plan->network();
  const std::optional<Counts> counts = CountsOf(network, inputs);
  if (!counts || counts->length > plan->max_tokens()) return std::nullopt;
  if (plan->PositionLimit() > 0 && counts->length > plan->PositionLimit()) return std::nullopt;
  Results results;
  for (const NetworkPort& port : network.outputs) {
    SWIZZLE_ASSIGN_OR_RETURN(results.emplace_back(),
                             in.memory.Allocate(port.dtype, DimsAt(network, port, counts->rows, counts->length)));
  }
  if (counts->rows == 0) return std::optional(std::move(results));
  int64_t fitting = std::min(plan->max_batch(), plan->max_tokens() / counts->length);
  // On a device parts begin at multiples of 16 bytes, as kernels read them (largest_batch.h).
  if (in.device != nullptr && fitting < counts->rows) fitting -= fitting % RowsOfPacks(inputs, results, counts->rows);
  if (fitting == 0) return std::nullopt;
  const int64_t parts = CeilDiv(counts->rows, fitting);
  const int64_t most = in.device == nullptr || parts == 1 ? CeilDiv(counts->rows, parts) : fitting;
  SWIZZLE_ASSIGN_OR_RETURN(
      const EvenSequences sequences,
      EvenSequences::Make({most, counts->length}, in.device == nullptr ? in.memory : in.device->host(), in.device));
  const auto arena_bytes = static_cast<int64_t>(plan->ArenaBytes({most, most * counts->length}));
  SWIZZLE_ASSIGN_OR_RETURN(Array arena, in.memory.Allocate(DType::kUint8, {arena_bytes}));
  const std::span<std::byte> bytes(arena.data.get(), static_cast<size_t>(arena_bytes));
  absl::InlinedVector<const std::byte*, 8> from(inputs.size());
  absl::InlinedVector<std::byte*, 8> to(results.size());
  for (int64_t first = 0; first < counts->rows; first += most) {
    const int64_t rows = std::min(most, counts->rows - first);
    const auto start = [&](const Array& array) { return array.data.get() + array.bytes() / counts->rows * first; };
    std::ranges::transform(inputs, from.begin(), start);
    std::ranges::transform(results, to.begin(), start);
    const Sequences part = sequences.First(rows);
    SWIZZLE_RETURN_IF_ERROR(
        plan->RunOn(in.stream, {bytes, from, to, in.gate, &part}, BatchSize(rows, rows * counts->length)));
  }
  if (in.device != nullptr) in.device->Keep(std::move(plan));
  return std::optional(std::move(results));
}

}  // namespace swizzle::regions
