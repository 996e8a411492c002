#include "server/rpc/wire_response.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/classification.h"
#include "server/rpc/received_message.h"

namespace swizzle {
namespace {

using google::protobuf::io::CodedOutputStream;

// ---- Sizes ----

// The longest dimension that an input leaves open, 1 if none does.
int64_t LongestOpen(const ModelSpec& spec, const Request& request) {
  const size_t batch_dims = spec.max_batch_size > 0 ? 1 : 0;
  int64_t longest = 1;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    for (size_t d = 0; d < spec.inputs[i].dims.size(); ++d) {
      if (spec.inputs[i].dims[d] < 0) longest = std::max(longest, request.inputs[i].shape[batch_dims + d]);
    }
  }
  return longest;
}

// Elements of a row of the largest input, 1 at least. Inputs that have elements have no more than a message holds.
int64_t LargestRow(const ModelSpec& spec, const Request& request) {
  const std::ptrdiff_t batch_dims = spec.max_batch_size > 0 ? 1 : 0;
  int64_t largest = 1;
  for (const TensorView& input : request.inputs) {
    if (std::ranges::find(input.shape, 0) != input.shape.end()) continue;
    int64_t row = 1;
    for (auto dim = input.shape.begin() + batch_dims; dim != input.shape.end(); ++dim) row *= *dim;
    largest = std::max(largest, row);
  }
  return largest;
}

struct OutputBytes {
  std::optional<int64_t> bytes;  // none: more than can be counted
  bool certain = true;
};

OutputBytes BytesOfOutput(const TensorSpec& output, const ModelSpec& spec, const Request& request) {
  int64_t bytes = static_cast<int64_t>(std::max<size_t>(ElementBytes(output.dtype), 1));
  OutputBytes result = {std::nullopt, output.dtype != DType::kString};
  const int64_t longest = LongestOpen(spec, request), largest = LargestRow(spec, request);
  int64_t open = 1;  // what is left open, together
  if (__builtin_mul_overflow(bytes, request.rows, &bytes)) return result;
  for (const int64_t dim : output.dims) {
    // A sequence's outputs are as long as it is. The interpreter's may have any length.
    if (dim < 0 && spec.max_batch_tokens == 0) result.certain = false;
    if (dim < 0) open = longest > largest / open ? largest : open * longest;
    if (dim >= 0 && __builtin_mul_overflow(bytes, dim, &bytes)) return result;
  }
  if (__builtin_mul_overflow(bytes, open, &bytes)) return result;
  result.bytes = bytes;
  return result;
}

Status TooLarge(StatusCode code, const ModelSpec& spec, int64_t rows, const std::string& bytes, int64_t most) {
  return MakeError(code, "the response of model '", spec.name, "' to ", rows, rows == 1 ? " row" : " rows", " has ",
                   bytes, " bytes, and the server sends at most ", most, "; ask for fewer rows or outputs at once");
}

// ---- Bytes ----

constexpr size_t kCopiedBytes = 16 << 10;  // outputs together, that are copied beside the rest

size_t OutputBytesIn(const inference::ModelInferResponse& response) {
  size_t bytes = 0;
  for (const std::string& output : response.raw_output_contents()) bytes += output.size();
  return bytes;
}

}  // namespace

grpc::Slice FieldHead(int field, size_t length) {
  std::array<uint8_t, 16> head;
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(field) << 3 | 2, head.data());
  end = CodedOutputStream::WriteVarint64ToArray(length, end);
  return grpc::Slice(head.data(), static_cast<size_t>(end - head.data()));
}

grpc::Slice OwningSlice(std::string text) {
  auto* const held = new std::string(std::move(text));
  const auto drop = [](void* string) { delete static_cast<std::string*>(string); };
  return grpc::Slice(held->data(), held->size(), drop, held);
}

namespace {

// The response's bytes, appended.
void AddSlices(inference::ModelInferResponse& response, std::vector<grpc::Slice>& slices) {
  if (OutputBytesIn(response) <= kCopiedBytes) {
    slices.push_back(SerializedSlice(response));
    return;
  }
  std::vector<std::string> outputs;
  for (std::string& output : *response.mutable_raw_output_contents()) outputs.push_back(std::move(output));
  response.clear_raw_output_contents();
  slices.push_back(SerializedSlice(response));
  for (std::string& output : outputs) {
    slices.push_back(FieldHead(inference::ModelInferResponse::kRawOutputContentsFieldNumber, output.size()));
    if (!output.empty()) slices.push_back(OwningSlice(std::move(output)));
  }
}

}  // namespace

StatusOr<int64_t> ResponseBytes(const ModelSpec& spec, const Request& request, std::span<const RequestedOutput> outputs,
                                int64_t most) {
  int64_t all = 0, sent = 0;
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const OutputBytes output = BytesOfOutput(spec.outputs[i], spec, request);
    const int64_t bytes = std::min(output.bytes.value_or(most + 1), most + 1);  // so that nothing overflows
    all += bytes;
    const auto asked = std::ranges::find(outputs, i, &RequestedOutput::index);
    if (asked == outputs.end()) continue;
    if (asked->classes > 0) {
      all += std::min(MostClassBytes(spec.outputs[i], asked->classes, request.rows), most + 1);
    } else if (output.certain && (!output.bytes || bytes > most || (sent += bytes) > most)) {
      const std::string text = output.bytes ? std::to_string(std::max(*output.bytes, sent)) : "more than 9e18";
      return TooLarge(StatusCode::kInvalidArgument, spec, request.rows, text, most);
    }
  }
  return all;
}

int64_t BytesOf(const Result& result) {
  int64_t bytes = 0;
  for (const std::string& output : result.outputs) bytes += static_cast<int64_t>(output.size());
  return bytes;
}

Status CheckResult(const ModelSpec& spec, const Result& result, std::span<const RequestedOutput> outputs,
                   int64_t most) {
  int64_t bytes = 0;
  for (const RequestedOutput& output : outputs) bytes += static_cast<int64_t>(result.outputs[output.index].size());
  if (bytes <= most) return absl::OkStatus();
  const Shape& shape = result.shapes[outputs.front().index];
  const int64_t rows = spec.max_batch_size > 0 && !shape.empty() ? shape.front() : 1;
  return TooLarge(StatusCode::kResourceExhausted, spec, rows, std::to_string(bytes), most);
}

void SerializeInfer(inference::ModelInferResponse& response, grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  AddSlices(response, slices);
  grpc::ByteBuffer serialized(slices.data(), slices.size());
  bytes.Swap(&serialized);
}

void SerializeStreamInfer(inference::ModelInferResponse& response, grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices(1);
  AddSlices(response, slices);
  size_t length = 0;
  for (const grpc::Slice& slice : slices) length += slice.size();
  slices.front() = FieldHead(inference::ModelStreamInferResponse::kInferResponseFieldNumber, length);
  grpc::ByteBuffer serialized(slices.data(), slices.size());
  bytes.Swap(&serialized);
}

}  // namespace swizzle
