#include "server/tuning/background_tuner.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/memory/memory_trim.h"
#include "server/telemetry/containment.h"
#include "server/telemetry/log_event.h"
#include "server/threading/low_priority.h"

namespace swizzle {
namespace {

// Of the thread that measures: it takes a quarter of a processor that another wants.
constexpr int kNice = 5;
// Passes of one model: each has this much of what is left of the budget, so that something is left for the next, and
// waits twice as long as the one before it.
constexpr double kPassShare = 0.6;
constexpr absl::Duration kLeastPass = absl::Seconds(1);
constexpr absl::Duration kFirstWait = absl::Seconds(10), kLongestWait = absl::Minutes(2);
constexpr absl::Duration kLeastLeft = absl::Milliseconds(50);  // less is as good as nothing
constexpr int kMostPassesNow = 3;

// A model that can't be tuned serves on.
StatusOr<Tuned> TuneGuarded(PlanTuner& tuner, MeasureGate& gate, absl::Duration budget) {
  return Contain("tune the model", [&] { return tuner.Tune(gate, budget); });
}

// On a thread of low priority.
StatusOr<Tuned> TuneAside(PlanTuner& tuner, MeasureGate& gate, absl::Duration budget) {
  StatusOr<Tuned> tuned = absl::UnknownError("");
  SWIZZLE_RETURN_IF_ERROR(Contain("tune the model", [&] {
    RunAside(kNice, [&] { tuned = TuneGuarded(tuner, gate, budget); });
    return Status();
  }));
  GiveBackFreedMemory();  // what layouts of rejected candidates took
  return tuned;
}

}  // namespace

BackgroundTuner::BackgroundTuner(const Activity& activity, Clock& clock)
    : clock_(clock), gate_(activity, clock), thread_([this] { Run(); }) {}

BackgroundTuner::~BackgroundTuner() {
  RequestStop();
  thread_.join();
}

void BackgroundTuner::RequestStop() {
  gate_.Stop();
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

void BackgroundTuner::Add(TuningJob job) {
  Task task;
  task.job = std::move(job);
  task.due = clock_.Now();
  Record(task, TuningState::kWaiting, absl::ZeroDuration());
  MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.SignalAll();
}

void BackgroundTuner::TuneNow(TuningJob job) {
  Task task;
  task.job = std::move(job);
  task.aside = false;
  do Pass(task, MeasureGate::Open());
  while (!IsOver(task) && task.passes < kMostPassesNow);
  Finish(task);
}

void BackgroundTuner::AwaitStop(absl::Duration patience) {
  const Instant end = Clock::Real().Now() + patience;
  const MutexLock lock(mutex_);
  while (!over_ && Clock::Real().Now() < end) changed_.WaitUntil(mutex_, end);
}

void BackgroundTuner::Run() {
  TuneInTurn();
  const MutexLock lock(mutex_);
  over_ = true;
  changed_.SignalAll();
}

// Waits for a task that is due. False: there is to be no more.
bool BackgroundTuner::TakeNext(std::list<Task>& taken) {
  MutexLock lock(mutex_);
  while (true) {
    const auto next = std::ranges::min_element(tasks_, {}, [](const Task& task) { return task.due - Instant(); });
    if (stopped_) return false;
    const Instant due = next == tasks_.end() ? Instant::InfiniteFuture() : next->due;
    if (due <= clock_.Now()) {
      taken.splice(taken.begin(), tasks_, next);
      tuned_ = taken.front().job.recorder.get();
      return true;
    }
    clock_.WaitUntil(mutex_, changed_, due);
  }
}

// False: the task is to be tuned no more.
bool BackgroundTuner::PutBack(std::list<Task>& taken, bool over) {
  MutexLock lock(mutex_);
  tuned_ = nullptr;
  if (std::exchange(dropped_, false)) {
    gate_.Resume();
    return false;
  }
  if (over) return true;
  Task& task = taken.front();
  const absl::Duration wait = kFirstWait * (1 << std::min(task.passes - 1, 8));
  task.due = clock_.Now() + std::min(wait, kLongestWait);
  tasks_.splice(tasks_.end(), taken);
  return true;
}

void BackgroundTuner::TuneInTurn() {
  for (std::list<Task> taken; TakeNext(taken); taken.clear()) {
    Task& task = taken.front();
    task.status.Update(Contain("tune the model", [&] {
      Pass(task, gate_);
      return task.status;
    }));
    const bool stopped = absl::IsCancelled(task.status), over = IsOver(task);
    if (!stopped) {
      Contain("tell how a model is tuned", [&] {
        over ? Finish(task) : Record(task, TuningState::kWaiting, absl::ZeroDuration());
        return absl::OkStatus();
      }).IgnoreError();
    }
    if (PutBack(taken, over || stopped) && stopped) return;
  }
}

void BackgroundTuner::Drop(const TuningRecorder& recorder) {
  std::list<Task> dropped;  // let go of outside the lock
  MutexLock lock(mutex_);
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto next = std::next(task);
    if (task->job.recorder.get() == &recorder) dropped.splice(dropped.end(), tasks_, task);
    task = next;
  }
  if (tuned_ != &recorder) return;
  dropped_ = true;
  gate_.Skip();
}

bool BackgroundTuner::IsOver(const Task& task) {
  if (!task.status.ok() || task.suspect + task.untimed == 0) return true;
  return task.spent + task.excess + kLeastLeft > task.job.budget;
}

void BackgroundTuner::Pass(Task& task, MeasureGate& gate) {
  const absl::Duration left = task.job.budget - task.spent - task.excess;
  const absl::Duration budget = std::min(left, std::max(left * kPassShare, kLeastPass));
  ++task.passes;
  task.suspect = task.untimed = 0;
  for (size_t device = 0; device < task.job.tuners.size() && task.status.ok(); ++device) {
    if (task.job.tuners[device] == nullptr) continue;
    const absl::Duration rest = task.job.budget - task.spent - task.excess;
    if (device > 0 && rest < kLeastLeft) {
      ++task.untimed;  // at least
      break;
    }
    Record(task, TuningState::kMeasuring, absl::ZeroDuration());
    const absl::Duration start = gate.Spent();
    const absl::Duration given = std::min(budget, rest);
    task.status = TuneDevice(task, device, gate, given);
    const absl::Duration spent = gate.Spent() - start;
    task.spent += spent;
    task.excess = std::max(task.excess, spent - given);
    Record(task, TuningState::kMeasuring, spent);
  }
  if (task.job.cache == nullptr) return;
  const Status saved = task.job.cache->Save();
  if (!saved.ok()) Log(LogLevel::kWarning, "tuning cache not saved", {{"reason", std::string(saved.message())}});
}

Status BackgroundTuner::TuneDevice(Task& task, size_t device, MeasureGate& gate, absl::Duration budget) {
  TuningJob& job = task.job;
  SWIZZLE_ASSIGN_OR_RETURN(const Tuned tuned, task.aside ? TuneAside(*job.tuners[device], gate, budget)
                                                         : TuneGuarded(*job.tuners[device], gate, budget));
  task.suspect += tuned.suspect;
  task.untimed += tuned.untimed;
  if (tuned.better == nullptr && tuned.replaced == 0) return absl::OkStatus();
  if (tuned.better != nullptr) {
    SWIZZLE_RETURN_IF_ERROR(Contain("replace the plan", [&] { return job.served->Replace(device, tuned.better); }));
  }
  task.replacements += tuned.better == nullptr ? tuned.replaced : 1;
  const std::shared_ptr<const ModelFacts> facts = job.served->facts();
  Record(task, TuningState::kMeasuring, absl::ZeroDuration(), facts);
  Log(LogLevel::kInfo, "plan replaced",
      {{"model", job.model},
       {"version", job.version},
       {"device", device < facts->devices.size() ? facts->devices[device] : "cpu"},
       {"gain", tuned.gain},
       {"timed_now", tuned.timed_now},
       {"suspect", tuned.suspect}});
  return absl::OkStatus();
}

void BackgroundTuner::Finish(const Task& task) {
  Record(task, task.status.ok() ? TuningState::kDone : TuningState::kFailed, absl::ZeroDuration());
  if (!task.status.ok()) {
    Log(LogLevel::kWarning, "model not tuned; its plan goes on",
        {{"model", task.job.model}, {"version", task.job.version}, {"error", task.status.ToString()}});
    return;
  }
  Log(LogLevel::kInfo, "model tuned",
      {{"model", task.job.model},
       {"version", task.job.version},
       {"measured_ms", absl::ToInt64Milliseconds(task.spent)},
       {"passes", task.passes},
       {"replacements", task.replacements},
       {"suspect", task.suspect},
       {"untimed", task.untimed}});
}

void BackgroundTuner::Record(const Task& task, TuningState state, absl::Duration spent,
                             std::shared_ptr<const ModelFacts> replaced) {
  if (task.job.recorder == nullptr) return;
  task.job.recorder->RecordTuning({state, spent, task.suspect, std::move(replaced)});
}

}  // namespace swizzle
