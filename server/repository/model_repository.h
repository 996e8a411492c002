// The models of one or more directories: `<repo>/<model>/[config.pbtxt]` and `<repo>/<model>/<version>/model.onnx` or
// model.swz, or there a Hugging Face checkpoint: config.json and model.safetensors or model.safetensors.index.json.
// Thread-safe. Names are looked up, never joined to a path.
#ifndef SWIZZLE_SERVER_REPOSITORY_MODEL_REPOSITORY_H_
#define SWIZZLE_SERVER_REPOSITORY_MODEL_REPOSITORY_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "kernels/backend/backend.h"
#include "kernels/devices.h"
#include "model_loader/plan/planner.h"
#include "server/batching/response_cache.h"
#include "server/memory/memory_limit.h"
#include "server/memory/memory_need.h"
#include "server/model/model.h"
#include "server/repository/model_place.h"
#include "server/repository/readiness.h"
#include "server/repository/serving_model.h"
#include "server/telemetry/metrics.h"
#include "server/threading/clock.h"

namespace swizzle {

struct RunBytes {
  int64_t held = 0;
  int64_t limit = 0;  // 0: there is none
};

struct LoadOrder;

class ModelRepository {
 public:
  // Called once with what became of an order, on an arbitrary thread; must not block.
  using Done = absl::AnyInvocable<void(Status) &&>;

  virtual ~ModelRepository() = default;
  // Loads what is to be loaded at the start, model by model; each serves as soon as it is. `changed` is called after
  // each. By one thread, once. From then on models change as RepositoryOptions::control says.
  virtual void Load(absl::FunctionRef<void()> changed) = 0;
  // The named version, or the latest that serves where version is empty. NOT_FOUND for an unknown model or version;
  // UNAVAILABLE while it is loaded, and where it is not; INTERNAL with the reason for one whose load failed;
  // INVALID_ARGUMENT for a version that is not a positive integer.
  virtual StatusOr<std::shared_ptr<ServingModel>> Find(std::string_view name, std::string_view version) const = 0;
  virtual std::vector<ModelStatus> List() const = 0;                       // by name and version
  virtual std::vector<int64_t> Versions(std::string_view name) const = 0;  // that serve, ascending
  // Orders return at once; those for one model are carried out one after the other. Loads happen beside serving, and a
  // model that serves is replaced between two requests; where that fails, it goes on (ModelStatus::reload), and `done`
  // gets INTERNAL with the reason. An unload lets the requests that there are end, and waits for none; with an ensemble
  // the steps go that are no other's, where that is asked for. UNAVAILABLE but with ModelControl::kExplicit; NOT_FOUND
  // for an unknown model.
  virtual void LoadModel(LoadOrder order, Done done) = 0;
  virtual void UnloadModel(const std::string& model, bool with_steps, Done done) = 0;
  // From now on orders are answered UNAVAILABLE, those that are under way included; returns at once.
  virtual void StopLoading() = 0;
  virtual Readiness readiness() const = 0;
  // What of the memory was promised to executors of models that serve.
  virtual int64_t promised_bytes() const = 0;
  // What runs of models in regions, or node by node, hold of it.
  virtual RunBytes run_bytes() const = 0;
  // In the metrics, of a request that Find found no model for.
  virtual void CountUnserved(std::string_view name, StatusCode code) const = 0;
  virtual void StopTuning() = 0;  // returns at once
  // After StopTuning: until nothing is measured, or saved, any more.
  virtual void AwaitTuner(absl::Duration patience) = 0;
  // Every batcher, and those of models that were unloaded or replaced. After StopLoading. `progress` as Batcher::Drain
  // has it.
  virtual void Drain(absl::FunctionRef<void()> progress = [] {}) = 0;
};

// Whether each of an executor's threads is pinned, where a model has `threads` in all, the affinity mask `affinity`
// processors, and a quota may leave fewer, `available`.
bool PinsThreads(PinThreads when, int executor_threads, int threads, int affinity, int available);

// When kernels are measured.
enum class Tune : uint8_t {
  kBackground,   // once a model serves, while no request is there
  kBeforeReady,  // before it serves
  kOff,          // never
};

// Who says which models serve.
enum class ModelControl : uint8_t {
  kNone,      // what the directories hold at the start
  kPoll,      // what they hold, which is looked at now and then
  kExplicit,  // calls
};

struct RepositoryOptions {
  std::vector<std::filesystem::path> directories = {};
  std::vector<NamedModel> models = {};  // beside those of the directories
  ModelControl control = ModelControl::kNone;
  absl::Duration poll_interval = absl::Seconds(15);  // with kPoll
  std::vector<std::string> load_at_start = {};       // with kExplicit; "*": all that there are
  std::function<void()> changed = nullptr;           // is called when models changed after Load; may be empty
  ReadyRule ready = {};
  Tune tune = Tune::kBackground;
  std::function<bool()> stop = nullptr;  // whether to load no further model; may be empty
  PlanOptions plan = {};                 // the tuning cache is of the devices' main one
  PinThreads pin_threads = PinThreads::kAuto;
  int cpu_executors = 1;     // of a model on the CPU whose configuration gives no number; they share plan.threads
  MemoryRoom memory = {};    // for models that are refused, or have smaller batches, where they need more
  int64_t most_of_runs = 0;  // bytes that runs of models in regions, or node by node, may hold; 0: what is left
  std::shared_ptr<ResponseCache> response_cache = nullptr;  // for models that ask for it; null: answers are not kept
  int64_t (*resident_bytes)() = &ResidentBytes;
  Clock* clock = &Clock::Real();  // of batchers and sessions; outlives the repository
};

// Finds the models, which are loaded by Load: of each the versions that its policy means (the latest
// by default, as Triton's). Links are followed; directories whose names start with a dot are not models. A model that
// fails to load, or is in two directories, is reported in List() and the log, and does not keep the others from
// serving. NOT_FOUND if a directory is not there. `devices` and `metrics` outlive the repository.
StatusOr<std::unique_ptr<ModelRepository>> NewModelRepository(const RepositoryOptions& options, const Devices& devices,
                                                              Metrics& metrics);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_MODEL_REPOSITORY_H_
