#include "model_loader/calibration/row_batches.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "model_loader/files/printable_name.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle {
namespace {

// The rows that all inputs have together, or nothing where they don't.
std::optional<int64_t> RowsOf(const std::vector<TensorView>& inputs) {
  std::optional<int64_t> rows;
  for (const TensorView& input : inputs) {
    if (input.shape.empty() || rows.value_or(input.shape[0]) != input.shape[0]) return std::nullopt;
    rows = input.shape[0];
  }
  return rows;
}

bool HasNan(const TensorView& view) {
  if (!IsFloating(view.dtype)) return false;
  bool found = false;
  VisitElementType(view.dtype, [&]<typename T>(T element) {
    for (size_t at = 0; at < view.bytes.size() && !found; at += sizeof(T)) {
      std::memcpy(&element, view.bytes.data() + at, sizeof(T));
      found = std::isnan(static_cast<double>(Widened(element)));
    }
  });
  return found;
}

// The first dimension that all inputs are declared with, -1 where that is free; nothing where they differ.
std::optional<int64_t> DeclaredRows(std::span<const interpreter::Port> ports) {
  std::optional<int64_t> rows;
  for (const interpreter::Port& port : ports) {
    if (!port.shape || port.shape->empty() || rows.value_or(port.shape->front()) != port.shape->front()) {
      return std::nullopt;
    }
    rows = port.shape->front();
  }
  return rows;
}

}  // namespace

StatusOr<std::vector<TensorView>> InputsAmong(std::span<const interpreter::Port> inputs, const NpyArrays& arrays) {
  std::string names;
  for (const interpreter::Port& port : inputs) names += Concat(names.empty() ? "" : ", ", QuotedName(port.name));
  for (const auto& array : arrays) {
    if (std::ranges::find(inputs, array.first, &interpreter::Port::name) != inputs.end()) continue;
    return InvalidArgument("the model has no input ", QuotedName(array.first), "; it has ", names);
  }
  std::vector<TensorView> views;
  for (const interpreter::Port& port : inputs) {
    const auto found = arrays.find(port.name);
    if (found == arrays.end()) return InvalidArgument("input '", port.name, "' is missing");
    views.push_back(found->second.view());
  }
  return views;
}

Status RefuseNan(std::span<const interpreter::Port> inputs, std::span<const TensorView> views) {
  for (size_t i = 0; i < views.size(); ++i) {
    if (!HasNan(views[i])) continue;
    return InvalidArgument("input '", inputs[i].name, "' has values that are no numbers (NaN)");
  }
  return absl::OkStatus();
}

StatusOr<RowBatches> RowBatches::Of(const ModelInterface& model, const NpyArrays& arrays, int64_t most) {
  RowBatches batches;
  SWIZZLE_ASSIGN_OR_RETURN(batches.inputs_, InputsAmong(model.inputs, arrays));
  SWIZZLE_RETURN_IF_ERROR(RefuseNan(model.inputs, batches.inputs_));
  const std::optional<int64_t> rows = RowsOf(batches.inputs_), declared = DeclaredRows(model.inputs);
  if (rows == 0) return InvalidArgument("input '", model.inputs.front().name, "' has no rows");
  if (!declared || *declared == 0) return batches;
  if (*declared > 0) {
    if (rows.value_or(0) < 1 || *rows % *declared != 0) {
      const interpreter::Port& first = model.inputs.front();
      return InvalidArgument("input '", first.name, "' is ", ShapeText(batches.inputs_.front().shape),
                             "; the model runs batches of ", *declared,
                             ", so that rows must be a multiple of that, and as many for each input");
    }
    batches.rows_a_batch_ = *declared;
  } else {
    if (rows.value_or(0) < 1) return batches;
    batches.rows_a_batch_ = model.batch_obstacle ? *rows : most;
  }
  batches.rows_ = *rows;
  return batches;
}

std::vector<TensorView> RowBatches::Batch(int64_t index) const {
  if (rows_ == 0) return inputs_;
  const int64_t begin = index * rows_a_batch_, count = std::min(rows_a_batch_, rows_ - begin);
  std::vector<TensorView> batch = inputs_;
  for (TensorView& input : batch) {
    const size_t row_bytes = input.bytes.size() / static_cast<size_t>(rows_);
    input.shape[0] = count;
    input.bytes = input.bytes.subspan(static_cast<size_t>(begin) * row_bytes, static_cast<size_t>(count) * row_bytes);
  }
  return batch;
}

}  // namespace swizzle
