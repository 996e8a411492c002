// An inference by HTTP as bytes: what is read becomes a message that parses, with no more tensors than were allowed.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "proto/grpc_service.pb.h"
#include "server/rest/infer_reader.h"
#include "server/rpc/received_message.h"

namespace swizzle {
namespace {

constexpr int64_t kMost = 1 << 16;

// The first two bytes say how many of the others are JSON.
void Read(const uint8_t* data, size_t size) {
  uint16_t wanted;
  if (size < sizeof(wanted)) return;
  std::memcpy(&wanted, data, sizeof(wanted));
  auto body = std::make_shared<HttpBody>();
  body->size = size - sizeof(wanted);
  body->bytes = std::make_unique<char[]>(body->size);
  std::memcpy(body->bytes.get(), data + sizeof(wanted), body->size);
  const size_t json = wanted < body->size ? wanted : body->size;
  const auto request = ReadRestInfer(body, json, "model", "", kMost);
  if (!request.ok()) {
    SWIZZLE_CHECK(request.status().code() == StatusCode::kInvalidArgument ||
                  request.status().code() == StatusCode::kResourceExhausted);
    SWIZZLE_CHECK(request.status().message().size() < 4096);
    return;
  }
  inference::ModelInferRequest message;
  SWIZZLE_CHECK(Parse(ReceivedMessage(request->message), int64_t{1} << 30, "ModelInferRequest", message).ok());
  size_t bytes = 0;
  for (const auto& tensor : message.raw_input_contents()) bytes += tensor.size();
  SWIZZLE_CHECK(bytes <= static_cast<size_t>(kMost) + body->size - json);
  SWIZZLE_CHECK(message.model_name() == "model" && message.raw_input_contents_size() <= message.inputs_size());
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  swizzle::Read(data, size);
  return 0;
}
