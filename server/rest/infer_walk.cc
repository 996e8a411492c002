#include "server/rest/infer_walk.h"

#include <algorithm>
#include <limits>

#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

// More than any model has; each takes a hundred times the text that it has.
constexpr int kMostTensors = 1024, kMostDims = 64;

}  // namespace

void InferWalk::FinishForms() {
  for (int i = 0; i < message_.outputs_size(); ++i) {
    if (asked_[static_cast<size_t>(i)]) forms_.of[message_.outputs(i).name()] = *asked_[static_cast<size_t>(i)];
  }
}

bool InferWalk::FailAt(const Level& level, std::string_view wanted) {
  return Fail(InvalidArgument(QuotedName(level.key), " of ", WhereOf(level.place), " must be ", wanted));
}

bool InferWalk::Enter(Place place) {
  if (stack_.size() >= kMostJsonDepth) return Fail(InvalidArgument("the request nests deeper than ", kMostJsonDepth));
  stack_.push_back({.place = place});
  return true;
}

std::string InferWalk::WhereOf(Place place) const {
  if (place == Place::kInput) return Concat("input ", QuotedName(message_.inputs().rbegin()->name()));
  if (place == Place::kOutput) return Concat("output ", QuotedName(message_.outputs().rbegin()->name()));
  return "the request";
}

bool InferWalk::EnterUnknown(const Level& level, std::string_view wanted) {
  if (level.place != Place::kSkipped && std::ranges::find(kKeys, level.key) != kKeys.end()) {
    return FailAt(level, wanted);
  }
  return Enter(Place::kSkipped);
}

bool InferWalk::start_object(size_t) {
  if (stack_.empty()) return Enter(Place::kRequest);
  const Level& level = stack_.back();
  switch (level.place) {
    case Place::kInputs:
      return StartInput();
    case Place::kOutputs:
      return StartOutput();
    case Place::kRequest:
    case Place::kInput:
    case Place::kOutput:
      if (level.key == "parameters") return Enter(Place::kParameters);
      return EnterUnknown(level, "no object");
    case Place::kSkipped:
      return Enter(Place::kSkipped);
    case Place::kParameters:
      return Fail(InvalidArgument("parameter ", QuotedName(level.key), " must be a number, a string or a bool"));
    default:
      return Fail(InvalidArgument("a shape, or the data of an input, must hold no object"));
  }
}

bool InferWalk::start_array(size_t) {
  if (stack_.empty()) return Fail(InvalidArgument("the request must be an object"));
  const Level& level = stack_.back();
  switch (level.place) {
    case Place::kRequest:
      if (level.key == "inputs") return Enter(Place::kInputs);
      if (level.key == "outputs") return Enter(Place::kOutputs);
      return EnterUnknown(level, "no array");
    case Place::kInput:
      if (level.key == "shape") return Enter(Place::kShape);
      if (level.key == "data") return StartData();
      return EnterUnknown(level, "no array");
    case Place::kOutput:
      return EnterUnknown(level, "no array");
    case Place::kData:
      return Enter(Place::kData);
    case Place::kSkipped:
      return Enter(Place::kSkipped);
    case Place::kParameters:
      return Fail(InvalidArgument("parameter ", QuotedName(level.key), " must be a number, a string or a bool"));
    default:
      return Fail(InvalidArgument("inputs, outputs and shapes must hold no array"));
  }
}

bool InferWalk::key(std::string& name) {
  Level& level = stack_.back();
  level.key = std::move(name);
  if (level.place == Place::kSkipped || level.place == Place::kParameters) return true;
  const auto* const found = std::ranges::find(kKeys, level.key);
  if (found == kKeys.end()) return true;
  const uint32_t bit = 1u << (found - kKeys.begin());
  if ((level.seen & bit) != 0) return FailAt(level, "there once");
  level.seen |= bit;
  return true;
}

bool InferWalk::StartInput() {
  if (message_.inputs_size() >= kMostTensors) {
    return Fail(InvalidArgument("the request has more than ", kMostTensors, " inputs"));
  }
  message_.add_inputs();
  contents_.emplace_back();
  return Enter(Place::kInput);
}

bool InferWalk::StartOutput() {
  if (message_.outputs_size() >= kMostTensors) {
    return Fail(InvalidArgument("the request has more than ", kMostTensors, " outputs"));
  }
  message_.add_outputs();
  asked_.emplace_back();
  return Enter(Place::kOutput);
}

bool InferWalk::StartData() {
  JsonContents& contents = contents_.back();
  contents.has_data = true;
  const std::string& type = types_ != nullptr ? (*types_)[contents_.size() - 1] : input().datatype();
  contents.untyped = types_ == nullptr && type.empty();
  dtype_ = DTypeFromName(type);
  return Enter(Place::kData);
}

bool InferWalk::Scalar(const JsonScalar& value) {
  if (stack_.empty()) return Fail(InvalidArgument("the request must be an object"));
  const Level& level = stack_.back();
  switch (level.place) {
    case Place::kData:
      return AddElement(value);
    case Place::kShape:
      return AddDim(value);
    case Place::kParameters:
      return AddParameter(level.key, value);
    case Place::kSkipped:
      return true;
    case Place::kInputs:
    case Place::kOutputs:
      return Fail(InvalidArgument("inputs and outputs must be arrays of objects"));
    default:
      return ScalarOfObject(level, value);
  }
}

