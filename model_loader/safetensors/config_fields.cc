#include "model_loader/safetensors/config_fields.h"

#include <algorithm>
#include <cmath>

namespace swizzle {

using Json = nlohmann::json;

StatusOr<int64_t> ConfigFields::Whole(std::initializer_list<const char*> names, int64_t absent, Range range) const {
  const auto name = std::ranges::find_if(names, [&](const char* given) { return Has(given); });
  if (name == names.end()) return absent;
  const Json& value = json_[*name];
  if (value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= kMaxExtent)) {
    const int64_t whole = value.get<int64_t>();
    if (whole >= range.least && whole <= range.most) return whole;
  }
  return InvalidArgument("its ", *name, " is ", Shown(value), "; it must be a whole number from ", range.least, " to ",
                         range.most);
}

StatusOr<float> ConfigFields::Epsilon(const char* name, float absent) const {
  if (!Has(name)) return absent;
  const double value = json_[name].is_number() ? json_[name].get<double>() : -1.0;
  if (value > 0.0 && value < 1.0) return static_cast<float>(value);
  return InvalidArgument("its ", name, " is ", Shown(json_[name]), "; it must be a number between 0 and 1");
}

StatusOr<float> ConfigFields::Positive(const char* name, float absent) const {
  if (!Has(name)) return absent;
  constexpr double kLeast = 1e-6, kMost = 1e12;
  const double value = json_[name].is_number() ? json_[name].get<double>() : -1.0;
  if (value >= kLeast && value <= kMost) return static_cast<float>(value);
  return InvalidArgument("its ", name, " is ", Shown(json_[name]), "; it must be a number above 0, from 1e-6 to 1e12");
}

StatusOr<bool> ConfigFields::Flag(const char* name, bool absent) const {
  if (!Has(name)) return absent;
  if (json_[name].is_boolean()) return json_[name].get<bool>();
  return InvalidArgument("its ", name, " is ", Shown(json_[name]), "; it must be true or false");
}

StatusOr<std::string> ConfigFields::Text(const char* name, const std::string& absent) const {
  if (!Has(name)) return absent;
  if (json_[name].is_string()) return json_[name].get<std::string>();
  return InvalidArgument("its ", name, " is ", Shown(json_[name]), "; it must be a string");
}

StatusOr<ConfigFields> ConfigFields::Within(const char* name) const {
  static const Json& none = *new Json(Json::object());
  if (!Has(name)) return ConfigFields(none);
  if (json_[name].is_object()) return ConfigFields(json_[name]);
  return InvalidArgument("its ", name, " is ", Shown(json_[name]), "; it must be an object");
}

std::vector<std::string> ConfigFields::Texts(const char* name) const {
  std::vector<std::string> texts;
  if (!Has(name) || !json_[name].is_array()) return texts;
  for (const Json& text : json_[name]) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

bool ConfigFields::Classifies() const {
  const std::vector<std::string> architectures = Texts("architectures");
  return !architectures.empty() && architectures[0].ends_with("ForSequenceClassification");
}

Status ConfigFields::RefuseTrue(const char* name) const {
  if (!Has(name) || json_[name] == false) return {};
  return Unimplemented("its ", name, " is ", Shown(json_[name]), "; only encoders are supported");
}

std::string ConfigFields::Shown(const Json& value) {
  constexpr size_t kMaxBytes = 64;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() <= kMaxBytes ? text : text.substr(0, kMaxBytes) + "...";
}

}  // namespace swizzle
