#include "server/repository/model_repository.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include "kernels/base/mutex.h"
#include "model_loader/files/printable_name.h"
#include "server/repository/load_order.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_loading.h"
#include "server/repository/model_table.h"
#include "server/repository/repository_watch.h"
#include "server/repository/retirement.h"
#include "server/telemetry/containment.h"
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
// Orders of callers that may wait for others.
constexpr size_t kMostOrders = 256;

Status ShuttingDown() { return MakeError(StatusCode::kUnavailable, "the server is shutting down"); }

std::unique_ptr<BackgroundTuner> NewTuner(const RepositoryOptions& options, Metrics& metrics) {
  if (options.tune == Tune::kOff || options.plan.tuning_budget <= absl::ZeroDuration()) return nullptr;
  return std::make_unique<BackgroundTuner>(metrics.activity(), *options.clock);
}

// Thread-safe.
class DirectoryRepository final : public ModelRepository {
 public:
  DirectoryRepository(const RepositoryOptions& options, const Devices& devices, Metrics& metrics)
      : options_(options),
        metrics_(metrics),
        tuner_(NewTuner(options_, metrics)),
        loading_(options_, devices, metrics, table_, *retirement_, tuner_.get()) {}
  ~DirectoryRepository() override;

  Status Open();
  void Load(absl::FunctionRef<void()> changed) override;
  StatusOr<std::shared_ptr<ServingModel>> Find(std::string_view name, std::string_view version) const override {
    return table_.Find(name, version);
  }
  std::vector<ModelStatus> List() const override { return table_.List(); }
  std::vector<int64_t> Versions(std::string_view name) const override { return table_.Versions(name); }
  void LoadModel(LoadOrder order, Done done) override;
  void UnloadModel(const std::string& model, bool with_steps, Done done) override;
  void StopLoading() override;
  int64_t promised_bytes() const override { return loading_.promised_bytes(); }
  RunBytes run_bytes() const override { return loading_.run_bytes(); }
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
  struct Order {
    LoadOrder load;
    bool unload = false;
    Done done = nullptr;
    bool gone = false;        // it is in no repository any more
    bool with_steps = false;  // unloads an ensemble's as well, but for those of others
  };

  void Start();
  void Poll();
  void Add(Order order);
  bool IsFree(const std::string& model) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckExplicit() const;
  void Work();
  bool Next(Order& order);
  Status CarryOut(const Order& order);
  Status Unload(const std::string& model, bool gone, bool with_steps);
  void NoteChange() const {
    if (options_.changed) options_.changed();
  }

  const RepositoryOptions options_;
  Metrics& metrics_;
  ModelTable table_;
  const std::shared_ptr<Retirement> retirement_ = Retirement::New();
  // It tunes models of the table; null: nothing is tuned.
  const std::unique_ptr<BackgroundTuner> tuner_;
  ModelLoading loading_;
  std::vector<std::string> at_start_;  // models that Load loads

  Mutex mutex_;
  CondVar added_;
  std::deque<Order> orders_ ABSL_GUARDED_BY(mutex_);
  std::string current_ ABSL_GUARDED_BY(mutex_);  // the model of the order that is carried out; empty: none is
  Done current_done_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // orders are refused
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;   // the thread is to end
  std::thread thread_;                            // carries out orders; none where nobody gives any
  std::unique_ptr<RepositoryWatch> watch_;        // of the thread that polls; null: none does
  bool watch_failed_ = false;                     // its last look; likewise
  std::unique_ptr<Periodic> poll_;
  const Periodic free_idle_{kIdle, [this] { loading_.FreeIdleRuns(); }};
};

DirectoryRepository::~DirectoryRepository() {
  poll_ = nullptr;
  StopLoading();
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    added_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  StopTuning();
  retirement_->Stop();
}

Status DirectoryRepository::Open() {
  SWIZZLE_ASSIGN_OR_RETURN(const auto models, FindModels(options_.directories, options_.models));
  const std::vector<std::string>& wanted = options_.load_at_start;
  const bool all = options_.control != ModelControl::kExplicit || std::ranges::find(wanted, "*") != wanted.end();
  if (!all) at_start_ = wanted;
  for (const auto& [name, places] : models) {
    table_.Add(name);
    if (all) at_start_.push_back(name);
  }
  for (const std::string& name : at_start_) table_.BeginLoad(name, true);
  if (models.empty() && !options_.directories.empty()) {
    Log(LogLevel::kWarning, "there is no model",
        {{"repository", options_.directories.front().string()}, {"put_it_at", kLayout}});
  }
  return absl::OkStatus();
}

void DirectoryRepository::Load(absl::FunctionRef<void()> changed) {
  if (options_.control == ModelControl::kPoll)
    watch_ = std::make_unique<RepositoryWatch>(options_.directories, options_.models);
  for (const std::string& name : at_start_) {
    if (options_.stop && options_.stop()) return;
    if (!table_.IsLoading(name)) continue;                          // it was loaded as a step of another
    loading_.Load({.model = name, .awaited = true}).IgnoreError();  // it is in the table
    changed();
  }
  if (options_.control != ModelControl::kNone) Start();
}

// Throws nothing: where there are no threads, orders are refused.
void DirectoryRepository::Start() {
  const Status started = Contain("start what loads models", [this] {
    retirement_->Start([this](const EndedModel& ended) {
      loading_.NoteEnded(ended);
      NoteChange();
      const MutexLock lock(mutex_);
      added_.SignalAll();
    });
    thread_ = std::thread([this] { Work(); });
    if (watch_ != nullptr) poll_ = std::make_unique<Periodic>(options_.poll_interval, [this] { Poll(); });
    return absl::OkStatus();
  });
  if (started.ok()) return;
  Log(LogLevel::kError, "models cannot be loaded any more", {{"error", std::string(started.message())}});
  StopLoading();
}

