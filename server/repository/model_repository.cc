#include "server/repository/model_repository.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "kernels/base/mutex.h"
#include "kernels/cpu/runtime/available_cpus.h"
#include "model_loader/files/printable_name.h"
#include "server/batching/executor_threads.h"
#include "server/repository/directory_loader.h"
#include "server/repository/model_directory.h"
#include "server/telemetry/logging.h"
#include "server/threading/periodic.h"
#include "server/tuning/background_tuner.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// A session that has run nothing for so long, or twice that, keeps no memory.
constexpr absl::Duration kIdle = absl::Seconds(5);
// Where a repository has a model.
constexpr std::string_view kLayout = "MODEL/1/model.onnx, model.swz or model.safetensors";

MemoryRooms RoomsOf(const RepositoryOptions& options) {
  return {.process = options.memory, .most_of_runs = options.most_of_runs, .runs_limit = options.most_of_runs};
}

// Its models are those of the directory when it was opened. Thread-safe.
class DirectoryRepository final : public ModelRepository {
 public:
  DirectoryRepository(const RepositoryOptions& options, const Devices& devices, Metrics& metrics)
      : options_(options), devices_(devices), metrics_(metrics), rooms_(RoomsOf(options)) {
    if (options_.tune == Tune::kOff || options_.plan.tuning_budget <= absl::ZeroDuration()) return;
    tuner_ = std::make_unique<BackgroundTuner>(
        TunerOptions{options_.plan.tuning_budget, options_.plan.tuning_cache, options_.clock}, metrics_.activity());
  }

  Status Open();
  void Load(absl::FunctionRef<void()> changed) override;
  StatusOr<std::shared_ptr<ServingModel>> Find(std::string_view name, std::string_view version) const override;
  std::vector<ModelStatus> List() const override;
  std::vector<int64_t> Versions(std::string_view name) const override;
  int64_t promised_bytes() const override { return promised_.load(std::memory_order_relaxed); }
  RunBytes run_bytes() const override { return {rooms_.runs->held(), runs_limit_.load(std::memory_order_relaxed)}; }
  void CountUnserved(std::string_view name, StatusCode code) const override;
  Readiness readiness() const override { return JudgeReadiness(options_.ready, List()); }
  void StopTuning() override {
    if (tuner_ != nullptr) tuner_->RequestStop();
  }
  void Drain(absl::FunctionRef<void()> progress) override;
  void AwaitTuner(absl::Duration patience) override {
    if (tuner_ != nullptr) tuner_->AwaitStop(patience);
  }

 private:
  struct Entry {
    ModelStatus status;
    std::shared_ptr<ServingModel> serving;  // null where it is loaded yet, or that failed
  };

  const RepositoryOptions options_;
  const Devices& devices_;
  Metrics& metrics_;
  MemoryRooms rooms_;                                                   // of the thread that loads
  std::atomic<int64_t> promised_ = 0, runs_limit_ = rooms_.runs_limit;  // by it
  const std::shared_ptr<ComputeTurns> turns_ = std::make_shared<ComputeTurns>(AvailableCpus());
  const std::shared_ptr<ExecutorThreads> threads_ = std::make_shared<ExecutorThreads>(*options_.clock);
  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
  const Periodic free_idle_{kIdle, [runs = rooms_.runs] { runs->FreeIdle(); }};
  std::unique_ptr<BackgroundTuner> tuner_;  // last: it tunes models of the above; null: nothing is tuned
};

Status DirectoryRepository::Open() {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<fs::path> directories, Subdirectories(options_.directory));
  const MutexLock lock(mutex_);
  for (const fs::path& directory : directories) {
    const std::string name = directory.filename().string();
    if (IsNoModel(name)) continue;
    models_[name].status = {name, 0, MakeError(StatusCode::kUnavailable, "model '", name, "' is being loaded"),
                            ModelState::kLoading};
  }
  if (models_.empty()) {
    Log(LogLevel::kWarning, "there is no model", {{"repository", options_.directory.string()}, {"put_it_at", kLayout}});
  }
  return absl::OkStatus();
}

