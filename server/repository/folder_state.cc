#include "server/repository/folder_state.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <cstddef>
#include <system_error>
#include <vector>

#include "model_loader/files/file_descriptor.h"
#include "server/repository/model_directory.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// Beyond which nobody's model goes: links may lead in circles.
constexpr int kDeepest = 8;
constexpr size_t kMostFiles = 20'000;

bool IsVersion(const std::string& name) { return ParseVersion(name).has_value(); }

// Adds what is below `folder`, whose path below the model's is `prefix`.
void Add(const fs::path& folder, const std::string& prefix, int depth, bool skip_versions, FolderState& state) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    struct stat found {};
    if (state.size() >= kMostFiles) return;
    if (IsNoModel(name) || stat(it->path().c_str(), &found) != 0) continue;
    if (S_ISDIR(found.st_mode)) {
      if (depth < kDeepest && !(skip_versions && IsVersion(name))) {
        Add(it->path(), prefix + name + "/", depth + 1, false, state);
      }
    } else if (S_ISREG(found.st_mode)) {
      state[prefix + name] = FileState::Of(found);
    }
  }
}

// Adds the files of `folder` itself whose names begin with `start`.
void AddFiles(const fs::path& folder, const std::string& start, FolderState& state) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    struct stat found {};
    if (state.size() >= kMostFiles) return;
    if (!name.starts_with(start) || stat(it->path().c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    state[name] = FileState::Of(found);
  }
}

}  // namespace

FolderState LookAtVersion(const ModelPlace& model, int64_t version) {
  FolderState state;
  if (!model.versioned()) return version == 0 ? state : LookAtAll(model);
  if (version == 0) {
    Add(model.path(), "", 0, true, state);
  } else {
    Add(model.VersionFolder(version), std::to_string(version) + "/", 1, false, state);
  }
  return state;
}

FolderState LookAtAll(const ModelPlace& model) {
  FolderState state;
  if (model.is_file()) {
    AddFiles(model.folder(), model.path().stem().string(), state);
  } else {
    Add(model.path(), "", 0, false, state);
  }
  return state;
}

std::optional<std::string> FindChange(const FolderState& before, const FolderState& after) {
  for (const auto& [path, file] : before) {
    const auto found = after.find(path);
    if (found == after.end() || found->second != file) return path;
  }
  for (const auto& [path, file] : after) {
    if (!before.contains(path)) return path;
  }
  return std::nullopt;
}

std::optional<uint64_t> HashFile(const fs::path& file) {
  const FileDescriptor open_file(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!open_file.is_open()) return std::nullopt;
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<std::byte> piece(kPiece);
  XXH3_state_t* const hash = XXH3_createState();
  if (hash == nullptr) return std::nullopt;
  XXH3_64bits_reset(hash);
  ssize_t got = 0;
  while ((got = read(open_file.get(), piece.data(), piece.size())) > 0) {
    XXH3_64bits_update(hash, piece.data(), static_cast<size_t>(got));
  }
  const uint64_t value = XXH3_64bits_digest(hash);
  XXH3_freeState(hash);
  if (got < 0) return std::nullopt;
  return value;
}

}  // namespace swizzle
