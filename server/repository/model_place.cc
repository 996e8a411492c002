#include "server/repository/model_place.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/repository/model_directory.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// Without its end, of a file that is a model; as it is, of others.
std::string WithoutFormat(std::string name) {
  for (const std::string_view end : {".onnx", ".swz", ".safetensors.index.json", ".safetensors"}) {
    if (name.size() > end.size() && name.ends_with(end)) return name.substr(0, name.size() - end.size());
  }
  return name;
}

// Takes ",key=VALUE" out of the text, up to its end or the other key.
std::optional<std::string> TakeSetting(std::string_view key, std::string_view other, std::string& text) {
  const size_t at = text.rfind(key);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + key.size(), end = std::min(text.find(other, begin), text.size());
  std::string value = text.substr(begin, end - begin);
  text.erase(at, end - at);
  return value;
}

}  // namespace

ModelPlace ModelPlace::Of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return Whole(path);
  const StatusOr<std::vector<int64_t>> versions = VersionsIn(Versioned(path));
  const bool versioned = fs::exists(path / "config.pbtxt", ignored) || (versions.ok() && !versions->empty());
  return versioned ? Versioned(path) : Whole(path);
}

bool ModelPlace::is_file() const {
  std::error_code ignored;
  return !versioned_ && !fs::is_directory(path_, ignored);
}

fs::path ModelPlace::folder() const { return is_file() ? path_.parent_path() : path_; }

fs::path ModelPlace::VersionFolder(int64_t version) const {
  return versioned_ ? path_ / std::to_string(version) : folder();
}

StatusOr<NamedModel> ParseNamedModel(const std::string& text) {
  std::string given = text;
  const std::optional<std::string> text_of = TakeSetting(",text=", ",name=", given);
  const std::optional<std::string> given_name = TakeSetting(",name=", ",text=", given);
  const std::optional<text::TextTask> task = text_of ? text::TextTaskOf(*text_of) : std::nullopt;
  if (text_of && !task) {
    return InvalidArgument("'text' is '", *text_of, "'; it may be ", text::kTextTaskNames,
                           ", as in PATH,text=embedding");
  }
  std::error_code error;
  const fs::path path = fs::absolute(given, error).lexically_normal();
  if (given.empty() || error || !(fs::is_regular_file(path, error) || fs::is_directory(path, error))) {
    return InvalidArgument("there is no file and no folder '", given, "'");
  }
  // A path that ends with a slash has an empty last part.
  std::string name = path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  if (!fs::is_directory(path, error)) name = WithoutFormat(std::move(name));
  if (given_name) name = *given_name;
  if (const Status status = CheckModelName(name); !status.ok()) {
    return InvalidArgument("'", name, "' is no name for a model (", std::string(status.message()),
                           "); give it one: ", given, ",name=NAME");
  }
  const ModelPlace place = ModelPlace::Of(path);
  return NamedModel{std::move(name), task ? place.WithTexts(*task) : place};
}

}  // namespace swizzle
