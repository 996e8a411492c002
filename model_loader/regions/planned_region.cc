#include "model_loader/regions/planned_region.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/integers.h"
#include "model_loader/regions/largest_batch.h"

namespace swizzle::regions {

using fallback::Array;
using fallback::Results;

std::optional<std::vector<Shape>> PlannedRegion::LeadingOf(const Network& network, std::span<const Array> inputs,
                                                           RowShapes& rows) const {
  std::vector<Shape> leading;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    const size_t rank = network.inputs[i].dims.size();
    if (inputs[i].dtype != network.inputs[i].dtype || shape.size() < rank + 1) return std::nullopt;
    const auto cut = shape.end() - static_cast<std::ptrdiff_t>(rank);
    leading.emplace_back(shape.begin(), cut);
    if (form_ == Form::kImages && leading[i].size() != 1) return std::nullopt;
    if (leading[i].size() != leading.front().size()) return std::nullopt;
    if (std::find(cut, shape.end(), 0) != shape.end()) return std::nullopt;  // what has no elements needs no plan
    rows.emplace_back(cut, shape.end());
  }
  return leading;
}

// A device's plans are for all that they take: each would have weights of its own.
int64_t PlannedRegion::BatchOf(int64_t rows) const {
  if (place_ != fallback::Place::kHost) return std::numeric_limits<int64_t>::max();
  return std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows))), kMostRows);
}

StatusOr<std::optional<Results>> PlannedRegion::Run(std::span<const Array> inputs, fallback::Memory& memory,
                                                    Stream& stream, StepGate* gate) const {
  if (place_ != fallback::Place::kHost) return std::nullopt;
  return RunIn(inputs, {memory, stream, gate, nullptr});
}

StatusOr<std::optional<Results>> PlannedRegion::RunOnDevice(std::span<const Array> inputs,
                                                            fallback::Device& device) const {
  if (place_ != fallback::Place::kDevice) return std::nullopt;
  return RunIn(inputs, {device.memory(), device.stream(), nullptr, &device});
}

StatusOr<std::optional<Results>> PlannedRegion::RunIn(std::span<const Array> inputs, Execution in) const {
  RowShapes row_shapes;
  std::shared_ptr<const Plan> plan = this->plan();
  std::optional<std::vector<Shape>> leading = LeadingOf(plan->network(), inputs, row_shapes);
  if (!leading) return std::nullopt;
  SWIZZLE_ASSIGN_OR_RETURN(const RowCounts counts, RowCounts::Of(*std::move(leading)));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t rows, counts.rows());
  if (!std::ranges::equal(row_shapes, plan->network().inputs, {}, {}, &NetworkPort::dims)) {
    plan = others_ == nullptr ? nullptr : others_->Find(row_shapes, BatchOf(std::max<int64_t>(rows, 1)));
  }
  if (plan == nullptr) return std::nullopt;
  StatusOr<Results> results = counts.AreAlike() && rows > 0 ? RunRows(*plan, inputs, counts.all(), rows, in)
                                                            : RunRepeated(*plan, inputs, counts, in);
  SWIZZLE_RETURN_IF_ERROR(results);
  if (in.device != nullptr) in.device->Keep(std::move(plan));
  return std::optional(*std::move(results));
}

StatusOr<Results> PlannedRegion::RunRepeated(const Plan& plan, std::span<const Array> inputs, const RowCounts& counts,
                                             const Execution& in) const {
  const RowPlace place = {in.memory, in.stream, in.device};
  const std::vector<Shape> of_outputs = counts.OfOutputs(plan.network());
  const auto is_empty = [](const Shape& shape) { return std::ranges::find(shape, 0) != shape.end(); };
  Results results(of_outputs.size());
  if (!std::ranges::all_of(of_outputs, is_empty)) {
    Shape leading = counts.all();
    std::ranges::replace(leading, 0, 1);  // what is made of nothing is not looked at
    std::vector<Array> repeated;
    for (const Array& input : inputs) {
      SWIZZLE_ASSIGN_OR_RETURN(repeated.emplace_back(), WithRows(input, leading, place));
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t rows, ElementCount(leading));
    SWIZZLE_ASSIGN_OR_RETURN(results, RunRows(plan, repeated, leading, rows, in));
  }
  for (size_t i = 0; i < of_outputs.size(); ++i) {
    const NetworkPort& port = plan.network().outputs[i];
    if (is_empty(of_outputs[i])) {
      Shape shape = of_outputs[i];
      shape.insert(shape.end(), port.dims.begin(), port.dims.end());
      SWIZZLE_ASSIGN_OR_RETURN(results[i], in.memory.Allocate(port.dtype, std::move(shape)));
    } else {
      SWIZZLE_ASSIGN_OR_RETURN(results[i], WithRows(results[i], of_outputs[i], place));
    }
  }
  return results;
}

StatusOr<Results> PlannedRegion::RunRows(const Plan& plan, std::span<const Array> inputs, const Shape& leading,
                                         int64_t rows, const Execution& in) const {
  const int64_t parts = CeilDiv(rows, plan.max_batch());
  // A device's kernels read and write whole packs of 16 bytes, which parts of any number of rows would not start on.
  const int64_t most = place_ == fallback::Place::kHost || parts == 1 ? CeilDiv(rows, parts) : plan.max_batch();
  Results results;
  for (const NetworkPort& port : plan.network().outputs) {
    Shape shape = leading;
    shape.insert(shape.end(), port.dims.begin(), port.dims.end());
    SWIZZLE_ASSIGN_OR_RETURN(results.emplace_back(), in.memory.Allocate(port.dtype, std::move(shape)));
  }
  const auto arena_bytes = static_cast<int64_t>(plan.ArenaBytes(most));
  SWIZZLE_ASSIGN_OR_RETURN(Array arena, in.memory.Allocate(DType::kUint8, {arena_bytes}));
  std::vector<const std::byte*> from(inputs.size());
  std::vector<std::byte*> to(results.size());
  for (int64_t first = 0; first < rows; first += most) {
    const auto start = [&](const Array& array) { return array.data.get() + array.bytes() / rows * first; };
    std::ranges::transform(inputs, from.begin(), start);
    std::ranges::transform(results, to.begin(), start);
    const std::span<std::byte> bytes(arena.data.get(), static_cast<size_t>(arena_bytes));
    SWIZZLE_RETURN_IF_ERROR(plan.RunOn(in.stream, {bytes, from, to, in.gate}, BatchSize(std::min(most, rows - first))));
  }
  return results;
}

}  // namespace swizzle::regions
