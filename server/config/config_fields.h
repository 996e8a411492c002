// What becomes of each field of config.pbtxt: a table (config_fields.cc), from which the check of a file, the notices
// about it and the page CONFIG.md follow. To honour another field, change its row and do what it says in
// model_config.cc or served_spec.cc. Free functions, thread-safe.
#ifndef SWIZZLE_SERVER_CONFIG_CONFIG_FIELDS_H_
#define SWIZZLE_SERVER_CONFIG_CONFIG_FIELDS_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

enum class FieldUse : uint8_t {
  kServed,
  kNoEffect,  // answers are the same without it: it is accepted, and a notice says why
  kRefused,   // it would change what clients see
};

struct ConfigField {
  std::string_view path;     // "dynamic_batching.max_queue_delay_microseconds"; of a repeated field without its index
  FieldUse use;              // of kNoEffect and kRefused: that of all fields below, too, which have no rows
  std::string_view meaning;  // what it does, why it changes nothing, or what to do instead
};
std::span<const ConfigField> ConfigFields();

// UNIMPLEMENTED, with what to do instead, for the first field of `config` that is set and refused.
Status RefuseFields(const google::protobuf::Message& config);

// Something that a file says and that changes nothing.
struct ConfigNotice {
  std::string field;
  std::string why;
};

// One for each field that is set and has no effect.
std::vector<ConfigNotice> FieldsWithoutEffect(const google::protobuf::Message& config);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_CONFIG_FIELDS_H_
