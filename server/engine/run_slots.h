// What runs of one model take turns in: a session each.
//
// Who finds none free waits; it is overtaken by others a few times at most. (A session that is handed over to one who
// waits is idle until that thread runs: where each was, two threads got less done than one.)
#ifndef SWIZZLE_SERVER_ENGINE_RUN_SLOTS_H_
#define SWIZZLE_SERVER_ENGINE_RUN_SLOTS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "server/engine/process.h"
#include "server/model/model.h"

namespace swizzle::engine {

// Thread-safe.
class RunSlots final : public ForkWatched {
 public:
  // So many sessions of `model`, which outlives this. A model that forks do not survive runs in no child.
  static StatusOr<std::unique_ptr<RunSlots>> New(swizzle::Model& model, int count, bool survives_forks);
  // REQUIRES: End was called, or nobody has a session or waits for one.
  ~RunSlots() override;

  // Waits for a session, which is the caller's until GiveBack. CANCELLED once these have ended; FAILED_PRECONDITION in
  // a child that the model is of no use to.
  StatusOr<Session*> Take();
  void GiveBack(Session* session);
  // Who waits is told so; returns when nobody has a session any more.
  void End();

  // Whether the model is being changed beside runs, so that a child could find it in pieces.
  void NoteChanging(bool changing);
  // Whether this process is a child of the one that made the model. What it has of it then is never torn down.
  bool inherited() const;
  // Take's error where the model is of no use to this process.
  Status Usable() const;

  void LockForFork() override;
  void UnlockAfterFork() override;
  void NoteForked() override;

 private:
  static constexpr int kMostOvertaken = 8;
  enum class State : uint8_t { kUsable, kForked, kLost };
  struct Waiter {
    CondVar turn;
    Session* session = nullptr;  // that was handed over
    int overtaken = 0;
  };

  Status CheckUsable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RunSlots(swizzle::Model& model, int count, bool survives_forks)
      : model_(model), count_(count), survives_forks_(survives_forks) {}
  Status Fill() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Session* TakeFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<Session*> Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  swizzle::Model& model_;
  const int count_;
  const bool survives_forks_;
  mutable Mutex mutex_;
  CondVar idle_;  // nobody has a session, or waits
  State state_ ABSL_GUARDED_BY(mutex_) = State::kUsable;
  bool inherited_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool changing_ ABSL_GUARDED_BY(mutex_) = false;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<Session*> free_ ABSL_GUARDED_BY(mutex_);  // the one that ran last is the last
  std::list<Waiter*> waiters_ ABSL_GUARDED_BY(mutex_);  // in the order in which they came
};

}  // namespace swizzle::engine

#endif  // SWIZZLE_SERVER_ENGINE_RUN_SLOTS_H_
