#include "server/rpc/wire_survey.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

#include "model_loader/files/printable_name.h"
#include "proto/grpc_service.pb.h"

namespace swizzle {
namespace {

using google::protobuf::io::CodedInputStream;
using inference::ModelInferRequest;

// ---- What fields cost ----

struct MessageShape;

// What protobuf makes of a field. `bytes` is what one occurrence takes beside its text: the object, the pointer to it
// in an array that grows by doubling, and what malloc adds. Of numbers in arrays (plural) it is what one of them takes.
struct FieldShape {
  enum Kind : uint8_t { kText, kMessage, kVarint, kFixed64, kVarints, kFixed32s, kFixed64s };
  uint32_t number;
  Kind kind;
  int64_t bytes;
  const MessageShape* message = nullptr;
};

struct MessageShape {
  std::span<const FieldShape> fields;
};

constexpr int64_t kMallocBytes = 16, kPointerBytes = 2 * sizeof(void*);

template <typename T>
constexpr int64_t kObject = static_cast<int64_t>(sizeof(T)) + kMallocBytes + kPointerBytes;

constexpr int64_t kTextBytes = kObject<std::string> + 2 * kMallocBytes;
constexpr int64_t kMapEntryBytes = kObject<std::string> + kObject<inference::InferParameter> + 4 * kPointerBytes;
// Fields that this server does not know are kept, one by one.
constexpr int64_t kUnknownBytes = int64_t{2} * 16 + kTextBytes;

constexpr auto kParameterFields = std::to_array<FieldShape>({{1, FieldShape::kVarint, 0},
                                                             {2, FieldShape::kVarint, 0},
                                                             {3, FieldShape::kText, kTextBytes},
                                                             {4, FieldShape::kFixed64, 0},
                                                             {5, FieldShape::kVarint, 0}});
constexpr MessageShape kParameter = {kParameterFields};
constexpr auto kEntryFields = std::to_array<FieldShape>(
    {{1, FieldShape::kText, kTextBytes}, {2, FieldShape::kMessage, kObject<inference::InferParameter>, &kParameter}});
constexpr MessageShape kEntry = {kEntryFields};

// Arrays of varints grow with them, since nothing says how many there are.
constexpr auto kContentsFields = std::to_array<FieldShape>({{1, FieldShape::kVarints, 2 * sizeof(bool)},
                                                            {2, FieldShape::kVarints, 2 * sizeof(int32_t)},
                                                            {3, FieldShape::kVarints, 2 * sizeof(int64_t)},
                                                            {4, FieldShape::kVarints, 2 * sizeof(uint32_t)},
                                                            {5, FieldShape::kVarints, 2 * sizeof(uint64_t)},
                                                            {6, FieldShape::kFixed32s, 2 * sizeof(float)},
                                                            {7, FieldShape::kFixed64s, 2 * sizeof(double)},
                                                            {8, FieldShape::kText, kTextBytes}});
constexpr MessageShape kContents = {kContentsFields};

constexpr auto kInputFields =
    std::to_array<FieldShape>({{1, FieldShape::kText, kTextBytes},
                               {2, FieldShape::kText, kTextBytes},
                               {3, FieldShape::kVarints, 2 * sizeof(int64_t)},
                               {4, FieldShape::kMessage, kMapEntryBytes, &kEntry},
                               {5, FieldShape::kMessage, kObject<inference::InferTensorContents>, &kContents}});
constexpr MessageShape kInput = {kInputFields};
constexpr auto kOutputFields =
    std::to_array<FieldShape>({{1, FieldShape::kText, kTextBytes}, {2, FieldShape::kMessage, kMapEntryBytes, &kEntry}});
constexpr MessageShape kOutput = {kOutputFields};

constexpr uint32_t kModelName = 1;
constexpr auto kRequestFields = std::to_array<FieldShape>(
    {{kModelName, FieldShape::kText, kTextBytes},
     {2, FieldShape::kText, kTextBytes},
     {3, FieldShape::kText, kTextBytes},
     {4, FieldShape::kMessage, kMapEntryBytes, &kEntry},
     {5, FieldShape::kMessage, kObject<ModelInferRequest::InferInputTensor>, &kInput},
     {6, FieldShape::kMessage, kObject<ModelInferRequest::InferRequestedOutputTensor>, &kOutput},
     {7, FieldShape::kText, kTextBytes}});
constexpr MessageShape kRequest = {kRequestFields};

const FieldShape* FieldOf(const MessageShape& shape, uint32_t number) {
  for (const FieldShape& field : shape.fields) {
    if (field.number == number) return &field;
  }
  return nullptr;
}

// ---- The walk ----

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// Whether protobuf takes what stands on the wire for the field's number; else it is an unknown field, however it is
// numbered.
bool TakesNumber(FieldShape::Kind kind, uint32_t wire_type) {
  switch (kind) {
    case FieldShape::kVarint:
    case FieldShape::kVarints:
      return wire_type == kVarint;
    case FieldShape::kFixed32s:
      return wire_type == kFixed32;
    case FieldShape::kFixed64:
    case FieldShape::kFixed64s:
      return wire_type == kFixed64;
    case FieldShape::kText:
    case FieldShape::kMessage:
      return false;
  }
  return false;
}

constexpr int kMostNameBytes = 1024;  // of a model; a longer one is nobody's

class Walk {
 public:
  Walk(CodedInputStream& in, const MessageLimits& server, MessageLimitsOf limits_of, WireSurvey& survey)
      : in_(in), limits_(server), limits_of_(limits_of), survey_(survey), parsed_(survey.parsed_bytes) {}

