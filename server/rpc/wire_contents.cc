#include "server/rpc/wire_contents.h"

#include <cstring>
#include <utility>

#include "server/model/string_tensor.h"

namespace swizzle {
namespace {

using inference::InferTensorContents;
using Bytes = std::span<const std::byte>;

template <typename Field>
Bytes BytesOf(const Field& field) {
  return std::as_bytes(std::span(field.data(), static_cast<size_t>(field.size())));
}

// Elements that travel wider than they are. Nothing if one is out of range.
template <typename Narrow, typename Field>
std::optional<std::string> Narrowed(const Field& field) {
  std::string bytes(static_cast<size_t>(field.size()) * sizeof(Narrow), '\0');
  char* out = bytes.data();
  for (const auto value : field) {
    if (!std::in_range<Narrow>(value)) return std::nullopt;
    const Narrow narrow = static_cast<Narrow>(value);
    std::memcpy(out, &narrow, sizeof(narrow));
    out += sizeof(narrow);
  }
  return bytes;
}

std::optional<std::string> SerializedStrings(const google::protobuf::RepeatedPtrField<std::string>& elements) {
  std::string bytes;
  for (const std::string& element : elements) AppendElement(element, bytes);
  return bytes;
}

}  // namespace

std::string_view ContentsField(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool_contents";
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
      return "int_contents";
    case DType::kInt64:
      return "int64_contents";
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
      return "uint_contents";
    case DType::kUint64:
      return "uint64_contents";
    case DType::kFloat32:
      return "fp32_contents";
    case DType::kFloat64:
      return "fp64_contents";
    case DType::kString:
      return "bytes_contents";
    case DType::kFloat16:
    case DType::kBFloat16:
      return "";
  }
  return "";
}

int64_t ElementsIn(const InferTensorContents& contents, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return contents.bool_contents_size();
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
      return contents.int_contents_size();
    case DType::kInt64:
      return contents.int64_contents_size();
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
      return contents.uint_contents_size();
    case DType::kUint64:
      return contents.uint64_contents_size();
    case DType::kFloat32:
      return contents.fp32_contents_size();
    case DType::kFloat64:
      return contents.fp64_contents_size();
    case DType::kString:
      return contents.bytes_contents_size();
    case DType::kFloat16:
    case DType::kBFloat16:
      return 0;
  }
  return 0;
}

int64_t ElementsInAllFields(const InferTensorContents& contents) {
  int64_t count = 0;
  for (const DType dtype : {DType::kBool, DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64, DType::kFloat32,
                            DType::kFloat64, DType::kString}) {
    count += ElementsIn(contents, dtype);
  }
  return count;
}

Bytes ContentsInPlace(const InferTensorContents& contents, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return BytesOf(contents.bool_contents());
    case DType::kInt32:
      return BytesOf(contents.int_contents());
    case DType::kInt64:
      return BytesOf(contents.int64_contents());
    case DType::kUint32:
      return BytesOf(contents.uint_contents());
    case DType::kUint64:
      return BytesOf(contents.uint64_contents());
    case DType::kFloat32:
      return BytesOf(contents.fp32_contents());
    case DType::kFloat64:
      return BytesOf(contents.fp64_contents());
    case DType::kUint8:
    case DType::kUint16:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kString:
      return {};
  }
  return {};
}

bool NeedsConversion(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kInt16 || dtype == DType::kUint8 || dtype == DType::kUint16 ||
         dtype == DType::kString;
}

std::optional<std::string> ConvertedContents(const InferTensorContents& contents, DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return Narrowed<int8_t>(contents.int_contents());
    case DType::kInt16:
      return Narrowed<int16_t>(contents.int_contents());
    case DType::kUint8:
      return Narrowed<uint8_t>(contents.uint_contents());
    case DType::kUint16:
      return Narrowed<uint16_t>(contents.uint_contents());
    case DType::kString:
      return SerializedStrings(contents.bytes_contents());
    case DType::kBool:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kBFloat16:
      break;  // these need none
  }
  return std::nullopt;
}

}  // namespace swizzle
