#include "server/batching/batch.h"

#include <cstddef>
#include <utility>

#include "server/model/row_parts.h"

namespace swizzle {

Status Batch::MakeItems(const ModelSpec& spec) {
  rows = 0;
  items.clear();
  results.clear();
  results.resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    Pending& pending = *requests[i];
    const Request& request = pending.request;
    std::span<const TensorView> inputs = request.inputs;
    if (!pending.is_whole()) {
      SWIZZLE_RETURN_IF_ERROR(TakeRows(spec, inputs, pending.rows_before, pending.rows_taken, pending.part));
      inputs = pending.part;
    }
    items.push_back({inputs, pending.rows_taken, &results[i].outputs, &results[i].shapes, request.answers});
    rows += pending.rows_taken;
  }
  return absl::OkStatus();
}

Status Batch::FinishResult(size_t index, const ModelSpec& spec) {
  Pending& pending = *requests[index];
  Result& result = results[index];
  if (pending.is_whole()) {
    result.queue = start - pending.arrival;
    result.input = times.input;
    result.compute = times.compute;
    result.output = times.output;
    result.batch_rows = rows;
    return absl::OkStatus();
  }
  Result& all = pending.so_far;
  if (pending.rows_before == 0) all.queue = start - pending.arrival;
  all.input += times.input;
  all.compute += times.compute;
  all.output += times.output;
  all.batch_rows = rows;
  SWIZZLE_RETURN_IF_ERROR(AppendRows(spec, {std::move(result.outputs), std::move(result.shapes)}, pending.request.rows,
                                     all.outputs, all.shapes));
  if (pending.rows_left() == 0) result = std::move(all);
  return absl::OkStatus();
}

int64_t PositionsOf(const Pending& pending) {
  const Request& request = pending.request;
  if (request.tokens > 0) return pending.work_taken;
  if (request.inputs.empty()) return request.rows;
  const Shape& shape = request.inputs.front().shape;
  int64_t positions = shape.empty() ? 1 : shape.front();
  for (size_t i = 2; i < shape.size(); ++i) {
    // Possible where another dimension is 0: there is nothing to compute.
    if (__builtin_mul_overflow(positions, shape[i], &positions)) return 0;
  }
  return positions;
}

}  // namespace swizzle
