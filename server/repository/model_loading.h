// Loads, replaces and unloads models: finds their folders and the versions to serve, and enters in the table what
// became of each.
#ifndef SWIZZLE_SERVER_REPOSITORY_MODEL_LOADING_H_
#define SWIZZLE_SERVER_REPOSITORY_MODEL_LOADING_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "kernels/devices.h"
#include "proto/model_config.pb.h"
#include "server/batching/executor_threads.h"
#include "server/model/compute_turns.h"
#include "server/repository/folder_state.h"
#include "server/repository/load_order.h"
#include "server/repository/memory_claim.h"
#include "server/repository/model_place.h"
#include "server/repository/model_repository.h"
#include "server/repository/model_table.h"
#include "server/repository/retirement.h"
#include "server/tuning/background_tuner.h"

namespace swizzle {

// Of one thread but for what says otherwise.
class ModelLoading {
 public:
  // All outlive this; `tuner` may be null.
  ModelLoading(const RepositoryOptions& options, const Devices& devices, Metrics& metrics, ModelTable& table,
               Retirement& retirement, BackgroundTuner* tuner);

  // Loads the versions that its policy means, the latest first, but for those that serve and whose files are as they
  // were. Each takes the place of what served before as soon as it is loaded; where that fails, what serves goes on.
  // What the policy does not mean any more ends once all that it means serves. NOT_FOUND, entering nothing, for a model
  // that is in no repository and is not known, unless the order brings its files, which then stand for all of it;
  // INTERNAL if it, or a version of it, failed to load. Of an ensemble the
  // steps that do not serve are loaded before; ensembles whose steps have changed are loaded again.
  Status Load(const LoadOrder& order);

  // From any thread: nothing of the model serves from now on.
  void Unload(const std::string& model);
  // From any thread: the orders that have to follow where the model was changed or unloaded, of ensembles that have it
  // as a step.
  std::vector<LoadOrder> Followers(const std::string& model) const;
  // From any thread: the steps of an ensemble that are no other's.
  std::vector<std::string> OwnSteps(const std::string& ensemble) const;
  // From any thread: a version was destroyed, and what it had of the memory is to be taken back.
  void NoteEnded(const EndedModel& ended);
  // Whether there is something to take back. From any thread.
  bool has_ended() const;
  void TakeBack();

  void FreeIdleRuns() { runs_->FreeIdle(); }                                            // from any thread
  int64_t promised_bytes() const { return promised_.load(std::memory_order_relaxed); }  // from any thread
  RunBytes run_bytes() const { return {runs_->held(), runs_limit_.load(std::memory_order_relaxed)}; }  // likewise

 private:
  struct Folder {
    ModelPlace place;
    FolderState common;  // files of all versions
    std::optional<inference::ModelConfig> config;
    std::vector<int64_t> versions;  // to serve
  };
  // What a version that serves was made of.
  struct Made {
    FolderState common, files;
    std::string config;                           // that it was given in place of config.pbtxt
    std::vector<const ServingModel*> steps = {};  // of an ensemble, which keeps them: not followed
    bool operator==(const Made&) const = default;
  };

  struct Ensemble {
    LoadOrder order;
    std::vector<std::string> steps;
  };

  StatusOr<ModelPlace> Find(const std::string& model) const;
  Status LoadFrom(const ModelPlace& place, const LoadOrder& order);
  StatusOr<Folder> ReadFolder(const ModelPlace& place, const LoadOrder& order) const;
  bool IsUnderWay(const std::string& ensemble) const;
  void LoadSteps(const LoadOrder& order, const inference::ModelConfig& config);
  Status LoadVersions(const LoadOrder& order, const Folder& folder);
  StatusOr<bool> LoadOne(const LoadOrder& order, const Folder& folder, int64_t version);
  Status Fail(const LoadOrder& order, int64_t version, const Status& why);
  void EndAll(const std::string& model);
  void End(const std::shared_ptr<ServingModel>& serving);
  void PublishRooms();

  const RepositoryOptions& options_;
  const Devices& devices_;
  Metrics& metrics_;
  ModelTable& table_;
  Retirement& retirement_;
  BackgroundTuner* const tuner_;
  MemoryRooms rooms_;
  const std::shared_ptr<interpreter::RunBudget> runs_ = rooms_.runs;
  std::atomic<int64_t> promised_ = 0, runs_limit_ = 0;  // of the rooms
  const std::shared_ptr<ComputeTurns> turns_;
  const std::shared_ptr<ExecutorThreads> threads_;
  std::map<std::string, std::map<int64_t, Made>> made_;  // of versions that serve, or did
  std::vector<std::string> under_way_;                   // ensembles whose steps are being loaded
  mutable Mutex mutex_;
  std::map<std::string, Ensemble> ensembles_ ABSL_GUARDED_BY(mutex_);  // that serve, or are to
  std::vector<uint64_t> ended_shares_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_MODEL_LOADING_H_