void DirectoryRepository::Poll() {
  const Status looked = Contain("look at the repositories", [this]() -> Status {
    SWIZZLE_ASSIGN_OR_RETURN(const RepositoryWatch::Changes changes, watch_->Look());
    for (const std::string& model : changes.changed) Add({.load = {.model = model}});
    for (const std::string& model : changes.gone) Add({.load = {.model = model}, .unload = true, .gone = true});
    return absl::OkStatus();
  });
  if (!looked.ok() && !watch_failed_) {
    Log(LogLevel::kError, "the repositories cannot be looked at; models serve on",
        {{"error", std::string(looked.message())}});
  }
  watch_failed_ = !looked.ok();
}

Status DirectoryRepository::CheckExplicit() const {
  if (options_.control == ModelControl::kExplicit) return absl::OkStatus();
  return MakeError(StatusCode::kUnavailable,
                   "models are loaded and unloaded by calls where the server was started "
                   "with --model-control=explicit");
}

void DirectoryRepository::LoadModel(LoadOrder order, Done done) {
  if (Status status = CheckExplicit(); !status.ok()) return std::move(done)(std::move(status));
  Add({.load = std::move(order), .done = std::move(done)});
}

void DirectoryRepository::UnloadModel(const std::string& model, bool with_steps, Done done) {
  if (Status status = CheckExplicit(); !status.ok()) return std::move(done)(std::move(status));
  Add({.load = {.model = model}, .unload = true, .done = std::move(done), .with_steps = with_steps});
}

bool DirectoryRepository::IsFree(const std::string& model) const {
  return current_ != model &&
         std::ranges::none_of(orders_, [&](const Order& order) { return order.load.model == model; });
}

void DirectoryRepository::Add(Order order) {
  Status refused;
  {
    const MutexLock lock(mutex_);
    if (stopped_) {
      refused = ShuttingDown();
    } else if (!order.unload || !IsFree(order.load.model)) {
      if (orders_.size() < kMostOrders || !order.done) {
        orders_.push_back(std::move(order));
        return added_.SignalAll();
      }
      refused = MakeError(StatusCode::kResourceExhausted, "there are ", kMostOrders,
                          " models to be loaded already; try again later");
    }
  }
  // An unload waits for no load of another model.
  const Status status = refused.ok() ? CarryOut(order) : refused;
  if (order.done) std::move(order.done)(status);
}

void DirectoryRepository::StopLoading() {
  std::vector<Done> told;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    for (Order& order : orders_) told.push_back(std::move(order.done));
    orders_.clear();
    if (current_done_) told.push_back(std::exchange(current_done_, nullptr));
  }
  table_.Close();
  for (Done& done : told) {
    if (done) std::move(done)(ShuttingDown());
  }
}

// Waits for an order, and takes back what ended meanwhile. False: there is to be no more.
bool DirectoryRepository::Next(Order& order) {
  const MutexLock lock(mutex_);
  current_.clear();
  while (!ending_ && orders_.empty() && !loading_.has_ended()) added_.Wait(mutex_);
  if (ending_) return false;
  if (orders_.empty()) return true;
  order = std::move(orders_.front());
  orders_.pop_front();
  current_ = order.load.model;
  current_done_ = std::move(order.done);
  return true;
}

void DirectoryRepository::Work() {
  for (Order order; Next(order); order = {}) {
    loading_.TakeBack();
    if (order.load.model.empty()) continue;
    const Status status = Contain("change a model", [&] { return CarryOut(order); });
    Done done;
    {
      const MutexLock lock(mutex_);
      done = std::exchange(current_done_, nullptr);
    }
    if (done) std::move(done)(status);
  }
}

Status DirectoryRepository::CarryOut(const Order& order) {
  const Status status =
      order.unload ? Unload(order.load.model, order.gone, order.with_steps) : loading_.Load(order.load);
  NoteChange();
  return status;
}

Status DirectoryRepository::Unload(const std::string& model, bool gone, bool with_steps) {
  if (!table_.Has(model)) return MakeError(StatusCode::kNotFound, "there is no model ", QuotedName(model));
  const std::vector<std::string> steps = with_steps ? loading_.OwnSteps(model) : std::vector<std::string>();
  loading_.Unload(model);
  if (gone) table_.Forget(model);
  for (LoadOrder& follower : loading_.Followers(model)) Add({.load = std::move(follower)});
  for (const std::string& step : steps) Add({.load = {.model = step}, .unload = true, .with_steps = true});
  return absl::OkStatus();
}

void DirectoryRepository::CountUnserved(std::string_view name, StatusCode code) const {
  const bool known = table_.Has(name);
  metrics_.RecordUnserved(known ? name : kUnknownModel, known ? table_.LatestVersion(name) : 0, code);
}

// Without a lock: requests that end meanwhile may ask for their model.
void DirectoryRepository::Drain(absl::FunctionRef<void()> progress) {
  table_.Close();
  std::vector<std::shared_ptr<ServingModel>> serving = table_.AllServing();
  for (auto& model : retirement_->Retired()) serving.push_back(std::move(model));
  // What an ensemble has begun, its steps finish.
  std::ranges::stable_sort(serving, std::ranges::greater(), [](const auto& model) { return model->depth; });
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
  for (const fs::path& directory : options.directories) {
    std::error_code ignored;
    if (fs::is_directory(directory, ignored)) continue;
    return MakeError(StatusCode::kNotFound, "there is no model repository at ", directory.string(),
                     "; it is to be a folder with ", kLayout);
  }
  auto repository = std::make_unique<DirectoryRepository>(options, devices, metrics);
  SWIZZLE_RETURN_IF_ERROR(repository->Open());
  return repository;
}

}  // namespace swizzle
