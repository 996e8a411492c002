#include "server/engine/process.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>

#include "absl/time/time.h"

namespace swizzle::engine {

Process& Process::Get() {
  static Process* const process = new Process;
  return *process;
}

Process::Process() {
  pthread_atfork([] { Get().BeforeFork(); }, [] { Get().AfterFork(false); }, [] { Get().AfterFork(true); });
  // What is measured while the process ends would see its globals go.
  std::atexit(StopTuning);
}

std::shared_ptr<BackgroundTuner> Process::Tuner() {
  const MutexLock lock(mutex_);
  std::shared_ptr<BackgroundTuner> tuner = tuner_.lock();
  if (tuner == nullptr) {
    tuner = std::make_shared<BackgroundTuner>(activity_);
    tuner_ = tuner;
  }
  return tuner;
}

void Process::StopTuning() {
  static constexpr absl::Duration kPatience = absl::Seconds(10);
  std::shared_ptr<BackgroundTuner> tuner;
  {
    const MutexLock lock(Get().mutex_);
    tuner = Get().tuner_.lock();
  }
  if (tuner == nullptr) return;
  tuner->RequestStop();
  tuner->AwaitStop(kPatience);
}

void Process::Enter(ForkWatched& watched) {
  const MutexLock lock(mutex_);
  watched_.push_back(&watched);
}

void Process::Leave(ForkWatched& watched) {
  const MutexLock lock(mutex_);
  std::erase(watched_, &watched);
}

void Process::BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  mutex_.Lock();
  for (ForkWatched* const watched : watched_) watched->LockForFork();
}

void Process::AfterFork(bool in_child) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (in_child) {
    activity_.Add(-activity_.inflight());
    tuner_.reset();  // its thread is the parent's
    for (ForkWatched* const watched : watched_) watched->NoteForked();
  }
  for (ForkWatched* const watched : watched_) watched->UnlockAfterFork();
  mutex_.Unlock();
}

}  // namespace swizzle::engine
