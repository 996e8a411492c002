#include "server/model/row_parts.h"

#include <algorithm>
#include <utility>

#include "server/model/request_inputs.h"

namespace swizzle {

int64_t RowsOfParts(const ModelSpec& spec, const Request& request) {
  if (spec.max_batch_size == 0) return request.rows;
  // Models of no elements take any number of rows at once: there is nothing to cut.
  const bool empty = std::ranges::any_of(request.inputs, [](const TensorView& view) { return view.bytes.empty(); });
  if (empty) return request.rows;
  int64_t most = spec.max_batch_size;
  const Shape& shape = request.inputs[0].shape;
  // Tokens that a mask leaves out are counted, too: more parts than need be do no harm.
  if (spec.max_batch_tokens > 0 && shape.size() > 1 && shape[1] > 0) {
    most = std::min(most, std::max<int64_t>(1, spec.max_batch_tokens / shape[1]));
  }
  return std::min(most, request.rows);
}

Status TakeRows(const ModelSpec& spec, std::span<const TensorView> inputs, int64_t first, int64_t rows,
                std::vector<TensorView>& part) {
  part.assign(inputs.begin(), inputs.end());
  for (size_t i = 0; i < part.size(); ++i) {
    TensorView& view = part[i];
    if (view.dtype == DType::kString) {
      return InvalidArgument(InputOf(spec, spec.inputs[i].name), " is BYTES and has a batch of ", view.shape[0],
                             "; the model takes at most ", spec.max_batch_size);
    }
    const size_t row_bytes = view.bytes.size() / static_cast<size_t>(view.shape[0]);
    view.bytes = view.bytes.subspan(row_bytes * static_cast<size_t>(first), row_bytes * static_cast<size_t>(rows));
    view.shape[0] = rows;
  }
  return absl::OkStatus();
}

Status AppendRows(const ModelSpec& spec, RowResults part, int64_t all, std::vector<std::string>& outputs,
                  std::vector<Shape>& shapes) {
  if (outputs.empty()) {
    outputs = std::move(part.outputs);
    shapes = std::move(part.shapes);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto rows = static_cast<size_t>(std::max<int64_t>(1, shapes[i].empty() ? 1 : shapes[i][0]));
      outputs[i].reserve(outputs[i].size() / rows * static_cast<size_t>(all));
    }
    return absl::OkStatus();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Shape& shape = shapes[i];
    const Shape& more = part.shapes[i];
    if (shape.empty() || more.empty() || !std::equal(shape.begin() + 1, shape.end(), more.begin() + 1, more.end())) {
      return MakeError(StatusCode::kInternal, "output '", spec.outputs[i].name, "' of model '", spec.name,
                       "' has shape ", ShapeText(more), " for some rows, and ", ShapeText(shape), " for others");
    }
    shape[0] += more[0];
    outputs[i] += part.outputs[i];
  }
  return absl::OkStatus();
}

}  // namespace swizzle
