#include "server/repository/model_loading.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/cpu/runtime/available_cpus.h"
#include "model_loader/files/printable_name.h"
#include "server/config/config_file.h"
#include "server/config/config_parameters.h"
#include "server/config/model_config.h"
#include "server/config/served_spec.h"
#include "server/repository/directory_loader.h"
#include "server/repository/ensemble_loader.h"
#include "server/repository/load_failure.h"
#include "server/repository/model_directory.h"
#include "server/telemetry/containment.h"
#include "server/telemetry/logging.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// How long a load waits for the memory of versions that have requests yet: two copies of a model are enough.
constexpr absl::Duration kEndPatience = absl::Seconds(5);

MemoryRooms RoomsOf(const RepositoryOptions& options) {
  return {.process = options.memory, .most_of_runs = options.most_of_runs, .runs_limit = options.most_of_runs};
}

Status CheckUnchanged(const FolderState& before, const FolderState& now) {
  const std::optional<std::string> changed = FindChange(before, now);
  if (!changed) return absl::OkStatus();
  return MakeError(StatusCode::kUnavailable, QuotedName(*changed),
                   " changed while the model was read; load it again once its files are complete");
}

}  // namespace

ModelLoading::ModelLoading(const RepositoryOptions& options, const Devices& devices, Metrics& metrics,
                           ModelTable& table, Retirement& retirement, BackgroundTuner* tuner)
    : options_(options),
      devices_(devices),
      metrics_(metrics),
      table_(table),
      retirement_(retirement),
      tuner_(tuner),
      rooms_(RoomsOf(options)),
      turns_(std::make_shared<ComputeTurns>(AvailableCpus())),
      threads_(std::make_shared<ExecutorThreads>(*options.clock)) {
  PublishRooms();
}

Status ModelLoading::Load(const LoadOrder& order) {
  if (order.files != nullptr) {
    SWIZZLE_RETURN_IF_ERROR(CheckModelName(order.model));
    SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<BroughtFolder> brought, BroughtFolder::Write(*order.files));
    table_.BeginLoad(order.model, order.awaited);
    return LoadFrom(ModelPlace::Versioned(brought->path()), order);
  }
  const StatusOr<ModelPlace> place = Find(order.model);
  if (absl::IsNotFound(place.status()) && !order.awaited && !table_.Has(order.model)) return place.status();
  table_.BeginLoad(order.model, order.awaited);
  return place.ok() ? LoadFrom(*place, order) : Fail(order, 0, place.status());
}

Status ModelLoading::LoadFrom(const ModelPlace& place, const LoadOrder& order) {
  StatusOr<Folder> folder = Contain("load the model", [&] { return ReadFolder(place, order); });
  if (!folder.ok()) return Fail(order, 0, ReasonForClients(folder.status(), place.VersionFolder(1)));
  const std::vector<const ServingModel*> before = table_.ServingOf(order.model);
  if (folder->config && IsEnsemble(*folder->config)) {
    LoadSteps(order, *folder->config);
  } else {
    retirement_.AwaitEnds(kEndPatience);
    const MutexLock lock(mutex_);
    ensembles_.erase(order.model);
  }
  Status status = LoadVersions(order, *folder);
  if (table_.ServingOf(order.model) == before) return status;
  for (const LoadOrder& follower : Followers(order.model)) {
    if (IsUnderWay(follower.model)) continue;  // it looks at its steps when all of them are loaded
    Load(follower).IgnoreError();              // the table has its reason
  }
  return status;
}

// Where one fails, the ensemble says so.
void ModelLoading::LoadSteps(const LoadOrder& order, const inference::ModelConfig& config) {
  std::vector<std::string> steps;
  for (const EnsembleStep& step : StepsOf(config)) steps.push_back(step.model);
  {
    const MutexLock lock(mutex_);
    ensembles_[order.model] = {order, steps};
  }
  if (order.follows_steps) return;
  under_way_.push_back(order.model);
  for (const std::string& step : steps) {
    const bool is_wanted = table_.Versions(step).empty() && !(order.awaited && table_.HasFailed(step));
    if (!is_wanted || IsUnderWay(step)) continue;
    Load({.model = step, .awaited = order.awaited}).IgnoreError();
  }
  under_way_.pop_back();
}