bool InferWalk::ScalarOfObject(const Level& level, const JsonScalar& value) {
  const auto* const text = std::get_if<std::string_view>(&value);
  const bool is_tensor = level.place != Place::kRequest;
  if ((level.key == "id" && !is_tensor) || (level.key == "name" && is_tensor) ||
      (level.key == "datatype" && level.place == Place::kInput)) {
    if (text == nullptr) return FailAt(level, "a string");
    std::string& target = level.key == "id"               ? *message_.mutable_id()
                          : level.place == Place::kOutput ? *output().mutable_name()
                          : level.key == "name"           ? *input().mutable_name()
                                                          : *input().mutable_datatype();
    target.assign(*text);
    return true;
  }
  if (level.key == "parameters") {
    return std::holds_alternative<std::nullptr_t>(value) || FailAt(level, "an object");
  }
  if (level.key == "outputs" && !is_tensor && std::holds_alternative<std::nullptr_t>(value)) return true;
  const bool wants_array = is_tensor ? level.place == Place::kInput && (level.key == "shape" || level.key == "data")
                                     : level.key == "inputs" || level.key == "outputs";
  return !wants_array || FailAt(level, "an array");
}

bool InferWalk::AddDim(const JsonScalar& value) {
  const auto* const dim = std::get_if<uint64_t>(&value);
  if (dim == nullptr || *dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return Fail(InvalidArgument("the shape of ", WhereOf(Place::kInput), " must hold whole numbers of 0 or more"));
  }
  if (input().shape_size() >= kMostDims) {
    return Fail(InvalidArgument("the shape of ", WhereOf(Place::kInput), " has more than ", kMostDims, " dimensions"));
  }
  input().add_shape(static_cast<int64_t>(*dim));
  return true;
}

bool InferWalk::AddElement(const JsonScalar& value) {
  if (!dtype_) return true;
  std::string& raw = contents_.back().raw;
  const size_t before = raw.size();
  if (!AppendJsonElement(value, *dtype_, raw)) {
    return Fail(
        InvalidArgument("the data of ", WhereOf(Place::kInput), " has an element that is no ", DTypeName(*dtype_)));
  }
  bytes_ += static_cast<int64_t>(raw.size() - before);
  if (bytes_ <= most_) return true;
  return Fail(MakeError(StatusCode::kResourceExhausted, "the request has tensors of more than ", most_,
                        " bytes, the most that this server takes"));
}

// What says how tensors travel is no parameter of the message.
bool InferWalk::TakeOwnParameter(const std::string& name, const JsonScalar& value, bool& taken) {
  const Place owner = stack_[stack_.size() - 2].place;
  taken = true;
  if (owner == Place::kInput && name == "binary_data_size") {
    const auto* const bytes = std::get_if<uint64_t>(&value);
    if (bytes == nullptr) return Fail(InvalidArgument("parameter 'binary_data_size' must be a number of bytes"));
    contents_.back().binary = *bytes;
    return true;
  }
  if ((owner == Place::kRequest && name == "binary_data_output") ||
      (owner == Place::kOutput && name == "binary_data")) {
    const auto* const truth = std::get_if<bool>(&value);
    if (truth == nullptr) return Fail(InvalidArgument("parameter ", QuotedName(name), " must be true or false"));
    if (owner == Place::kRequest) {
      forms_.binary = *truth;
    } else {
      asked_.back() = *truth;
    }
    return true;
  }
  taken = false;
  return true;
}

bool InferWalk::AddParameter(const std::string& name, const JsonScalar& value) {
  bool taken;
  if (!TakeOwnParameter(name, value, taken) || taken) return status_.ok();
  if (++parameters_ > kMostJsonParameters) {
    return Fail(InvalidArgument("the request has more than ", kMostJsonParameters, " parameters"));
  }
  const Place owner = stack_[stack_.size() - 2].place;
  Parameters& parameters = owner == Place::kInput    ? *input().mutable_parameters()
                           : owner == Place::kOutput ? *output().mutable_parameters()
                                                     : *message_.mutable_parameters();
  if (parameters.contains(name)) return Fail(InvalidArgument("parameter ", QuotedName(name), " is there twice"));
  inference::InferParameter& added = parameters[name];
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  if (const auto* const truth = std::get_if<bool>(&value)) {
    added.set_bool_param(*truth);
  } else if (const auto* const whole = std::get_if<int64_t>(&value)) {
    added.set_int64_param(*whole);
  } else if (const auto* const natural = std::get_if<uint64_t>(&value)) {
    *natural <= kLargest ? added.set_int64_param(static_cast<int64_t>(*natural)) : added.set_uint64_param(*natural);
  } else if (const auto* const real = std::get_if<double>(&value)) {
    added.set_double_param(*real);
  } else if (const auto* const text = std::get_if<std::string_view>(&value)) {
    added.set_string_param(std::string(*text));
  } else {
    return Fail(InvalidArgument("parameter ", QuotedName(name), " must be a number, a string or a bool"));
  }
  return true;
}

}  // namespace swizzle
