// Tunes models that serve: measures their kernels while no request is there, and replaces their plans by faster ones.
//
// One thread, of normal priority, sees to one model after the other. It measures on another, of low priority, whose
// pools inherit that; runners of plans that serve are made by the first. A model is seen to again, later and later, as
// long as measurements of it are suspect or missing and its budget lasts.
#ifndef SWIZZLE_SERVER_TUNING_BACKGROUND_TUNER_H_
#define SWIZZLE_SERVER_TUNING_BACKGROUND_TUNER_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/plan_tuner.h"
#include "server/model/served_model.h"
#include "server/telemetry/activity.h"
#include "server/telemetry/tuning_record.h"
#include "server/threading/clock.h"
#include "server/tuning/idle_gate.h"

namespace swizzle {

// A model that is to be tuned.
struct TuningJob {
  std::string model;
  int64_t version = 1;
  std::shared_ptr<ServedModel> served;  // whose plan of the whole is replaced; regions' tuners do it themselves
  std::vector<std::unique_ptr<PlanTuner>> tuners;  // by device; null: of this one all is known
  std::shared_ptr<TuningRecorder> recorder;        // null: none
  absl::Duration budget = absl::Seconds(15);       // for all measurements of the model
  TuningCache* cache = nullptr;                    // saved after each pass, outlives the job; null: none
};

// Thread-safe.
class BackgroundTuner {
 public:
  // Both outlive this.
  explicit BackgroundTuner(const Activity& activity, Clock& clock = Clock::Real());
  // Stops.
  ~BackgroundTuner();

  // Tunes the model now, by the calling thread, without regard to requests, until nothing is left to measure or the
  // budget is spent.
  static void TuneNow(TuningJob job);
  // Tunes the model when there is time.
  void Add(TuningJob job);
  // The model of this recorder is tuned no more; returns at once. Its job is let go of when what is measured has ended.
  void Drop(const TuningRecorder& recorder);
  // Measures no more; returns at once.
  void RequestStop();
  // After that, until what was being measured, or saved, has ended, or for so long.
  void AwaitStop(absl::Duration patience);

 private:
  struct Task {
    TuningJob job;
    bool aside = true;      // on a thread of low priority
    Instant due;            // of the next pass
    absl::Duration spent;   // of the budget
    absl::Duration excess;  // what a pass took beyond what it was given, at worst: preparing weights, least runs
    int passes = 0, replacements = 0;
    int suspect = 0, untimed = 0;  // after the last pass
    Status status;                 // an error ends the task
  };

  void Run();
  void TuneInTurn();
  bool TakeNext(std::list<Task>& taken);
  bool PutBack(std::list<Task>& taken, bool over);
  static void Pass(Task& task, MeasureGate& gate);
  // One device of the model. What the pass came to is added to the task.
  static Status TuneDevice(Task& task, size_t device, MeasureGate& gate, absl::Duration budget);
  static bool IsOver(const Task& task);
  static void Finish(const Task& task);
  static void Record(const Task& task, TuningState state, absl::Duration spent,
                     std::shared_ptr<const ModelFacts> replaced = nullptr);

  Clock& clock_;
  IdleGate gate_;
  Mutex mutex_;
  CondVar changed_;
  std::list<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  const TuningRecorder* tuned_ ABSL_GUARDED_BY(mutex_) = nullptr;  // that of the model that is seen to
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;                   // which is to be tuned no more
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // the thread has come to its end
  std::thread thread_;                         // last: it uses all of the above
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TUNING_BACKGROUND_TUNER_H_
