#include "model_loader/regions/planned_region.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernels/base/integers.h"
#include "model_loader/regions/largest_batch.h"
#include "model_loader/semantics/strides.h"

namespace swizzle::regions {

using interpreter::Array;
using interpreter::Results;

namespace {

std::span<const int64_t> LeadingDims(const Array& array, size_t leading) {
  return std::span(array.shape).first(leading);
}

// The dimensions of an array behind the `leading` first.
std::span<const int64_t> RowOf(const Array& array, size_t leading) { return std::span(array.shape).subspan(leading); }

bool HaveAlikeRows(std::span<const Array> inputs, size_t leading) {
  return std::ranges::all_of(inputs, [&](const Array& input) {
    return std::ranges::equal(LeadingDims(input, leading), LeadingDims(inputs[0], leading));
  });
}

}  // namespace

std::optional<size_t> PlannedRegion::LeadingOf(const Network& network, std::span<const Array> inputs) const {
  std::optional<size_t> leading;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    const size_t rank = network.inputs[i].dims.size();
    if (inputs[i].dtype != network.inputs[i].dtype || shape.size() < rank + 1) return std::nullopt;
    const size_t its = shape.size() - rank;
    if (form_ == Form::kImages && its != 1) return std::nullopt;
    if (leading && *leading != its) return std::nullopt;
    // What has no elements needs no plan.
    if (std::ranges::count(RowOf(inputs[i], its), 0) > 0) return std::nullopt;
    leading = its;
  }
  return leading;
}

// A device's plans are for all that they take: each would have weights of its own.
int64_t PlannedRegion::BatchOf(int64_t rows) const {
  if (place_ != interpreter::Place::kHost) return std::numeric_limits<int64_t>::max();
  return std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows, 1)))), kMostRows);
}

std::shared_ptr<const Plan> PlannedRegion::PlanFor(std::span<const Array> inputs, size_t leading, int64_t rows) const {
  std::shared_ptr<const Plan> plan = this->plan();
  const std::vector<NetworkPort>& ports = plan->network().inputs;
  size_t fitting = 0;
  while (fitting < inputs.size() && std::ranges::equal(RowOf(inputs[fitting], leading), ports[fitting].dims)) ++fitting;
  if (fitting == inputs.size()) return plan;
  if (others_ == nullptr) return nullptr;
  RowShapes shapes;
  for (const Array& input : inputs) {
    const std::span<const int64_t> row = RowOf(input, leading);
    shapes.emplace_back(row.begin(), row.end());
  }
  return others_->Find(shapes, BatchOf(rows));
}

StatusOr<std::optional<Results>> PlannedRegion::Run(std::span<const Array> inputs, interpreter::Memory& memory,
                                                    Stream& stream, StepGate* gate) const {
  if (place_ != interpreter::Place::kHost) return std::nullopt;
  return RunIn(inputs, {memory, stream, gate, nullptr});
}

StatusOr<std::optional<Results>> PlannedRegion::RunOnDevice(std::span<const Array> inputs,
                                                            interpreter::Device& device) const {
  if (place_ != interpreter::Place::kDevice) return std::nullopt;
  return RunIn(inputs, {device.memory(), device.stream(), nullptr, &device});
}

StatusOr<std::optional<Results>> PlannedRegion::RunIn(std::span<const Array> inputs, Execution in) const {
  if (form_ == Form::kSequences) return RunSequences(inputs, in);
  const std::optional<size_t> leading = LeadingOf(plan()->network(), inputs);
  if (!leading) return std::nullopt;
  int64_t rows = ProductOf(inputs[0].shape, 0, static_cast<int64_t>(*leading));
  std::optional<RowCounts> counts;  // where rows have to be repeated, or there are none
  if (rows == 0 || !HaveAlikeRows(inputs, *leading)) {
    std::vector<Shape> own;
    for (const Array& input : inputs) {
      const std::span<const int64_t> dims = LeadingDims(input, *leading);
      own.emplace_back(dims.begin(), dims.end());
    }
    SWIZZLE_ASSIGN_OR_RETURN(counts, RowCounts::Of(std::move(own), plan()->network()));
    SWIZZLE_ASSIGN_OR_RETURN(rows, counts->most_rows());
  }
  std::shared_ptr<const Plan> plan = PlanFor(inputs, *leading, rows);
  if (plan == nullptr) return std::nullopt;
  StatusOr<Results> results = counts ? RunRepeated(*plan, inputs, *counts, in)
                                     : RunRows(*plan, inputs, LeadingDims(inputs[0], *leading), rows, in);
  SWIZZLE_RETURN_IF_ERROR(results);
  if (in.device != nullptr) in.device->Keep(std::move(plan));
  return std::optional(*std::move(results));
}

StatusOr<Results> PlannedRegion::RunRepeated(const Plan& plan, std::span<const Array> inputs, const RowCounts& counts,
                                             const Execution& in) const {
  const RowPlace place = {in.memory, in.stream, in.device};
  std::vector<Results> of_runs;
  for (const Shape& leading : counts.runs()) {
    std::vector<Array> repeated;
    for (const Array& input : inputs) {
      SWIZZLE_ASSIGN_OR_RETURN(repeated.emplace_back(), WithRows(input, leading, place));
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t rows, ElementCount(leading));
    SWIZZLE_ASSIGN_OR_RETURN(of_runs.emplace_back(), RunRows(plan, repeated, leading, rows, in));
  }
  Results results;
  for (size_t i = 0; i < counts.of_outputs().size(); ++i) {
    const NetworkPort& port = plan.network().outputs[i];
    const Shape& leading = counts.of_outputs()[i];
    if (std::ranges::find(leading, 0) != leading.end()) {
      Shape shape = leading;
      shape.insert(shape.end(), port.dims.begin(), port.dims.end());
      SWIZZLE_ASSIGN_OR_RETURN(results.emplace_back(), in.memory.Allocate(port.dtype, std::move(shape)));
    } else {
      SWIZZLE_ASSIGN_OR_RETURN(results.emplace_back(), WithRows(of_runs[counts.RunOf(i)][i], leading, place));
    }
  }
  return results;
}

StatusOr<Results> PlannedRegion::RunRows(const Plan& plan, std::span<const Array> inputs,
                                         std::span<const int64_t> leading, int64_t rows, const Execution& in) const {
  const int64_t parts = CeilDiv(rows, plan.max_batch());
  // A device's kernels read and write whole packs of 16 bytes, which parts of any number of rows would not start on.
  const int64_t most = place_ == interpreter::Place::kHost || parts == 1 ? CeilDiv(rows, parts) : plan.max_batch();
  Results results;
  results.reserve(plan.network().outputs.size());
  for (const NetworkPort& port : plan.network().outputs) {
    Shape shape;
    shape.reserve(leading.size() + port.dims.size());
    shape.assign(leading.begin(), leading.end());
    shape.insert(shape.end(), port.dims.begin(), port.dims.end());
    SWIZZLE_ASSIGN_OR_RETURN(results.emplace_back(), in.memory.Allocate(port.dtype, std::move(shape)));
  }
  const auto arena_bytes = static_cast<int64_t>(plan.ArenaBytes(most));
  SWIZZLE_ASSIGN_OR_RETURN(Array arena, in.memory.Allocate(DType::kUint8, {arena_bytes}));
  absl::InlinedVector<const std::byte*, 8> from(inputs.size());
  absl::InlinedVector<std::byte*, 8> to(results.size());
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