bool ModelLoading::IsUnderWay(const std::string& ensemble) const {
  return std::ranges::find(under_way_, ensemble) != under_way_.end();
}

std::vector<LoadOrder> ModelLoading::Followers(const std::string& model) const {
  std::vector<LoadOrder> orders;
  const MutexLock lock(mutex_);
  for (const auto& [name, ensemble] : ensembles_) {
    if (std::ranges::find(ensemble.steps, model) == ensemble.steps.end()) continue;
    orders.push_back(ensemble.order);
    orders.back().follows_steps = true;
  }
  return orders;
}

std::vector<std::string> ModelLoading::OwnSteps(const std::string& ensemble) const {
  std::vector<std::string> own;
  const MutexLock lock(mutex_);
  const auto its = ensembles_.find(ensemble);
  if (its == ensembles_.end()) return own;
  for (const std::string& step : its->second.steps) {
    const bool is_others = std::ranges::any_of(ensembles_, [&](const auto& other) {
      return other.first != ensemble && std::ranges::find(other.second.steps, step) != other.second.steps.end();
    });
    if (!is_others && std::ranges::find(own, step) == own.end()) own.push_back(step);
  }
  return own;
}

StatusOr<ModelPlace> ModelLoading::Find(const std::string& model) const {
  const auto models = FindModels(options_.directories, options_.models);
  if (!models.ok()) {
    Log(LogLevel::kError, "a repository cannot be read", {{"error", std::string(models.status().message())}});
    return MakeError(StatusCode::kUnavailable, "a repository cannot be read; the log says why");
  }
  const auto found = models->find(model);
  if (found == models->end()) return MakeError(StatusCode::kNotFound, "there is no model ", QuotedName(model));
  if (found->second.size() == 1) return found->second[0];
  Log(LogLevel::kError, "a model is in two repositories",
      {{"model", model}, {"folder", found->second[0].path().string()}, {"other", found->second[1].path().string()}});
  return MakeError(StatusCode::kFailedPrecondition, "it is in two repositories; keep it in one");
}

StatusOr<ModelLoading::Folder> ModelLoading::ReadFolder(const ModelPlace& place, const LoadOrder& order) const {
  SWIZZLE_RETURN_IF_ERROR(CheckModelName(order.model));
  Folder folder{.place = place, .common = LookAtVersion(place, 0), .config = order.config, .versions = {}};
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> versions, VersionsIn(place));
  if (!folder.config && place.versioned()) {
    SWIZZLE_ASSIGN_OR_RETURN(folder.config, ReadModelConfig(place.path(), order.model));
  }
  if (place.text_task()) SetTextTask(*place.text_task(), folder.config);
  const inference::ModelConfig config = folder.config.value_or(inference::ModelConfig());
  SWIZZLE_ASSIGN_OR_RETURN(folder.versions, ServedVersions(versions, config.version_policy()));
  if (!folder.versions.empty()) return folder;
  if (!IsIdentity(config) && !IsEnsemble(config)) {
    return MakeError(
        StatusCode::kNotFound,
        "there is no version directory; put the model at 1/model.onnx, 1/model.swz or 1/model.safetensors");
  }
  folder.versions = {1};
  return folder;
}

Status ModelLoading::LoadVersions(const LoadOrder& order, const Folder& folder) {
  table_.ExpectVersions(order.model, folder.versions, order.awaited);
  Status failed;
  int loaded = 0;
  for (auto version = folder.versions.rbegin(); version != folder.versions.rend(); ++version) {
    const StatusOr<bool> done = LoadOne(order, folder, *version);
    loaded += done.ok() && *done;
    failed.Update(done.status());
  }
  std::erase_if(made_[order.model], [&](const auto& made) {
    return std::ranges::find(folder.versions, made.first) == folder.versions.end();
  });
  if (!failed.ok()) return failed;
  for (const auto& serving : table_.Unload(order.model, folder.versions)) End(serving);
  if (loaded == 0) Log(LogLevel::kInfo, "model unchanged", {{"model", order.model}});
  return absl::OkStatus();
}

