// Looks the fields of config.json up by name, and says what is wrong with them. A field that is null is left out, as it
// is for transformers. Refers to the JSON that it was made of. Thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_CONFIG_FIELDS_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_CONFIG_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

class ConfigFields {
 public:
  static constexpr int64_t kMaxLayers = 1024;
  static constexpr int64_t kMaxExtent = int64_t{1} << 24;  // of any dimension

  explicit ConfigFields(const nlohmann::json& json) : json_(json) {}

  bool Has(const char* name) const { return json_.contains(name) && !json_[name].is_null(); }

  bool IsNull(const char* name) const { return json_.contains(name) && json_[name].is_null(); }

  // Each returns `absent` where the field is left out; else INVALID_ARGUMENT, naming field and value, if it is of
  // another type or out of range.

  // Of the first of the names that is there, a number from `least` to `most`.
  struct Range {
    int64_t most, least = 1;
  };
  StatusOr<int64_t> Whole(std::initializer_list<const char*> names, int64_t absent, Range range) const;
  // Between 0 and 1.
  StatusOr<float> Epsilon(const char* name, float absent) const;
  // More than 0.
  StatusOr<float> Positive(const char* name, float absent) const;
  StatusOr<bool> Flag(const char* name, bool absent) const;
  StatusOr<std::string> Text(const char* name, const std::string& absent) const;

  // Those of an object, none where it is left out.
  StatusOr<ConfigFields> Within(const char* name) const;

  bool IsList(const char* name) const { return Has(name) && json_[name].is_array(); }

  // The strings of a list; none if it is no list of strings.
  std::vector<std::string> Texts(const char* name) const;

  // Whether the first of architectures is ...ForSequenceClassification.
  bool Classifies() const;

  // UNIMPLEMENTED, naming field and value, where it is anything but false.
  Status RefuseTrue(const char* name) const;

  // A value for a message.
  static std::string Shown(const nlohmann::json& value);
  std::string ShownOf(const char* name) const { return Shown(json_[name]); }

 private:
  const nlohmann::json& json_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_CONFIG_FIELDS_H_