  Status Run() {
    SWIZZLE_RETURN_IF_ERROR(Fields(kRequest));
    if (!named_) SWIZZLE_RETURN_IF_ERROR(Named(""));
    survey_.bytes = position();
    return Check();
  }

 private:
  int64_t position() const { return in_.CurrentPosition(); }

  Status Named(const std::string& model) {
    if (named_) return absl::OkStatus();
    named_ = true;
    SWIZZLE_ASSIGN_OR_RETURN(limits_, limits_of_(model));
    return absl::OkStatus();
  }

  Status Check() {
    if (position() > limits_.bytes) return TooLarge("", limits_.bytes);
    if (parsed_ > limits_.parsed_bytes) return TooLarge(" when parsed", limits_.parsed_bytes);
    return absl::OkStatus();
  }

  Status Malformed() {
    survey_.malformed = true;
    return InvalidArgument("the message cannot be parsed as a ModelInferRequest: what stands before byte ", position(),
                           " is not a field");
  }

  Status TooLarge(const char* when, int64_t most) {
    survey_.too_large = true;
    if (limits_.model.empty()) {
      return MakeError(StatusCode::kResourceExhausted, "the message has more than ", most, " bytes", when,
                       ", the most that this server takes");
    }
    return InvalidArgument("the message has more than ", most, " bytes", when, ", the most that inputs of model '",
                           limits_.model, "' can be at its largest batch");
  }

  // To the end of the message or of the limit that is pushed.
  Status Fields(const MessageShape& shape) {
    while (const uint32_t tag = in_.ReadTag()) {
      SWIZZLE_RETURN_IF_ERROR(OneField(shape, tag >> 3, tag & 7));
      SWIZZLE_RETURN_IF_ERROR(Check());
    }
    return in_.ConsumedEntireMessage() ? absl::OkStatus() : Malformed();
  }

  Status OneField(const MessageShape& shape, uint32_t number, uint32_t wire_type) {
    const FieldShape* const field = FieldOf(shape, number);
    if (wire_type == kLength) return Delimited(shape, field, number);
    const bool known = field != nullptr && TakesNumber(field->kind, wire_type);
    parsed_ += known ? field->bytes : kUnknownBytes;
    return Number(wire_type) ? absl::OkStatus() : Malformed();
  }

  bool Number(uint32_t wire_type) {
    uint64_t ignored;
    if (wire_type == kVarint) return in_.ReadVarint64(&ignored);
    if (wire_type == kFixed64) return in_.Skip(sizeof(uint64_t));
    return wire_type == kFixed32 && in_.Skip(sizeof(uint32_t));
  }

  Status Delimited(const MessageShape& shape, const FieldShape* field, uint32_t number) {
    int length = 0;
    if (!in_.ReadVarintSizeAsInt(&length)) return Malformed();
    const int left = in_.BytesUntilLimit();
    if (left >= 0 && length > left) return Malformed();
    if (position() + length > limits_.bytes) return TooLarge("", limits_.bytes);
    switch (field == nullptr ? FieldShape::kVarint : field->kind) {
      case FieldShape::kVarint:  // or unknown
      case FieldShape::kFixed64:
        return Text(kUnknownBytes, length, false);
      case FieldShape::kText:
        return Text(field->bytes, length, &shape == &kRequest && number == kModelName);
      case FieldShape::kFixed32s:  // room is made once for all
      case FieldShape::kFixed64s:
        return Text(0, length, false);
      case FieldShape::kVarints:
      case FieldShape::kMessage:
        break;
    }
    const CodedInputStream::Limit outer = in_.PushLimit(length);
    SWIZZLE_RETURN_IF_ERROR(field->kind == FieldShape::kMessage ? Message(*field) : Varints(*field));
    in_.PopLimit(outer);
    return absl::OkStatus();
  }

