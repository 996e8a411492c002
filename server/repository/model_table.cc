#include "server/repository/model_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/repository/model_directory.h"

namespace swizzle {
namespace {

Status NotLoaded(std::string_view name) {
  return MakeError(StatusCode::kUnavailable, "model '", name, "' is not loaded");
}

Status FailedToLoad(std::string_view name, const Status& why) {
  return MakeError(StatusCode::kInternal, "model '", name, "' failed to load: ", std::string(why.message()));
}

// What a request is told of a version that does not serve.
Status WhyNot(std::string_view name, ModelState state, const Status& status) {
  return state == ModelState::kFailed ? FailedToLoad(name, status) : status;
}

}  // namespace

StatusOr<ModelTable::Serving> ModelTable::Find(std::string_view name, std::string_view version) const {
  const MutexLock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return MakeError(StatusCode::kNotFound, "there is no model ", QuotedName(name));
  const std::map<int64_t, Version>& versions = found->second.versions;
  const Version& latest = versions.rbegin()->second;
  if (version.empty()) {
    for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
      if (it->second.serving != nullptr) return it->second.serving;
    }
    const auto tells = std::find_if(versions.rbegin(), versions.rend(),
                                    [](const auto& entry) { return entry.second.state == ModelState::kLoading; });
    const Version& told = tells == versions.rend() ? latest : tells->second;
    return WhyNot(name, told.state, told.status);
  }
  const bool all_unknown = versions.size() == 1 && versions.begin()->first == 0;
  if (all_unknown && latest.state == ModelState::kLoading) return latest.status;
  const std::optional<int64_t> number = ParseVersion(version);
  if (!number) {
    return InvalidArgument(QuotedName(version), " is not a version of model '", name,
                           "'; versions are positive integers, and none means the latest");
  }
  const auto asked = versions.find(*number);
  if (asked == versions.end()) {
    return MakeError(StatusCode::kNotFound, "model '", name, "' has no version ", *number, " that serves");
  }
  if (asked->second.serving != nullptr) return asked->second.serving;
  return WhyNot(name, asked->second.state, asked->second.status);
}

std::vector<ModelStatus> ModelTable::List() const {
  const MutexLock lock(mutex_);
  std::vector<ModelStatus> list;
  for (const auto& [name, model] : models_) {
    for (const auto& [number, version] : model.versions) {
      list.push_back({name, number, version.status, version.state, version.awaited, version.reload});
    }
  }
  return list;
}

std::vector<int64_t> ModelTable::Versions(std::string_view name) const {
  const MutexLock lock(mutex_);
  std::vector<int64_t> serving;
  const auto found = models_.find(name);
  if (found == models_.end()) return serving;
  for (const auto& [number, version] : found->second.versions) {
    if (version.serving != nullptr) serving.push_back(number);
  }
  return serving;
}

bool ModelTable::Has(std::string_view name) const {
  const MutexLock lock(mutex_);
  return models_.contains(name);
}

bool ModelTable::AnyIs(std::string_view name, ModelState state) const {
  const auto found = models_.find(name);
  return found != models_.end() &&
         std::ranges::any_of(found->second.versions, [&](const auto& entry) { return entry.second.state == state; });
}

bool ModelTable::IsLoading(std::string_view name) const {
  const MutexLock lock(mutex_);
  return AnyIs(name, ModelState::kLoading);
}

bool ModelTable::HasFailed(std::string_view name) const {
  const MutexLock lock(mutex_);
  return AnyIs(name, ModelState::kFailed) && !AnyIs(name, ModelState::kReady);
}

std::vector<ModelTable::Serving> ModelTable::AllServing() const {
  const MutexLock lock(mutex_);
  std::vector<Serving> all;
  for (const auto& [name, model] : models_) {
    for (const auto& [number, version] : model.versions) {
      if (version.serving != nullptr) all.push_back(version.serving);
    }
  }
  return all;
}

std::vector<const ServingModel*> ModelTable::ServingOf(std::string_view name) const {
  const MutexLock lock(mutex_);
  std::vector<const ServingModel*> serving;
  const auto found = models_.find(name);
  if (found == models_.end()) return serving;
  for (const auto& [number, version] : found->second.versions) {
    if (version.serving != nullptr) serving.push_back(version.serving.get());
  }
  return serving;
}

