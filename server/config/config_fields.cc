#include "server/config/config_fields.h"

#include <algorithm>
#include <string>
#include <vector>

namespace swizzle {
namespace {

bool IsHonoured(std::string_view path) {
  return std::ranges::find(kConfigFields, path, &ConfigField::path) != kConfigFields.end();
}

// `prefix` is the path to `message`.
Status RefuseBelow(const google::protobuf::Message& message, const std::string& prefix) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    if (!IsHonoured(path)) return Unimplemented("the field '", path, "' is not supported yet; remove it");
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (!field->is_repeated()) {
      SWIZZLE_RETURN_IF_ERROR(RefuseBelow(reflection.GetMessage(message, field), path + "."));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      SWIZZLE_RETURN_IF_ERROR(RefuseBelow(reflection.GetRepeatedMessage(message, field, i), path + "."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status RefuseOtherFields(const google::protobuf::Message& config) { return RefuseBelow(config, ""); }

}  // namespace swizzle
