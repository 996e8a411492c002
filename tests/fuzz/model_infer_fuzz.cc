// ModelInfer as bytes: what parses takes no more memory than the walk over its bytes said, is decoded against models of
// several kinds, and answered with its own inputs.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/classification.h"
#include "server/rpc/wire_convert.h"
#include "server/rpc/wire_survey.h"
#include "tests/fuzz/quiet_protobuf.h"

namespace swizzle {
namespace {

// Inputs and outputs are the same, as an identity model's.
ModelSpec Spec(int64_t max_batch_size, std::vector<TensorSpec> tensors) {
  ModelSpec spec;
  spec.name = "model";
  spec.max_batch_size = max_batch_size;
  spec.inputs = spec.outputs = std::move(tensors);
  return spec;
}

const std::vector<ModelSpec>& Specs() {
  static const auto& specs = *new std::vector<ModelSpec>{
      Spec(8, {{"X", DType::kFloat32, {4}}, {"N", DType::kInt64, {-1}}}),
      Spec(0, {{"X", DType::kString, {-1}}}),
      Spec(4, {{"X", DType::kUint8, {-1, 3}}, {"N", DType::kBool, {}}}),
      Spec(0, {{"X", DType::kFloat16, {-1, -1}}}),
  };
  return specs;
}

// Within limits that nothing here breaks, and in pieces, as gRPC has them.
StatusOr<WireSurvey> Survey(const uint8_t* data, size_t size) {
  constexpr int kPiece = 7;
  const MessageLimits limits = {.bytes = int64_t{1} << 40, .parsed_bytes = int64_t{1} << 40, .model = {}};
  google::protobuf::io::ArrayInputStream stream(data, static_cast<int>(size), kPiece);
  WireSurvey survey;
  const Status status = SurveyInfer(
      stream, limits, [&](std::string_view) -> StatusOr<MessageLimits> { return limits; }, survey);
  if (!status.ok()) return status;
  SWIZZLE_CHECK(survey.bytes == static_cast<int64_t>(size));
  return survey;
}

// Every byte is looked at, so that a view that reaches too far is seen.
size_t Sum(const TensorView& view) {
  size_t sum = 0;
  for (const std::byte byte : view.bytes) sum += static_cast<size_t>(byte);
  return sum;
}

void Answer(const inference::ModelInferRequest& message, const ModelSpec& spec, const DecodedInfer& decoded) {
  Result result;
  size_t sum = 0;
  for (const TensorView& input : decoded.request.inputs) {
    sum += Sum(input);
    result.outputs.emplace_back(reinterpret_cast<const char*>(input.bytes.data()), input.bytes.size());
    result.shapes.push_back(input.shape);
    if (spec.max_batch_size > 0) SWIZZLE_CHECK(input.shape.front() == decoded.request.rows);
  }
  SWIZZLE_CHECK(decoded.request.rows >= 1 && (spec.max_batch_size == 0 || decoded.request.rows <= spec.max_batch_size));
  SWIZZLE_CHECK(Classify(spec, decoded.outputs, result).ok());
  inference::ModelInferResponse response;
  EncodeInfer(message, spec, decoded.outputs, std::move(result), response);
  SWIZZLE_CHECK(response.outputs_size() == response.raw_output_contents_size() && sum + 1 > 0);
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto survey = swizzle::Survey(data, size);
  if (!survey.ok()) return 0;  // groups, too, which protobuf would take
  inference::ModelInferRequest message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  SWIZZLE_CHECK(static_cast<int64_t>(message.SpaceUsedLong() - sizeof(message)) <= survey->parsed_bytes);
  for (const swizzle::ModelSpec& spec : swizzle::Specs()) {
    const auto decoded = swizzle::DecodeInfer(message, spec, swizzle::Instant());
    SWIZZLE_CHECK(decoded.ok() || !decoded.status().message().empty());
    if (decoded.ok()) swizzle::Answer(message, spec, *decoded);
  }
  return 0;
}
