#include "server/repository/repository_watch.h"

#include <iterator>
#include <optional>
#include <utility>

#include "server/repository/model_directory.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// The path of a file as StateOf names it: the place's number, and the path below that.
fs::path PathOf(const std::vector<ModelPlace>& places, const std::string& name) {
  const size_t slash = name.find('/');
  return places[std::stoul(name.substr(0, slash))].folder() / name.substr(slash + 1);
}

}  // namespace

RepositoryWatch::RepositoryWatch(std::vector<fs::path> repositories, std::vector<NamedModel> models)
    : repositories_(std::move(repositories)), named_(std::move(models)) {
  const StatusOr<Found> found = FindModels(repositories_, named_);
  if (!found.ok()) return;
  for (const auto& [name, places] : *found) {
    Model& model = models_[name];
    model.places = places;
    model.seen = model.known = StateOf(places);
    model.is_known = true;
  }
}

FolderState RepositoryWatch::StateOf(const std::vector<ModelPlace>& places) {
  FolderState state;
  for (size_t i = 0; i < places.size(); ++i) {
    for (auto& [path, file] : LookAtAll(places[i])) state[Concat(i, "/", path)] = file;
  }
  return state;
}

// What was told of, while it is as it was then.
void RepositoryWatch::Hash(Model& model) {
  model.hashed = true;
  model.hashes.clear();
  for (const auto& [path, file] : model.known) {
    if (const std::optional<uint64_t> hash = HashFile(PathOf(model.places, path))) model.hashes[path] = *hash;
  }
  // Of a file that has changed meanwhile this is the hash of nothing.
  for (const auto& [path, file] : StateOf(model.places)) {
    const auto known = model.known.find(path);
    if (known == model.known.end() || known->second != file) model.hashes.erase(path);
  }
}

bool RepositoryWatch::HasContentOf(const Model& model, const FolderState& now) {
  if (model.known.size() != now.size()) return false;
  for (const auto& [path, file] : now) {
    const auto known = model.known.find(path);
    if (known == model.known.end() || known->second.bytes != file.bytes) return false;
    if (known->second == file) continue;
    const auto hash = model.hashes.find(path);
    if (hash == model.hashes.end() || HashFile(PathOf(model.places, path)) != hash->second) return false;
  }
  return true;
}

StatusOr<RepositoryWatch::Changes> RepositoryWatch::Look() {
  SWIZZLE_ASSIGN_OR_RETURN(const Found found, FindModels(repositories_, named_));
  Changes changes;
  for (const auto& [name, places] : found) {
    Model& model = models_[name];
    FolderState now = StateOf(places);
    const bool moved = std::exchange(model.places, places) != places;
    const bool quiet = std::exchange(model.seen, now) == now;
    model.missing = false;
    if (moved || !quiet) continue;  // it may still be written to
    if (model.is_known && now == model.known) {
      if (!model.hashed) Hash(model);
      continue;
    }
    const bool same = model.is_known && HasContentOf(model, now);
    model.known = std::move(now);
    model.is_known = true;
    model.hashed = false;
    if (!same) changes.changed.push_back(name);
  }
  for (auto it = models_.begin(); it != models_.end();) {
    auto& [name, model] = *it;
    const bool gone = !found.contains(name) && std::exchange(model.missing, true);
    if (gone && model.is_known) changes.gone.push_back(name);
    it = gone ? models_.erase(it) : std::next(it);
  }
  return changes;
}

}  // namespace swizzle