void DirectoryRepository::Load(absl::FunctionRef<void()> changed) {
  for (ModelStatus status : List()) {
    if (options_.stop && options_.stop()) return;
    LoadedDirectory loaded = LoadDirectory(options_.directory / status.name,
                                           {options_, devices_, metrics_, tuner_.get(), rooms_, turns_, threads_});
    promised_.store(rooms_.process.promised, std::memory_order_relaxed);
    runs_limit_.store(rooms_.runs_limit, std::memory_order_relaxed);
    StatusOr<std::shared_ptr<ServingModel>>& serving = loaded.serving;
    status.version = loaded.version;
    status.state = serving.ok() ? ModelState::kReady : ModelState::kFailed;
    status.status = serving.status();
    if (!serving.ok()) {
      metrics_.RecordLoadFailure(status.name);
      Log(LogLevel::kError, "model failed to load",
          {{"model", status.name}, {"version", status.version}, {"error", serving.status().ToString()}});
    }
    {
      const MutexLock lock(mutex_);
      models_[status.name] = {status, serving.ok() ? *std::move(serving) : nullptr};
    }
    changed();
  }
}

StatusOr<std::shared_ptr<ServingModel>> DirectoryRepository::Find(std::string_view name,
                                                                  std::string_view version) const {
  const MutexLock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) {
    return MakeError(StatusCode::kNotFound, "there is no model ", QuotedName(name));
  }
  const ModelStatus& status = found->second.status;
  if (status.state == ModelState::kLoading) return status.status;
  if (!version.empty()) {
    const std::optional<int64_t> number = ParseVersion(version);
    if (!number) {
      return InvalidArgument(QuotedName(version), " is not a version of model '", name,
                             "'; versions are positive integers, and none means the latest");
    }
    if (*number != status.version) {
      return MakeError(StatusCode::kNotFound, "model '", name, "' has no version ", *number, " that serves");
    }
  }
  if (found->second.serving != nullptr) return found->second.serving;
  return MakeError(StatusCode::kInternal, "model '", name, "' failed to load: ", std::string(status.status.message()));
}

std::vector<ModelStatus> DirectoryRepository::List() const {
  const MutexLock lock(mutex_);
  std::vector<ModelStatus> list;
  for (const auto& [name, entry] : models_) list.push_back(entry.status);
  return list;
}

std::vector<int64_t> DirectoryRepository::Versions(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end() || found->second.serving == nullptr) return {};
  return {found->second.status.version};
}

void DirectoryRepository::CountUnserved(std::string_view name, StatusCode code) const {
  int64_t version = 0;
  {
    const MutexLock lock(mutex_);
    const auto found = models_.find(name);
    if (found == models_.end()) {
      name = kUnknownModel;
    } else {
      version = found->second.status.version;
    }
  }
  metrics_.RecordUnserved(name, version, code);
}

// Without the lock: requests that end meanwhile may ask for their model.
void DirectoryRepository::Drain(absl::FunctionRef<void()> progress) {
  std::vector<std::shared_ptr<ServingModel>> serving;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, entry] : models_) {
      if (entry.serving != nullptr) serving.push_back(entry.serving);
    }
  }
  for (const auto& model : serving) model->batcher->Drain(progress);
}

}  // namespace

// Of one executor on 16 cores, kept busy, 14 to 20 % more requests a second; of four or more, as many; of executors of
// one or two threads up to an eighth less where clients run on the same processors, from which the others move away.
bool PinsThreads(PinThreads when, int executor_threads, int threads, int affinity, int available) {
  if (when != PinThreads::kAuto) return when == PinThreads::kOn;
  constexpr int kLeastPinned = 8;
  return executor_threads >= kLeastPinned && threads == affinity && available == affinity;
}

StatusOr<std::unique_ptr<ModelRepository>> NewModelRepository(const RepositoryOptions& options, const Devices& devices,
                                                              Metrics& metrics) {
  std::error_code ignored;
  if (!fs::is_directory(options.directory, ignored)) {
    return MakeError(StatusCode::kNotFound, "there is no model repository at ", options.directory.string(),
                     "; it is to be a folder with ", kLayout);
  }
  auto repository = std::make_unique<DirectoryRepository>(options, devices, metrics);
  SWIZZLE_RETURN_IF_ERROR(repository->Open());
  return repository;
}

}  // namespace swizzle