  Status Message(const FieldShape& field) {
    parsed_ += field.bytes;
    return Fields(*field.message);
  }

  Status Text(int64_t beside, int length, bool model_name) {
    parsed_ += beside + length;
    if (!model_name || named_) return in_.Skip(length) ? absl::OkStatus() : Malformed();
    std::string name;
    const int shown = std::min(length, kMostNameBytes);
    if (!in_.ReadString(&name, shown) || !in_.Skip(length - shown)) return Malformed();
    return Named(name);
  }

  Status Varints(const FieldShape& field) {
    while (in_.BytesUntilLimit() > 0) {
      uint64_t ignored;
      if (!in_.ReadVarint64(&ignored)) return Malformed();
      parsed_ += field.bytes;
      if (parsed_ > limits_.parsed_bytes) break;
    }
    return Check();
  }

  CodedInputStream& in_;
  MessageLimits limits_;
  const MessageLimitsOf limits_of_;
  WireSurvey& survey_;
  int64_t& parsed_;
  bool named_ = false;
};

// ---- Limits ----

// Names, parameters and what else a message has beside its tensors.
constexpr int64_t kRoomBytes = 1 << 20;

struct FormBytes {
  int64_t wire, parsed;
};

// What an element can take at most: raw, or typed in a varint of up to ten bytes.
std::optional<FormBytes> ElementForms(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return FormBytes{10, 2 * sizeof(bool)};
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
      return FormBytes{10, 2 * sizeof(int32_t)};
    case DType::kInt64:
    case DType::kUint64:
      return FormBytes{10, 2 * sizeof(int64_t)};
    case DType::kFloat16:
    case DType::kBFloat16:
      return FormBytes{2, 2};
    case DType::kFloat32:
      return FormBytes{4, 4};
    case DType::kFloat64:
      return FormBytes{8, 8};
    case DType::kString:
      return std::nullopt;
  }
  return std::nullopt;
}

// Elements of an input at the largest batch; nothing where there is no end to them.
std::optional<int64_t> MostElements(const TensorSpec& input, const ModelSpec& spec) {
  int64_t elements = std::max<int64_t>(spec.max_batch_size, 1);
  for (const int64_t dim : input.dims) {
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) return std::nullopt;
  }
  return elements;
}

}  // namespace

MessageLimits ServerLimits(int64_t most) { return {.bytes = most, .parsed_bytes = most + kRoomBytes, .model = {}}; }

MessageLimits ModelLimits(const ModelSpec& spec, const MessageLimits& server) {
  MessageLimits limits = {.bytes = kRoomBytes, .parsed_bytes = kRoomBytes, .model = spec.name};
  for (const TensorSpec& input : spec.inputs) {
    const std::optional<int64_t> elements = MostElements(input, spec);
    const std::optional<FormBytes> forms = ElementForms(input.dtype);
    if (!elements || !forms || *elements > server.bytes) return server;
    limits.bytes += *elements * forms->wire;  // at most 2^30 of ten
    limits.parsed_bytes += *elements * std::max(forms->wire, forms->parsed);
    if (limits.bytes > server.bytes) return server;
  }
  if (limits.parsed_bytes > server.parsed_bytes) return server;
  return limits;
}

Status SurveyInfer(google::protobuf::io::ZeroCopyInputStream& message, const MessageLimits& server,
                   MessageLimitsOf limits_of, WireSurvey& survey) {
  CodedInputStream in(&message);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  return Walk(in, server, limits_of, survey).Run();
}

std::string RequestId(google::protobuf::io::ZeroCopyInputStream& message, int64_t most) {
  using google::protobuf::internal::WireFormatLite;
  CodedInputStream in(&message);
  in.SetTotalBytesLimit(static_cast<int>(std::min<int64_t>(most, std::numeric_limits<int>::max())));
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != (uint32_t{ModelInferRequest::kIdFieldNumber} << 3 | kLength)) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    int length = 0;
    std::string id;
    if (!in.ReadVarintSizeAsInt(&length) || length > kMostNameBytes || !in.ReadString(&id, length)) break;
    return CheckName(id, "the id").ok() ? id : "";
  }
  return "";
}

}  // namespace swizzle
