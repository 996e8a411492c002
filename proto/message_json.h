// Messages of the protocol as JSON: fields by their names in the .proto, whole numbers as numbers, enums by name, every
// field that is no message, whether it is set or not. Functions only.
#ifndef SWIZZLE_PROTO_MESSAGE_JSON_H_
#define SWIZZLE_PROTO_MESSAGE_JSON_H_

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace swizzle {

// What is no UTF-8 in a field of bytes is replaced.
std::string MessageJson(const google::protobuf::Message& message);

// {"error": "WHY"}
std::string ErrorJson(std::string_view why);

}  // namespace swizzle

#endif  // SWIZZLE_PROTO_MESSAGE_JSON_H_