// False: it serves already.
StatusOr<bool> ModelLoading::LoadOne(const LoadOrder& order, const Folder& folder, int64_t version) {
  Made made{folder.common,
            LookAtVersion(folder.place, version),
            order.config ? order.config->SerializeAsString() : std::string(),
            {}};
  if (folder.config) {
    const auto steps = FindSteps(StepsOf(*folder.config), table_);  // a load of it says what is wrong with them
    for (const auto& step : steps.ok() ? *steps : std::vector<ModelTable::Serving>()) made.steps.push_back(step.get());
  }
  const StatusOr<std::shared_ptr<ServingModel>> before = table_.Find(order.model, std::to_string(version));
  const auto known = made_[order.model].find(version);
  if (before.ok() && known != made_[order.model].end() && known->second == made) return false;
  const std::function<Status()> check_unchanged = [&]() -> Status {
    SWIZZLE_RETURN_IF_ERROR(CheckUnchanged(made.common, LookAtVersion(folder.place, 0)));
    return CheckUnchanged(made.files, LookAtVersion(folder.place, version));
  };
  const bool may_lower_batch = !before.ok() || !(*before)->model->spec().memory_note.empty();
  const bool aside = !order.awaited && !table_.AllServing().empty();
  TakeBack();
  StatusOr<std::shared_ptr<ServingModel>> serving =
      LoadVersion({folder.place, order.model, version, folder.config, may_lower_batch, aside, check_unchanged},
                  {options_, devices_, metrics_, tuner_, rooms_, turns_, threads_, retirement_, table_});
  if (!serving.ok()) return Fail(order, version, serving.status());
  PublishRooms();
  const std::shared_ptr<ServingModel> loaded = *serving;
  const StatusOr<std::shared_ptr<ServingModel>> replaced = table_.Serve(order.model, version, *std::move(serving));
  if (!replaced.ok()) {
    End(loaded);
    return replaced.status();
  }
  made_[order.model][version] = std::move(made);
  if (*replaced != nullptr) {
    Log(LogLevel::kInfo, "model replaced", {{"model", order.model}, {"version", version}});
    End(*replaced);
  }
  return true;
}

Status ModelLoading::Fail(const LoadOrder& order, int64_t version, const Status& why) {
  if (order.follows_steps) EndAll(order.model);
  const bool serves = !table_.Versions(order.model).empty();
  table_.Fail(order.model, version, why);
  metrics_.RecordLoadFailure(order.model);
  Log(LogLevel::kError, "model failed to load",
      {{"model", order.model},
       {"version", version},
       {"error", why.ToString()},
       {"served", serves ? "as before" : "no version"}});
  return MakeError(StatusCode::kInternal, "model '", order.model, "' failed to load: ", std::string(why.message()),
                   serves ? "; what served before goes on" : "");
}

void ModelLoading::Unload(const std::string& model) {
  {
    const MutexLock lock(mutex_);
    ensembles_.erase(model);
  }
  EndAll(model);
}

void ModelLoading::EndAll(const std::string& model) {
  const auto ended = table_.Unload(model, {});
  for (const auto& serving : ended) End(serving);
  if (!ended.empty()) Log(LogLevel::kInfo, "model unloaded", {{"model", model}});
}

void ModelLoading::End(const std::shared_ptr<ServingModel>& serving) {
  if (tuner_ != nullptr) tuner_->Drop(*serving->metrics);
  retirement_.Retire(serving);
}

void ModelLoading::NoteEnded(const EndedModel& ended) {
  table_.Ended(ended.name, ended.version, ended.was);
  if (ended.memory_share == 0) return;
  const MutexLock lock(mutex_);
  ended_shares_.push_back(ended.memory_share);
}

bool ModelLoading::has_ended() const {
  const MutexLock lock(mutex_);
  return !ended_shares_.empty();
}

void ModelLoading::TakeBack() {
  std::vector<uint64_t> shares;
  {
    const MutexLock lock(mutex_);
    std::swap(shares, ended_shares_);
  }
  for (const uint64_t share : shares) rooms_.GiveBack(share, options_.resident_bytes);
  if (!shares.empty()) PublishRooms();
}

void ModelLoading::PublishRooms() {
  promised_.store(rooms_.process.promised, std::memory_order_relaxed);
  runs_limit_.store(rooms_.runs_limit, std::memory_order_relaxed);
}

}  // namespace swizzle
