#include "server/repository/model_directory.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string>
#include <system_error>

#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxModelNameBytes = 128;

// What begins the names of folders that systems make: hidden ones, those of Synology and QNAP, waste-paper baskets, and
// NetApp's snapshots. No model's name may begin with them, but for the dot.
constexpr std::string_view kSystemMarks = ".@#$~";
constexpr auto kSystemFolders =
    std::to_array<std::string_view>({"lost+found", "System Volume Information", "__MACOSX", "__pycache__"});

// The end of a sentence about a version's directory without a model: what is there instead.
std::string InsteadOfAModel(const fs::path& directory) {
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    names.push_back(QuotedName(it->path().filename().string()));
  }
  std::ranges::sort(names);
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) list += Concat(i == 0 ? ", but " : ", ", names[i]);
  if (names.size() > kMostNamed) list += Concat(" and ", names.size() - kMostNamed, " more");
  return list.empty() ? list : Concat(list, "; name the model in 'default_model_filename', or export it to ONNX");
}

}  // namespace

std::optional<int64_t> ParseVersion(std::string_view text) {
  int64_t version = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || stop != text.data() + text.size() || version < 1 || text.front() == '0') {
    return std::nullopt;
  }
  return version;
}

StatusOr<std::vector<fs::path>> Subdirectories(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;  // what cannot be looked at is not a directory
    if (it->is_directory(ignored)) found.push_back(it->path());
  }
  if (error) return MakeError(StatusCode::kNotFound, "cannot list ", directory.string(), ": ", error.message());
  std::sort(found.begin(), found.end());
  return found;
}

bool IsNoModel(std::string_view folder) {
  return kSystemMarks.find(folder.front()) != std::string_view::npos ||
         std::ranges::find(kSystemFolders, folder) != kSystemFolders.end();
}

Status CheckModelName(std::string_view name) {
  const auto allowed = [](unsigned char c) { return (c < 128 && std::isalnum(c)) || c == '_' || c == '.' || c == '-'; };
  if (!name.empty() && name.size() <= kMaxModelNameBytes && std::all_of(name.begin(), name.end(), allowed)) {
    return absl::OkStatus();
  }
  return InvalidArgument("model names consist of 1 to ", kMaxModelNameBytes, " letters, digits and '_', '.', '-'");
}

StatusOr<std::vector<int64_t>> VersionsIn(const ModelPlace& model) {
  if (!model.versioned()) return std::vector<int64_t>{1};
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<fs::path> subdirectories, Subdirectories(model.path()));
  std::vector<int64_t> versions;
  for (const fs::path& path : subdirectories) {
    if (const auto version = ParseVersion(path.filename().string())) versions.push_back(*version);
  }
  std::ranges::sort(versions);
  return versions;
}

StatusOr<std::vector<int64_t>> ServedVersions(const std::vector<int64_t>& versions,
                                              const inference::ModelVersionPolicy& policy) {
  if (versions.empty()) return versions;
  if (policy.has_all()) return versions;
  if (policy.has_specific()) {
    const auto& named = policy.specific().versions();
    std::vector<int64_t> meant = versions;
    std::erase_if(meant, [&](int64_t version) { return std::ranges::find(named, version) == named.end(); });
    if (!meant.empty()) return meant;
    return MakeError(StatusCode::kNotFound, "config.pbtxt: none of the versions that 'version_policy' names is there; ",
                     "the latest is ", versions.back());
  }
  const size_t latest = std::min<size_t>(std::max(policy.latest().num_versions(), 1u), versions.size());
  return std::vector<int64_t>(versions.end() - static_cast<std::ptrdiff_t>(latest), versions.end());
}

StatusOr<std::map<std::string, std::vector<ModelPlace>>> FindModels(const std::vector<fs::path>& repositories,
                                                                    const std::vector<NamedModel>& named) {
  std::map<std::string, std::vector<ModelPlace>> models;
  for (const NamedModel& model : named) models[model.name].push_back(model.place);
  for (const fs::path& repository : repositories) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<fs::path> folders, Subdirectories(repository));
    for (const fs::path& folder : folders) {
      const std::string name = folder.filename().string();
      if (!IsNoModel(name)) models[name].push_back(ModelPlace::Versioned(folder));
    }
  }
  return models;
}

StatusOr<fs::path> ModelFile(const ModelPlace& model, int64_t version, const std::string& name) {
  if (model.is_file() && name.empty()) return model.path();
  const fs::path version_directory = model.VersionFolder(version);
  std::error_code ignored;
  if (!name.empty()) {
    if (fs::is_regular_file(version_directory / name, ignored)) return version_directory / name;
    return MakeError(StatusCode::kNotFound, "there is no '", name,
                     "' in the version's directory, which 'default_model_filename' in config.pbtxt names");
  }
  std::vector<fs::path> found;
  for (const char* usual : {"model.onnx", "model.swz", "model.safetensors", "model.safetensors.index.json"}) {
    if (fs::is_regular_file(version_directory / usual, ignored)) {
      found.push_back(version_directory / usual);
    } else if (fs::is_symlink(version_directory / usual, ignored)) {
      return MakeError(StatusCode::kFailedPrecondition, usual,
                       " is a link that leads to no file; mend it or remove it");
    }
  }
  if (found.empty()) {
    return MakeError(StatusCode::kNotFound,
                     "there is none of model.onnx, model.swz and model.safetensors in the version's directory",
                     InsteadOfAModel(version_directory));
  }
  if (found.size() > 1) {
    return InvalidArgument("there is both ", found[0].filename().string(), " and ", found[1].filename().string(),
                           "; keep one");
  }
  return found[0];
}

}  // namespace swizzle
