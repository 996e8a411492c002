// Reads the fields of a JSON object, and says what is wrong with them. Internal to model_loader/text. Thread-safe; an
// object views its JSON.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_JSON_FIELDS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/status.h"

namespace swizzle::text {

// INVALID_ARGUMENT unless `text` is one JSON object in UTF-8. Of a key that is given twice the last counts, as it does
// to the `tokenizers` library.
StatusOr<nlohmann::json> ParseObject(std::string_view text);

class Fields {
 public:
  using Json = nlohmann::json;

  // `what` names the object in messages: "its normalizer Strip".
  Fields(const Json& object, std::string what) : Fields(&object, std::move(what)) {}
  // Null: it is not there.
  Fields(const Json* object, std::string what) : json_(object), what_(std::move(what)) {}

  const std::string& what() const { return what_; }
  // Null if it is not there, or null. What is no object has no fields.
  const Json* Find(const char* name) const;
  bool Has(const char* name) const { return Find(name) != nullptr; }

  // INVALID_ARGUMENT where it is of another type; or not there, if there is no `absent`.
  StatusOr<bool> Flag(const char* name, bool absent) const;
  StatusOr<std::string> Text(const char* name) const;
  StatusOr<std::string> Text(const char* name, const std::string& absent) const;
  // From 0 to `most`.
  StatusOr<int64_t> Whole(const char* name, int64_t most, std::optional<int64_t> absent = std::nullopt) const;
  StatusOr<const Json*> Array(const char* name) const;
  StatusOr<const Json*> Object(const char* name) const;

  // INVALID_ARGUMENT for a field that is not what it has to be.
  Status Wrong(const char* name, const char* has_to_be) const;

 private:
  const Json* const json_;
  const std::string what_;
};

// A value for a message: its JSON, cut.
std::string Shown(const nlohmann::json& value);

// An id of a vocabulary: no larger than what the largest have. -1 if the value is none.
constexpr int64_t kMostTokens = int64_t{1} << 21;
int32_t IdOf(const nlohmann::json& value);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_JSON_FIELDS_H_
