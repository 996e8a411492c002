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
std::optional<int64_t> DeclaredRows(const std::vector<interpreter::Port>& ports) {
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

StatusOr<std::vector<TensorView>> InputsAmong(const interpreter::Program& program, const NpyArrays& arrays) {
  for (const auto& [name, array] : arrays) {
    const auto same = [&name = name](const interpreter::Port& port) { return port.name == name; };
    if (std::ranges::none_of(program.inputs(), same)) {
      return InvalidArgument("the model has no input ", QuotedName(name));
    }
  }
  std::vector<TensorView> views;
  for (const interpreter::Port& port : program.inputs()) {
    const auto found = arrays.find(port.name);
    if (found == arrays.end()) return InvalidArgument("input '", port.name, "' is missing");
    if (HasNan(found->second.view())) {
      return InvalidArgument("input '", port.name, "' has values that are no numbers (NaN)");
    }
    views.push_back(found->second.view());
  }
  return views;
}

StatusOr<RowBatches> RowBatches::Of(const interpreter::Program& program, const NpyArrays& arrays, int64_t most) {
  RowBatches batches;
  SWIZZLE_ASSIGN_OR_RETURN(batches.inputs_, InputsAmong(program, arrays));
  const std::optional<int64_t> rows = RowsOf(batches.inputs_), declared = DeclaredRows(program.inputs());
  if (rows == 0) return InvalidArgument("input '", program.inputs().front().name, "' has no rows");
  if (!declared || *declared == 0) return batches;
  if (*declared > 0) {
    if (rows.value_or(0) < 1 || *rows % *declared != 0) {
      const interpreter::Port& first = program.inputs().front();
      return InvalidArgument("input '", first.name, "' is ", ShapeText(batches.inputs_.front().shape),
                             "; the model runs batches of ", *declared,
                             ", so that rows must be a multiple of that, and as many for each input");
    }
    batches.rows_a_batch_ = *declared;
  } else {
    if (rows.value_or(0) < 1) return batches;
    batches.rows_a_batch_ = program.rows_are_independent() ? most : *rows;
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
