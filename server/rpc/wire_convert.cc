#include "server/rpc/wire_convert.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/model/request_inputs.h"
#include "server/model/wire_shape.h"
#include "server/rpc/classification.h"
#include "server/rpc/infer_parameters.h"
#include "server/rpc/wire_contents.h"

namespace swizzle {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;
using InputTensor = ModelInferRequest::InferInputTensor;
using Parameters = google::protobuf::Map<std::string, InferParameter>;
using Bytes = std::span<const std::byte>;

bool StartsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// ---- Parameters ----

Status ReadTimeout(const InferParameter& value, const ModelSpec& spec, Instant now, Request& request) {
  SWIZZLE_ASSIGN_OR_RETURN(const uint64_t timeout_us, UnsignedParameter("timeout", value));
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  const QueuePolicy& policy = spec.PolicyOf(request.level);
  if (timeout_us > 0 && policy.allow_timeout_override) {
    (policy.delays_late ? request.late_at : request.deadline) =
        now + absl::Microseconds(static_cast<int64_t>(std::min(timeout_us, kLargest)));
  }
  return absl::OkStatus();
}

Status ReadPriority(const InferParameter& value, const ModelSpec& spec, Request& request) {
  SWIZZLE_ASSIGN_OR_RETURN(const uint64_t priority, UnsignedParameter("priority", value));
  if (priority <= static_cast<uint64_t>(spec.priority_levels)) {
    if (priority > 0) request.level = static_cast<int>(priority);
    return absl::OkStatus();
  }
  const std::string levels = spec.priority_levels == 1 ? "one priority level; use 0 or 1"
                                                       : Concat(spec.priority_levels, " priority levels; use 0 to ",
                                                                spec.priority_levels, ", of which 1 is served first");
  return InvalidArgument("parameter 'priority' is ", priority, ", but model '", spec.name, "' has ", levels);
}

// The level first, whose policy says what a timeout does.
Status ReadScheduling(const Parameters& parameters, const ModelSpec& spec, Instant now, Request& request) {
  request.level = spec.default_priority;
  if (const auto priority = parameters.find("priority"); priority != parameters.end()) {
    SWIZZLE_RETURN_IF_ERROR(ReadPriority(priority->second, spec, request));
  }
  const auto timeout = parameters.find("timeout");
  return timeout == parameters.end() ? absl::OkStatus() : ReadTimeout(timeout->second, spec, now, request);
}

// Parameters without a meaning here are the client's own and are let pass, unless they would change what is computed.
// Those of sequences (sequence_id and its like) change nothing of a model that keeps no state, as in Triton.
Status ReadParameters(const Parameters& parameters, const ModelSpec& spec, Instant now, DecodedInfer& decoded) {
  for (const auto& [key, value] : parameters) {
    const bool marks_final = key == "triton_enable_empty_final_response", truncates = key == "swizzle_truncate";
    if (marks_final || truncates) {
      if (value.parameter_choice_case() != InferParameter::kBoolParam) {
        return InvalidArgument("parameter '", key, "' must be true or false");
      }
      (marks_final ? decoded.marks_final : decoded.request.text_options.truncate) = value.bool_param();
    } else if (key == "swizzle_prompt") {
      if (value.parameter_choice_case() != InferParameter::kStringParam) {
        return InvalidArgument("parameter '", key, "' must be a string, the name of a prompt");
      }
      decoded.request.text_options.prompt = value.string_param();
    } else if (StartsWith(key, "triton_")) {
      return InvalidArgument("parameter ", QuotedName(key), " is not known");
    }
  }
  return ReadScheduling(parameters, spec, now, decoded.request);
}

Status CheckTensorParameters(const Parameters& parameters, const std::string& tensor, bool shared) {
  for (const auto& [key, value] : parameters) {
    if (StartsWith(key, "shared_memory_") && !shared) {
      return InvalidArgument("parameter ", QuotedName(key), " of ", QuotedName(tensor),
                             " is not supported: this server takes no shared memory; send tensors in messages");
    }
    if (StartsWith(key, "triton_")) {
      return InvalidArgument("parameter ", QuotedName(key), " of ", QuotedName(tensor), " is not supported");
    }
  }
  return absl::OkStatus();
}

// How many classes are asked for in the place of an output; 0: none, but the tensor.
StatusOr<int64_t> ClassesParameter(const Parameters& parameters, const ModelSpec& spec, const TensorSpec& output,
                                   int64_t rows) {
  const auto found = parameters.find("classification");
  if (found == parameters.end()) return 0;
  SWIZZLE_ASSIGN_OR_RETURN(const uint64_t asked, UnsignedParameter("classification", found->second));
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  const auto classes = static_cast<int64_t>(std::min(asked, kLargest));
  SWIZZLE_RETURN_IF_ERROR(CheckClasses(spec, output, classes, rows));
  return classes;
}

// ---- Contents ----

Bytes BytesOf(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::span<const int64_t> DimsOf(const InputTensor& input) {
  return {input.shape().data(), static_cast<size_t>(input.shape_size())};
}

// ---- One request ----

class Decoder {
 public:
  Decoder(const ModelInferRequest& message, const ModelSpec& spec, const SharedRegions* shared)
      : message_(message), spec_(spec), shared_(shared) {}

  StatusOr<DecodedInfer> Decode(Instant now) {
    SWIZZLE_RETURN_IF_ERROR(ReadParameters(message_.parameters(), spec_, now, decoded_));
    SWIZZLE_RETURN_IF_ERROR(CheckContentsKind());
    SWIZZLE_RETURN_IF_ERROR(ReadInputs());
    SWIZZLE_RETURN_IF_ERROR(ReadOutputs());
    decoded_.request.owner = std::move(converted_);
    if (copied_ != nullptr) {
      decoded_.request.owner = std::make_shared<const std::pair<std::shared_ptr<const void>, decltype(copied_)>>(
          std::move(decoded_.request.owner), std::move(copied_));
    }
    return std::move(decoded_);
  }

 private:
  bool raw() const { return message_.raw_input_contents_size() > 0; }
  bool InSharedMemory(const InputTensor& input) const {
    return shared_ != nullptr && input.parameters().contains("shared_memory_region");
  }

  // Raw for every input, or for none.
  Status CheckContentsKind() const {
    if (!raw()) return absl::OkStatus();
    for (const InputTensor& input : message_.inputs()) {
      if (!input.has_contents() || ElementsInAllFields(input.contents()) == 0) continue;
      return InvalidArgument(InputOf(spec_, input.name()),
                             " has typed contents in a request with raw_input_contents; use one or the other");
    }
    const auto in_messages =
        std::ranges::count_if(message_.inputs(), [this](const InputTensor& input) { return !InSharedMemory(input); });
    if (message_.raw_input_contents_size() == in_messages) return absl::OkStatus();
    return InvalidArgument("the request to model '", spec_.name, "' has ", message_.inputs_size(), " inputs and ",
                           message_.raw_input_contents_size(), " raw_input_contents; give one for each input");
  }

  Status ReadInputs() {
    RequestInputs inputs(spec_, spec_.max_batch_size);
    inputs.Begin(decoded_.request);
    for (int i = 0; i < message_.inputs_size(); ++i) {
      const InputTensor& input = message_.inputs(i);
      SWIZZLE_RETURN_IF_ERROR(CheckTensorParameters(input.parameters(), input.name(), shared_ != nullptr));
      SWIZZLE_ASSIGN_OR_RETURN(const size_t index, inputs.Add(input.name(), input.datatype(), DimsOf(input)));
      SWIZZLE_RETURN_IF_ERROR(ReadContents(input, decoded_.request.inputs[index]));
    }
    return inputs.End();
  }

  Status ReadContents(const InputTensor& input, TensorView& view) {
    if (InSharedMemory(input)) return ReadSharedMemory(input, view);
    if (!raw()) return ReadTypedContents(input, view);
    view.bytes = BytesOf(message_.raw_input_contents(next_raw_++));
    return CheckBytes(spec_, input.name(), view);
  }

  Status ReadTypedContents(const InputTensor& input, TensorView& view) {
    const std::string_view field = ContentsField(view.dtype);
    if (field.empty()) {
      return InvalidArgument(InputOf(spec_, input.name()), " is ", DTypeName(view.dtype),
                             ", which has no typed contents; use raw_input_contents");
    }
    const StatusOr<int64_t> elements = ElementCount(view.shape);
    if (!elements.ok()) return Annotate(elements.status(), InputOf(spec_, input.name()));
    const int64_t needed = *elements;
    const int64_t count = ElementsIn(input.contents(), view.dtype);
    if (count != needed || ElementsInAllFields(input.contents()) != count) {
      return InvalidArgument(InputOf(spec_, input.name()), " has ", count, " elements in ", field, " and ",
                             ElementsInAllFields(input.contents()) - count, " in other fields; ", DTypeName(view.dtype),
                             " ", ShapeText(view.shape), " needs ", needed, " in ", field);
    }
    if (NeedsConversion(view.dtype)) return ConvertContents(input, view);
    view.bytes = ContentsInPlace(input.contents(), view.dtype);
    return absl::OkStatus();
  }

  Status ConvertContents(const InputTensor& input, TensorView& view) {
    std::optional<std::string> bytes = ConvertedContents(input.contents(), view.dtype);
    if (!bytes) {
      return InvalidArgument(InputOf(spec_, input.name()), " has an element in ", ContentsField(view.dtype),
                             " that is out of the range of ", DTypeName(view.dtype));
    }
    if (converted_ == nullptr) {
      converted_ = std::make_shared<std::vector<std::string>>();
      converted_->reserve(spec_.inputs.size());  // views into short strings stay valid
    }
    view.bytes = BytesOf(converted_->emplace_back(*std::move(bytes)));
    return absl::OkStatus();
  }

  // A copy, which the client cannot change any more.
  Status ReadSharedMemory(const InputTensor& input, TensorView& view) {
    if (input.has_contents() && ElementsInAllFields(input.contents()) > 0) {
      return InvalidArgument(InputOf(spec_, input.name()),
                             " has contents, and is in shared memory; use one or the other");
    }
    const StatusOr<SharedBytes> found = shared_->Find(input.parameters());
    if (!found.ok()) return Annotate(found.status(), InputOf(spec_, input.name()));
    const auto size = static_cast<size_t>(found->bytes);
    if (view.dtype != DType::kString) {  // before there is memory for them
      SWIZZLE_RETURN_IF_ERROR(CheckSize(spec_, input.name(), view, size));
    }
    if (copied_ == nullptr) copied_ = std::make_shared<std::vector<std::unique_ptr<std::byte[]>>>();
    std::byte* const copy = copied_->emplace_back(std::make_unique_for_overwrite<std::byte[]>(size)).get();
    SWIZZLE_RETURN_IF_ERROR(Annotate(found->region->Read(found->offset, {copy, size}), InputOf(spec_, input.name())));
    view.bytes = {copy, size};
    return view.dtype == DType::kString ? CheckBytes(spec_, input.name(), view) : absl::OkStatus();
  }

  Status ReadOutputs() {
    if (message_.outputs_size() == 0) {
      for (size_t i = 0; i < spec_.outputs.size(); ++i) decoded_.outputs.push_back({.index = i});
      return absl::OkStatus();
    }
    for (const auto& output : message_.outputs()) {
      SWIZZLE_RETURN_IF_ERROR(CheckTensorParameters(output.parameters(), output.name(), shared_ != nullptr));
      SWIZZLE_ASSIGN_OR_RETURN(const size_t index, IndexOfOutput(spec_, output.name()));
      if (std::ranges::find(decoded_.outputs, index, &RequestedOutput::index) != decoded_.outputs.end()) {
        return InvalidArgument("output ", QuotedName(output.name()), " of model '", spec_.name, "' is asked for twice");
      }
      SWIZZLE_ASSIGN_OR_RETURN(const int64_t classes, ClassesParameter(output.parameters(), spec_, spec_.outputs[index],
                                                                       decoded_.request.rows));
      decoded_.outputs.push_back({index, classes});
      SWIZZLE_RETURN_IF_ERROR(ReadPlace(output.parameters(), output.name()));
    }
    return absl::OkStatus();
  }

  // Of the last output.
  Status ReadPlace(const Parameters& parameters, const std::string& name) {
    if (shared_ == nullptr || !parameters.contains("shared_memory_region")) return absl::OkStatus();
    StatusOr<SharedBytes> found = shared_->Find(parameters);
    if (!found.ok())
      return Annotate(found.status(), Concat("output ", QuotedName(name), " of model '", spec_.name, "'"));
    decoded_.shared_outputs.resize(static_cast<size_t>(message_.outputs_size()));
    decoded_.shared_outputs[decoded_.outputs.size() - 1] = *std::move(found);
    return absl::OkStatus();
  }

  const ModelInferRequest& message_;
  const ModelSpec& spec_;
  const SharedRegions* const shared_;
  DecodedInfer decoded_;
  int next_raw_ = 0;                                                   // among raw_input_contents
  std::shared_ptr<std::vector<std::unique_ptr<std::byte[]>>> copied_;  // from shared memory
  std::shared_ptr<std::vector<std::string>> converted_;                // contents that could not be used in place
};

void SetMicroseconds(std::string_view key, absl::Duration value, Parameters& parameters) {
  parameters[std::string(key)].set_int64_param(absl::ToInt64Microseconds(value));
}

}  // namespace

StatusOr<DecodedInfer> DecodeInfer(const ModelInferRequest& message, const ModelSpec& spec, Instant now,
                                   const SharedRegions* shared) {
  return Decoder(message, spec, shared).Decode(now);
}

void EncodeInfer(const ModelInferRequest& message, const ModelSpec& spec, std::span<const RequestedOutput> outputs,
                 Result result, inference::ModelInferResponse& response) {
  response.set_model_name(spec.name);
  response.set_model_version(std::to_string(spec.version));
  response.set_id(message.id());
  SetMicroseconds("swizzle_queue_us", result.queue, *response.mutable_parameters());
  SetMicroseconds("swizzle_compute_us", result.compute, *response.mutable_parameters());
  for (const auto& [i, classes] : outputs) {
    auto& output = *response.add_outputs();
    output.set_name(spec.outputs[i].name);
    output.set_datatype(std::string(DTypeName(classes > 0 ? DType::kString : spec.outputs[i].dtype)));
    const Shape shape = classes > 0 ? result.shapes[i] : WireShape(spec, spec.outputs[i], result.shapes[i]);
    output.mutable_shape()->Add(shape.begin(), shape.end());
    response.add_raw_output_contents(std::move(result.outputs[i]));
  }
}

}  // namespace swizzle