int64_t ModelTable::LatestVersion(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto found = models_.find(name);
  return found == models_.end() ? 0 : found->second.versions.rbegin()->first;
}

void ModelTable::Add(const std::string& name) {
  const MutexLock lock(mutex_);
  if (!models_.contains(name)) models_[name].versions[0].status = NotLoaded(name);
}

void ModelTable::SetLoading(const std::string& name, Version& version, bool awaited) {
  if (version.state == ModelState::kReady) return;
  version.status = MakeError(StatusCode::kUnavailable, "model '", name, "' is being loaded");
  version.state = ModelState::kLoading;
  version.awaited = version.awaited || awaited;
  version.reload = {};
  version.ending = nullptr;
}

void ModelTable::BeginLoad(const std::string& name, bool awaited) {
  const MutexLock lock(mutex_);
  Model& model = models_[name];
  model.forgotten = false;
  if (model.versions.empty() || model.versions.contains(0)) SetLoading(name, model.versions[0], awaited);
}

void ModelTable::ExpectVersions(const std::string& name, const std::vector<int64_t>& versions, bool awaited) {
  const MutexLock lock(mutex_);
  Model& model = models_[name];
  std::erase_if(model.versions, [](const auto& entry) { return entry.second.state == ModelState::kUnloaded; });
  for (const int64_t number : versions) SetLoading(name, model.versions[number], awaited);
  if (!versions.empty()) model.versions.erase(0);
}

StatusOr<ModelTable::Serving> ModelTable::Serve(const std::string& name, int64_t version, Serving serving) {
  const MutexLock lock(mutex_);
  if (closed_) return MakeError(StatusCode::kUnavailable, "the server is shutting down");
  Version& served = models_[name].versions[version];
  Serving before = std::exchange(served.serving, std::move(serving));
  served.status = served.reload = absl::OkStatus();
  served.state = ModelState::kReady;
  served.ending = nullptr;
  return before;
}

void ModelTable::Fail(const std::string& name, int64_t version, const Status& why) {
  const MutexLock lock(mutex_);
  std::map<int64_t, Version>& versions = models_[name].versions;
  if (version == 0) {
    const auto serves = std::find_if(versions.rbegin(), versions.rend(),
                                     [](const auto& entry) { return entry.second.serving != nullptr; });
    if (serves != versions.rend()) {
      serves->second.reload = why;
      versions.erase(0);
      return;
    }
    std::erase_if(versions,
                  [](const auto& entry) { return entry.first != 0 && entry.second.state != ModelState::kUnloading; });
  }
  Version& failed = versions[version];
  if (failed.serving != nullptr) {
    failed.reload = why;
    return;
  }
  failed.status = why;
  failed.state = ModelState::kFailed;
  failed.ending = nullptr;
}

std::vector<ModelTable::Serving> ModelTable::Unload(std::string_view name, const std::vector<int64_t>& kept) {
  std::vector<Serving> ended;
  const MutexLock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return ended;
  for (auto& [number, version] : found->second.versions) {
    if (std::ranges::find(kept, number) != kept.end() || version.state == ModelState::kUnloading) continue;
    version.status = NotLoaded(name);
    version.reload = absl::OkStatus();
    version.awaited = false;
    version.state = ModelState::kUnloaded;
    if (version.serving == nullptr) continue;
    version.state = ModelState::kUnloading;
    version.ending = version.serving.get();
    ended.push_back(std::move(version.serving));
  }
  return ended;
}

void ModelTable::Ended(std::string_view name, int64_t version, const ServingModel* was) {
  const MutexLock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return;
  const auto ended = found->second.versions.find(version);
  if (ended == found->second.versions.end() || ended->second.ending != was) return;
  ended->second.state = ModelState::kUnloaded;
  ended->second.ending = nullptr;
  DropIfEmpty(found);
}

void ModelTable::Forget(std::string_view name) {
  const MutexLock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return;
  found->second.forgotten = true;
  DropIfEmpty(found);
}

void ModelTable::DropIfEmpty(Models::iterator model) {
  const auto is_over = [](const auto& entry) { return entry.second.state == ModelState::kUnloaded; };
  if (model->second.forgotten && std::ranges::all_of(model->second.versions, is_over)) models_.erase(model);
}

void ModelTable::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
}

}  // namespace swizzle
