// Whether a model's queue takes one more request, and how long that one would wait.
//
// A queue is bounded four ways: by requests, rows, bytes of inputs, and the time that what waits will take. The last is
// what keeps an overloaded model useful: it refuses at once what could only be answered too late. Of levels of priority
// each has a bound of requests of its own, and meets the other bounds with what is served before it.
//
// No connection fills the queue. With 90 %, what one has of a bound may be nine times what all leave free of it: one
// alone comes to 90 %, several together to little more, and who comes later finds room. These are the dynamic
// thresholds of Choudhury and Hahne (Dynamic Queue Length Thresholds for Shared-Memory Packet Switches, 1998), which
// throw out nothing that was accepted.
//
// All of it is arithmetic on what the batcher knows; nothing here locks, waits or looks at a clock.
#ifndef SWIZZLE_SERVER_BATCHING_ADMISSION_H_
#define SWIZZLE_SERVER_BATCHING_ADMISSION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batch_policy.h"
#include "server/model/model.h"
#include "server/telemetry/labels.h"

namespace swizzle {

// Requests together. Work is what batches are limited by: tokens where the model has sequences, else rows.
struct QueueLoad {
  int64_t requests = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t work = 0;

  void Add(const Queued& request);
  void Add(const QueueLoad& other);
  void Remove(const Queued& request);
};

struct QueueBounds {
  int64_t requests = 0;                 // of all levels
  std::vector<int64_t> level_requests;  // [level - 1]
  int64_t rows = 0;
  int64_t bytes = 0;
  absl::Duration wait = absl::InfiniteDuration();  // that is expected
  int64_t batch_work = 1;                          // the most that one batch takes
  bool single = false;                             // a batch is one request
  int executors = 1;
  int64_t connection_percent = 90;  // of each bound, one connection
};

// Whatever the specification says, one request may always wait, and of rows as many as all executors take at once.
QueueBounds BoundsOf(const ModelSpec& spec);

// How long batches take, by those that have run. Of late ones more than of early ones. Thread-compatible.
class ServiceTime {
 public:
  // `full`: nothing more fitted in the batch. What full ones do with their time is what a long queue will see.
  void Record(bool full, int64_t work, absl::Duration busy);

  // The same of a batch of shapes that come for the first time, which take longer than those after them: it counts as
  // little more than was expected, and, where nothing is known yet, the first of all not at all.
  void RecordFirst(bool full, int64_t work, int64_t batch_work, absl::Duration busy);

  // What one executor takes for `work` that waits, cut into batches of `batch_work`; zero while nothing has run.
  // Where no full batch has run yet, a straight line through those that have: some time for each batch, and some for
  // its work. Too long rather than too short where they were all of one size: then all of their time counts as their
  // work's.
  absl::Duration Of(int64_t work, int64_t batch_work) const;
  bool known() const { return all_.work > 0.0; }  // whether any has run

 private:
  double SecondsByLine(double work, double batch_work) const;

  bool any_first_ = false;                       // whether a batch was the first of its shape
  double full_seconds_ = 0.0, full_work_ = 0.0;  // decaying sums
  struct {
    double batches = 0.0, work = 0.0, seconds = 0.0, work_squared = 0.0, work_seconds = 0.0;
  } all_;  // the same, of all batches
};

struct Refusal {
  Rejection why;
  std::string reason;  // "1024 rows"
};

// Nothing where one more request of this level may wait, beside `waiting` of it.
std::optional<Refusal> RefuseLevel(const QueueBounds& bounds, int level, const QueueLoad& waiting);

// Whether `waiting` is more than the executors take at once: what fits in that waits for nothing.
bool FillsARound(const QueueBounds& bounds, const QueueLoad& waiting);

// How long what waits will take: what would run before a request, and all.
struct ExpectedWait {
  absl::Duration before, all;
};

// Nothing where `request` may join `waiting`, of which `own` came on the same connection: of its level and those above
// it, for what is below takes nothing from it. `expected` is read where it fills a round. `left` is the time until its
// deadline.
std::optional<Refusal> Refuse(const QueueBounds& bounds, const QueueLoad& waiting, const QueueLoad& own,
                              const Queued& request, const ExpectedWait& expected, absl::Duration left);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_ADMISSION_H_
