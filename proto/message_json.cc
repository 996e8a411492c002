#include "proto/message_json.h"

#include <google/protobuf/descriptor.h>

#include <nlohmann/json.hpp>

namespace swizzle {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

Json JsonOf(const Message& message);

// Of an enumeration's value; its number where it has no name.
Json NameOf(const FieldDescriptor& field, int number) {
  const auto* const value = field.enum_type()->FindValueByNumber(number);
  return value == nullptr ? Json(number) : Json(std::string(value->name()));
}

Json Single(const Message& message, const FieldDescriptor& field) {
  const Reflection& its = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return its.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return its.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return its.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return its.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return its.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return its.GetFloat(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return its.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return NameOf(field, its.GetEnumValue(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return its.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return JsonOf(its.GetMessage(message, &field));
  }
  return nullptr;
}

Json Element(const Message& message, const FieldDescriptor& field, int i) {
  const Reflection& its = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return its.GetRepeatedInt32(message, &field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return its.GetRepeatedInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return its.GetRepeatedUInt32(message, &field, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return its.GetRepeatedUInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return its.GetRepeatedDouble(message, &field, i);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return its.GetRepeatedFloat(message, &field, i);
    case FieldDescriptor::CPPTYPE_BOOL:
      return its.GetRepeatedBool(message, &field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return NameOf(field, its.GetRepeatedEnumValue(message, &field, i));
    case FieldDescriptor::CPPTYPE_STRING:
      return its.GetRepeatedString(message, &field, i);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return JsonOf(its.GetRepeatedMessage(message, &field, i));
  }
  return nullptr;
}

// A map's entries are messages of a key and a value.
Json MapOf(const Message& message, const FieldDescriptor& field) {
  const Reflection& its = *message.GetReflection();
  Json object = Json::object();
  for (int i = 0; i < its.FieldSize(message, &field); ++i) {
    const Message& entry = its.GetRepeatedMessage(message, &field, i);
    const Json key = Single(entry, *field.message_type()->map_key());
    object[key.is_string() ? key.get<std::string>() : key.dump()] = Single(entry, *field.message_type()->map_value());
  }
  return object;
}

Json JsonOf(const Message& message) {
  const Reflection& its = *message.GetReflection();
  Json object = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const std::string name(field.name());
    if (field.is_map()) {
      object[name] = MapOf(message, field);
    } else if (field.is_repeated()) {
      Json elements = Json::array();
      for (int j = 0; j < its.FieldSize(message, &field); ++j) elements.push_back(Element(message, field, j));
      object[name] = std::move(elements);
    } else if (!field.has_presence() || its.HasField(message, &field)) {
      object[name] = Single(message, field);
    }
  }
  return object;
}

std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string MessageJson(const Message& message) { return Text(JsonOf(message)); }

std::string ErrorJson(std::string_view why) { return Text({{"error", why}}); }

}  // namespace swizzle
