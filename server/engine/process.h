// What all models of a process share: who is running anything, one tuner, and what a fork leaves of them.
//
// A child of a fork has the memory of its parent and one thread. What another thread was changing then is in pieces
// there for good. So a fork waits for the locks of all models, which are held briefly, and the child tells each model:
// what was at rest goes on with threads of its own, the rest refuses.
#ifndef SWIZZLE_SERVER_ENGINE_PROCESS_H_
#define SWIZZLE_SERVER_ENGINE_PROCESS_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/telemetry/activity.h"
#include "server/tuning/background_tuner.h"

namespace swizzle::engine {

// What a fork waits for.
class ForkWatched {
 public:
  virtual ~ForkWatched() = default;
  // Before a fork, and after it, in the parent and in the child. From other threads nothing changes in between.
  virtual void LockForFork() = 0;
  virtual void UnlockAfterFork() = 0;
  // In the child, between the two.
  virtual void NoteForked() = 0;
};

// Thread-safe.
class Process {
 public:
  // There from the first call to the end of the process.
  static Process& Get();

  // Of all models: nothing is measured while one of them runs.
  Activity& activity() { return activity_; }
  // The one that models of this process have now, or a new one. It ends with the last who has it.
  std::shared_ptr<BackgroundTuner> Tuner();

  // `watched` is watched until it leaves.
  void Enter(ForkWatched& watched);
  void Leave(ForkWatched& watched);

 private:
  Process();
  void BeforeFork();
  void AfterFork(bool in_child);
  static void StopTuning();

  Activity activity_;
  Mutex mutex_;
  std::vector<ForkWatched*> watched_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<BackgroundTuner> tuner_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle::engine

#endif  // SWIZZLE_SERVER_ENGINE_PROCESS_H_
