#include "server/model/request_inputs.h"

#include <algorithm>
#include <limits>

#include "model_loader/files/printable_name.h"
#include "server/model/input_default.h"
#include "server/model/string_tensor.h"
#include "server/model/wire_shape.h"

namespace swizzle {
namespace {

// "'x', 'y'", as many as a message bears.
std::string NamesOf(std::span<const TensorSpec> tensors) {
  static constexpr size_t kMostNamed = 8;
  std::string names;
  for (size_t i = 0; i < std::min(tensors.size(), kMostNamed); ++i) {
    names += Concat(i == 0 ? "" : ", ", QuotedName(tensors[i].name));
  }
  return tensors.size() > kMostNamed ? names + " and more" : names;
}

}  // namespace

std::string InputOf(const ModelSpec& spec, std::string_view input) {
  return Concat("input ", QuotedName(input), " of model '", spec.name, "'");
}

Status CheckSize(const ModelSpec& spec, std::string_view input, const TensorView& view, size_t bytes) {
  const StatusOr<int64_t> elements = ElementCount(view.shape);
  if (!elements.ok()) return Annotate(elements.status(), InputOf(spec, input));
  size_t needed;
  if (__builtin_mul_overflow(static_cast<size_t>(*elements), ElementBytes(view.dtype), &needed)) {
    return InvalidArgument(InputOf(spec, input), " has shape ", ShapeText(view.shape), ", which no message can hold");
  }
  if (bytes == needed) return absl::OkStatus();
  return InvalidArgument(InputOf(spec, input), " has ", bytes, " bytes; ", DTypeName(view.dtype), " ",
                         ShapeText(view.shape), " needs ", needed);
}

Status CheckBytes(const ModelSpec& spec, std::string_view input, const TensorView& view) {
  if (view.dtype != DType::kString) return CheckSize(spec, input, view, view.bytes.size());
  const StatusOr<int64_t> elements = ElementCount(view.shape);
  if (!elements.ok()) return Annotate(elements.status(), InputOf(spec, input));
  if (IsStringTensor(view.bytes, *elements)) return absl::OkStatus();
  return InvalidArgument(InputOf(spec, input), " has ", view.bytes.size(), " bytes that are not the ", *elements,
                         " (uint32 length, bytes) elements of BYTES ", ShapeText(view.shape));
}

StatusOr<size_t> IndexOfOutput(const ModelSpec& spec, std::string_view name) {
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    if (spec.outputs[i].name == name) return i;
  }
  return InvalidArgument("model '", spec.name, "' has no output ", QuotedName(name), "; it has ",
                         NamesOf(spec.outputs));
}

void RequestInputs::Begin(Request& request) {
  request_ = &request;
  request.inputs.resize(spec_.inputs.size());
  request.rows = 1;
  seen_.assign(spec_.inputs.size(), false);
  rows_known_ = false;
}

StatusOr<size_t> RequestInputs::Add(std::string_view name, std::string_view datatype, std::span<const int64_t> shape) {
  SWIZZLE_ASSIGN_OR_RETURN(const size_t index, IndexOf(name));
  if (seen_[index]) return InvalidArgument(InputOf(spec_, name), " is there twice");
  seen_[index] = true;
  const TensorSpec& input = spec_.inputs[index];
  TensorView& view = request_->inputs[index];
  view.dtype = input.dtype;
  if (datatype != DTypeName(input.dtype)) {
    return InvalidArgument(InputOf(spec_, name), " has datatype ", QuotedName(datatype), "; ", DTypeName(input.dtype),
                           " is expected");
  }
  view.shape.assign(shape.begin(), shape.end());
  SWIZZLE_RETURN_IF_ERROR(CheckShape(input, view));
  return index;
}

Status RequestInputs::End() {
  for (size_t i = 0; i < seen_.size(); ++i) {
    const TensorSpec& input = spec_.inputs[i];
    TensorView& view = request_->inputs[i];
    if (!seen_[i]) {
      if (input.default_value == nullptr) return InvalidArgument(InputOf(spec_, input.name), " is missing");
      view = DefaultView(spec_, input, request_->rows);
    } else if (input.reshaped) {
      view.shape = ModelShape(spec_, input, view.shape);
    }
  }
  return absl::OkStatus();
}

StatusOr<size_t> RequestInputs::IndexOf(std::string_view name) const {
  for (size_t i = 0; i < spec_.inputs.size(); ++i) {
    if (spec_.inputs[i].name == name) return i;
  }
  return InvalidArgument("model '", spec_.name, "' has no input ", QuotedName(name), "; it has ",
                         NamesOf(spec_.inputs));
}

Status RequestInputs::CheckShape(const TensorSpec& input, const TensorView& view) {
  if (ShapeFits(spec_, input, view.shape)) {
    return BatchDims(spec_) == 0 ? absl::OkStatus() : CheckRows(input, view.shape.front());
  }
  static constexpr size_t kMostShown = 16;
  const Shape shown(view.shape.begin(), view.shape.begin() + std::min(view.shape.size(), kMostShown));
  return InvalidArgument(InputOf(spec_, input.name), " has shape ", ShapeText(shown),
                         view.shape.size() > kMostShown ? " and more" : "", "; ", ShapeText(WireDims(spec_, input)),
                         " is expected");
}

// All inputs agree on the batch dimension.
Status RequestInputs::CheckRows(const TensorSpec& input, int64_t rows) {
  if (rows < 1 || rows > most_rows_) {
    return InvalidArgument(InputOf(spec_, input.name), " has a batch of ", rows, "; it must be ",
                           most_rows_ == std::numeric_limits<int64_t>::max() ? std::string("at least 1")
                                                                             : Concat("from 1 to ", most_rows_));
  }
  if (rows_known_ && rows != request_->rows) {
    return InvalidArgument(InputOf(spec_, input.name), " has a batch of ", rows, ", and another input one of ",
                           request_->rows);
  }
  rows_known_ = true;
  request_->rows = rows;
  return absl::OkStatus();
}

}  // namespace swizzle
