// The threads of all models' executors. An executor has one while it has something to run, and none while its model is
// idle: a hundred models that nobody asks need no thread.
//
// There are as many as executors had work at a time so far, each started when it is first needed. Where the system lets
// no more start, but for the few that others need to answer calls (kSpareThreads), executors take turns. One thread
// more rings alarms. Thread-safe.
#ifndef SWIZZLE_SERVER_BATCHING_EXECUTOR_THREADS_H_
#define SWIZZLE_SERVER_BATCHING_EXECUTOR_THREADS_H_

#include <atomic>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/threading/clock.h"

namespace swizzle {

// So many have to be left for what starts one now and then, and for gRPC, whose calls else hang: its timers, the tuner,
// the planner.
inline constexpr int kSpareThreads = 4;

class ExecutorThreads {
 public:
  // What runs on one of the threads, once each time that it is added.
  class Work {
   public:
    virtual void Run() = 0;

   protected:
    ~Work() = default;

   private:
    friend class ExecutorThreads;
    Work* next_ = nullptr;  // that waits for a thread
  };

  // What is called once at the time that it is set to. Not for long, since all others wait.
  class Alarm {
   public:
    virtual void Ring() = 0;

   protected:
    ~Alarm() = default;

   private:
    friend class ExecutorThreads;
    Instant at_ = Instant::InfiniteFuture();
  };

  // Starts two threads; std::system_error if the system doesn't let it. `clock` outlives this.
  explicit ExecutorThreads(Clock& clock);
  // REQUIRES: nothing waits or runs.
  ~ExecutorThreads();

  // So many works more, or fewer, may wait and run at a time: there are never more threads.
  void Expect(int works);
  // In the order in which they come; allocates nothing. False if it has to wait until another has run, however long.
  // REQUIRES: `work` does not wait for a thread. It may run, and adds itself for more.
  bool Add(Work& work);
  // Whether works wait that no more threads can be started for: who runs should let them.
  bool crowded() const { return crowded_.load(std::memory_order_relaxed); }

  void Register(Alarm& alarm);
  // After it `alarm` does not ring. Not to be called while it does.
  void Unregister(Alarm& alarm);
  // From now on `alarm` rings at this time only. It may be set while it rings.
  void Set(Alarm& alarm, Instant at);

 private:
  void RunWorks();
  void RingAlarms();
  bool Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteCrowd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  std::atomic<bool> crowded_ = false;

  Mutex mutex_;
  CondVar added_;
  Work* first_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of those that wait
  Work* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  int expected_ ABSL_GUARDED_BY(mutex_) = 0;
  Instant next_try_ ABSL_GUARDED_BY(mutex_) = Instant::InfinitePast();  // to start a thread
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;                        // the last try failed
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);

  Mutex alarm_mutex_;
  CondVar alarms_changed_, rung_;
  std::vector<Alarm*> alarms_ ABSL_GUARDED_BY(alarm_mutex_);
  const Alarm* ringing_ ABSL_GUARDED_BY(alarm_mutex_) = nullptr;
  Instant next_ring_ ABSL_GUARDED_BY(alarm_mutex_) = Instant::InfiniteFuture();  // that the thread waits for
  bool alarms_stopping_ ABSL_GUARDED_BY(alarm_mutex_) = false;
  std::thread alarm_thread_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_EXECUTOR_THREADS_H_
