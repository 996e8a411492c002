#include "server/rest/infer_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "model_loader/files/printable_name.h"
#include "proto/grpc_service.pb.h"
#include "server/rest/infer_walk.h"
#include "server/rpc/received_message.h"
#include "server/rpc/wire_response.h"

namespace swizzle {
namespace {

using inference::ModelInferRequest;

// Tensors together that are copied into the message rather than kept beside it.
constexpr size_t kCopiedBytes = 16 << 10;

Status Walk(std::string_view json, InferWalk& walk) {
  const bool read = nlohmann::json::sax_parse(json.begin(), json.end(), &walk);
  SWIZZLE_RETURN_IF_ERROR(walk.status());
  if (!read) return InvalidArgument("the request is no JSON");
  walk.FinishForms();
  return absl::OkStatus();
}

// It reads a body without a copy.
grpc::Slice PartOf(const std::shared_ptr<const HttpBody>& body, size_t offset, size_t bytes) {
  auto* const held = new std::shared_ptr<const HttpBody>(body);
  const auto drop = [](void* shared) { delete static_cast<std::shared_ptr<const HttpBody>*>(shared); };
  return grpc::Slice(const_cast<char*>(body->text().data()) + offset, bytes, drop, held);
}

// A request's message and contents, and the body behind its JSON, as one message.
class Assembly {
 public:
  Assembly(ModelInferRequest& message, const std::shared_ptr<const HttpBody>& body, size_t json_bytes)
      : message_(message), body_(body), at_(json_bytes), copies_(body->size - json_bytes <= kCopiedBytes) {}

  Status Add(const std::string& name, bool shared, JsonContents& contents) {
    if (contents.has_data + contents.binary.has_value() + shared != 1) {
      return InvalidArgument(
          "input ", QuotedName(name),
          " must have one of 'data', the parameter 'binary_data_size', and a region of shared memory");
    }
    if (shared) return absl::OkStatus();
    if (contents.has_data) {
      if (copies_ && contents.raw.size() <= kCopiedBytes) {
        message_.add_raw_input_contents(std::move(contents.raw));
      } else {
        Append(OwningSlice(std::move(contents.raw)));
      }
      return absl::OkStatus();
    }
    if (*contents.binary > body_->size - at_) {
      return InvalidArgument("input ", QuotedName(name), " has ", *contents.binary,
                             " bytes by its 'binary_data_size', and ", body_->size - at_, " bytes follow");
    }
    const auto bytes = static_cast<size_t>(*contents.binary);
    if (copies_) {
      message_.add_raw_input_contents(body_->bytes.get() + at_, bytes);
    } else {
      Append(PartOf(body_, at_, bytes));
    }
    at_ += bytes;
    return absl::OkStatus();
  }

  StatusOr<grpc::ByteBuffer> Finish() {
    if (at_ != body_->size) {
      return InvalidArgument("the body has ", body_->size - at_,
                             " bytes behind its JSON that are no input's by a 'binary_data_size'");
    }
    slices_.insert(slices_.begin(), SerializedSlice(message_));
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  // Contents keep their order: once one is beside the message, so are all that follow.
  void Append(grpc::Slice slice) {
    copies_ = false;
    slices_.push_back(FieldHead(ModelInferRequest::kRawInputContentsFieldNumber, slice.size()));
    if (slice.size() > 0) slices_.push_back(std::move(slice));
  }

  ModelInferRequest& message_;
  const std::shared_ptr<const HttpBody>& body_;
  size_t at_;
  bool copies_;
  std::vector<grpc::Slice> slices_;
};

}  // namespace

StatusOr<RestInferRequest> ReadRestInfer(const std::shared_ptr<const HttpBody>& body, size_t json_bytes,
                                         std::string_view model, std::string_view version, int64_t most) {
  const std::string_view json = body->text().substr(0, json_bytes);
  ModelInferRequest message;
  RestInferRequest request;
  std::vector<JsonContents> contents;
  {
    InferWalk walk(message, request.forms, most, nullptr);
    SWIZZLE_RETURN_IF_ERROR(Walk(json, walk));
    contents = std::move(walk.contents());
  }
  if (std::ranges::any_of(contents, &JsonContents::untyped)) {
    std::vector<std::string> types;
    for (const auto& input : message.inputs()) types.push_back(input.datatype());
    message.Clear();
    request.forms = {};
    InferWalk walk(message, request.forms, most, &types);
    SWIZZLE_RETURN_IF_ERROR(Walk(json, walk));
    contents = std::move(walk.contents());
  }
  message.set_model_name(std::string(model));
  message.set_model_version(std::string(version));
  Assembly assembly(message, body, json_bytes);
  for (int i = 0; i < message.inputs_size(); ++i) {
    const auto& input = message.inputs(i);
    const bool shared = input.parameters().contains("shared_memory_region");
    SWIZZLE_RETURN_IF_ERROR(assembly.Add(input.name(), shared, contents[static_cast<size_t>(i)]));
  }
  SWIZZLE_ASSIGN_OR_RETURN(request.message, assembly.Finish());
  return request;
}

}  // namespace swizzle
