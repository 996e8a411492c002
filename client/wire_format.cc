#include "client/wire_format.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace swizzle::client {
namespace {

absl::Duration Microseconds(const inference::ModelInferResponse& message, const char* parameter) {
  const auto found = message.parameters().find(parameter);
  return found == message.parameters().end() ? absl::ZeroDuration() : absl::Microseconds(found->second.int64_param());
}

template <typename Messages>
std::vector<TensorMetadata> TensorsOf(const Messages& messages) {
  std::vector<TensorMetadata> tensors;
  for (const auto& message : messages) {
    tensors.push_back({message.name(), message.datatype(), Shape(message.shape().begin(), message.shape().end())});
  }
  return tensors;
}

}  // namespace

absl::Status ToWire(const InferRequest& request, inference::ModelInferRequest& message) {
  message.set_model_name(request.model);
  message.set_model_version(request.version);
  message.set_id(request.id);
  for (const Tensor& tensor : request.inputs) {
    if (absl::Status status = Check(tensor); !status.ok()) return status;
    auto* input = message.add_inputs();
    input->set_name(tensor.name);
    input->set_datatype(tensor.datatype);
    for (const int64_t dimension : tensor.shape) input->add_shape(dimension);
    message.add_raw_input_contents(tensor.data);
  }
  for (const std::string& name : request.outputs) message.add_outputs()->set_name(name);
  return absl::OkStatus();
}

absl::StatusOr<InferResult> FromWire(inference::ModelInferResponse&& message) {
  if (message.outputs_size() != message.raw_output_contents_size()) {
    return absl::InternalError(absl::StrCat("the server sent ", message.outputs_size(), " outputs, but the bytes of ",
                                            message.raw_output_contents_size()));
  }
  InferResult result{message.model_name(),
                     message.model_version(),
                     message.id(),
                     {},
                     Microseconds(message, "swizzle_queue_us"),
                     Microseconds(message, "swizzle_compute_us")};
  for (int i = 0; i < message.outputs_size(); ++i) {
    const auto& output = message.outputs(i);
    Tensor tensor{output.name(), output.datatype(), Shape(output.shape().begin(), output.shape().end()),
                  std::move(*message.mutable_raw_output_contents(i))};
    if (absl::Status status = Check(tensor); !status.ok()) {
      return absl::InternalError(absl::StrCat("the server's answer is wrong: ", status.message()));
    }
    result.outputs.push_back(std::move(tensor));
  }
  return result;
}

StreamAnswer FromWire(inference::ModelStreamInferResponse&& message) {
  inference::ModelInferResponse& response = *message.mutable_infer_response();
  StreamAnswer answer{response.id(), InferResult()};
  const auto& parameters = response.parameters();
  if (!message.error_message().empty()) {
    const auto code = parameters.find("swizzle_status_code");
    answer.result = absl::Status(code == parameters.end() ? absl::StatusCode::kUnknown
                                                          : static_cast<absl::StatusCode>(code->second.int64_param()),
                                 message.error_message());
    answer.last = true;
    return answer;
  }
  const auto last = parameters.find("triton_final_response");
  answer.last = last != parameters.end() && last->second.bool_param();
  answer.result = FromWire(std::move(response));
  return answer;
}

std::vector<ListedModel> FromWire(const inference::RepositoryIndexResponse& message) {
  std::vector<ListedModel> models;
  for (const auto& model : message.models()) {
    models.push_back({model.name(), model.version(), model.state(), model.reason()});
  }
  return models;
}

ServerMetadata FromWire(const inference::ServerMetadataResponse& message) {
  return {message.name(), message.version(), {message.extensions().begin(), message.extensions().end()}};
}

ModelMetadata FromWire(const inference::ModelMetadataResponse& message) {
  return {message.name(),
          {message.versions().begin(), message.versions().end()},
          message.platform(),
          TensorsOf(message.inputs()),
          TensorsOf(message.outputs()),
          {message.properties().begin(), message.properties().end()}};
}

}  // namespace swizzle::client
