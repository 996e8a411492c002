#include "server/rest/infer_writer.h"

#include <optional>
#include <string>
#include <utility>

#include "server/rest/element_json.h"

namespace swizzle {
namespace {

using inference::InferParameter;
using Parameters = google::protobuf::Map<std::string, InferParameter>;

Status WriteParameter(const InferParameter& value, std::string& text) {
  switch (value.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      text += value.bool_param() ? "true" : "false";
      return absl::OkStatus();
    case InferParameter::kInt64Param:
      text += std::to_string(value.int64_param());
      return absl::OkStatus();
    case InferParameter::kUint64Param:
      text += std::to_string(value.uint64_param());
      return absl::OkStatus();
    case InferParameter::kDoubleParam: {
      const double number = value.double_param();
      return WriteJsonElements({reinterpret_cast<const char*>(&number), sizeof(number)}, DType::kFloat64, 1 << 10,
                               text);
    }
    default:
      return WriteJsonString(value.string_param(), text);
  }
}

// `more`: a member that stands before them; empty: none. Nothing where there is neither.
Status WriteParameters(const Parameters& parameters, std::string more, std::string& text) {
  if (parameters.empty() && more.empty()) return absl::OkStatus();
  text += ",\"parameters\":{" + more;
  bool first = more.empty();
  for (const auto& [key, value] : parameters) {
    if (!std::exchange(first, false)) text += ',';
    SWIZZLE_RETURN_IF_ERROR(WriteJsonString(key, text));
    text += ':';
    SWIZZLE_RETURN_IF_ERROR(WriteParameter(value, text));
  }
  text += '}';
  return absl::OkStatus();
}

class Writer {
 public:
  Writer(inference::ModelInferResponse& message, const OutputForms& forms, int64_t most)
      : message_(message), forms_(forms), most_(most) {}

  StatusOr<HttpAnswer> Write() {
    text_ = "{\"model_name\":";
    SWIZZLE_RETURN_IF_ERROR(WriteJsonString(message_.model_name(), text_));
    text_ += ",\"model_version\":";
    SWIZZLE_RETURN_IF_ERROR(WriteJsonString(message_.model_version(), text_));
    if (!message_.id().empty()) {
      text_ += ",\"id\":";
      SWIZZLE_RETURN_IF_ERROR(WriteJsonString(message_.id(), text_));
    }
    SWIZZLE_RETURN_IF_ERROR(WriteParameters(message_.parameters(), "", text_));
    text_ += ",\"outputs\":[";
    answer_.body.emplace_back();
    for (int i = 0; i < message_.outputs_size(); ++i) {
      if (i > 0) text_ += ',';
      const auto& output = message_.outputs(i);
      const Status status = WriteOutput(output, *message_.mutable_raw_output_contents(i));
      if (!status.ok()) return Unwritten(output.name(), status);
    }
    text_ += "]}";
    if (answer_.body.size() > 1) {
      answer_.content_type = "application/octet-stream";
      answer_.headers.emplace_back("Inference-Header-Content-Length", std::to_string(text_.size()));
    }
    answer_.body.front() = std::move(text_);
    return std::move(answer_);
  }

 private:
  using Output = inference::ModelInferResponse::InferOutputTensor;

  static Status Unwritten(const std::string& name, const Status& why) {
    return MakeError(why.code(), "output '", name, "' ", std::string(why.message()),
                     "; ask for it as bytes, by the parameter 'binary_data'");
  }

  Status WriteOutput(const Output& output, std::string& raw) {
    text_ += "{\"name\":";
    SWIZZLE_RETURN_IF_ERROR(WriteJsonString(output.name(), text_));
    text_ += ",\"datatype\":\"" + output.datatype() + "\",\"shape\":[";
    for (int i = 0; i < output.shape_size(); ++i) {
      if (i > 0) text_ += ',';
      text_ += std::to_string(output.shape(i));
    }
    text_ += ']';
    const bool shared = output.parameters().contains("shared_memory_region");
    const bool binary = !shared && forms_.IsBinary(output.name());
    const std::string size = binary ? Concat("\"binary_data_size\":", raw.size()) : "";
    SWIZZLE_RETURN_IF_ERROR(WriteParameters(output.parameters(), size, text_));
    if (binary) {
      answer_.body.push_back(std::move(raw));
    } else if (!shared) {
      const std::optional<DType> dtype = DTypeFromName(output.datatype());
      SWIZZLE_CHECK(dtype.has_value());
      text_ += ",\"data\":[";
      SWIZZLE_RETURN_IF_ERROR(WriteJsonElements(raw, *dtype, most_, text_));
      text_ += ']';
    }
    text_ += '}';
    return absl::OkStatus();
  }

  inference::ModelInferResponse& message_;
  const OutputForms& forms_;
  const int64_t most_;
  std::string text_;
  HttpAnswer answer_;
};

}  // namespace

StatusOr<HttpAnswer> WriteRestInfer(inference::ModelInferResponse& message, const OutputForms& forms, int64_t most) {
  return Writer(message, forms, most).Write();
}

}  // namespace swizzle
