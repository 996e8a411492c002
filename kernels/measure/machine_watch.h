// What the machine says of the time that threads did not get: the difference of two readings tells whether a run
// between them was disturbed. Kernels that wait for a processor have been measured as multiples of its time slice.
//
// Readings only rise. What a machine doesn't tell (in some sandboxes) is absent, and then not judged by.
#ifndef SWIZZLE_KERNELS_MEASURE_MACHINE_WATCH_H_
#define SWIZZLE_KERNELS_MEASURE_MACHINE_WATCH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "kernels/base/instant.h"

namespace swizzle {

// Of the threads that measure.
struct ThreadReading {
  absl::Duration cpu = absl::ZeroDuration();            // that the calling thread has used
  int64_t forced_switches = 0;                          // when the calling thread lost its processor to another
  std::optional<absl::Duration> waited = std::nullopt;  // all watched threads together, for a processor
};

// Of the whole machine. Its clocks are coarse: tens of milliseconds.
struct MachineReading {
  Instant at;
  std::optional<absl::Duration> stolen;    // by other virtual machines, of all processors together
  std::optional<absl::Duration> pressure;  // while any task waited for a processor
  int processors = 1;
};

class MachineWatch {
 public:
  virtual ~MachineWatch() = default;
  // By the thread that measures. Takes microseconds.
  virtual ThreadReading ReadThreads() = 0;
  // Takes tens of microseconds.
  virtual MachineReading ReadMachine() = 0;
  // By the thread that measures: what work between the two takes with a processor for each thread (LoopClock), however
  // long its threads waited for one. None where that can't be told.
  virtual void StartWork() = 0;
  virtual std::optional<absl::Duration> StopWork() = 0;
};

// The threads of this process, by the system's ids. Empty where /proc doesn't tell.
std::set<int> ThreadIds();

// Watches the calling thread, and those that were made since `before`: a stream's pool, say.
std::unique_ptr<MachineWatch> NewMachineWatch(const std::set<int>& before);

// What a measurement met.
enum class Disturbance : uint8_t {
  kWaited,    // a thread waited for a processor, or lost it
  kAsleep,    // the measuring thread was not running for a part of the time
  kRequests,  // requests ran meanwhile
  kSlices,    // it took a multiple of the scheduler's time slice
  kSpread,    // its repeats differ
  kStolen,    // other virtual machines took processors
  kPressure,  // tasks waited for processors
};
inline constexpr std::array<std::string_view, 7> kDisturbanceNames = {"waited", "asleep", "requests", "slices",
                                                                      "spread", "stolen", "pressure"};

// A set of them. Value type.
class Disturbances {
 public:
  void Add(Disturbance what) { bits_ |= 1u << static_cast<unsigned>(what); }
  void Add(Disturbances others) { bits_ |= others.bits_; }
  bool Has(Disturbance what) const { return (bits_ >> static_cast<unsigned>(what) & 1u) != 0; }
  bool empty() const { return bits_ == 0; }
  friend bool operator==(Disturbances, Disturbances) = default;

 private:
  unsigned bits_ = 0;
};

// Their names, by comma.
std::string DisturbancesText(Disturbances disturbances);

// What disturbed runs that took `wall` between the readings. Pure.
Disturbances DisturbedThreads(const ThreadReading& before, const ThreadReading& after, absl::Duration wall);
// Likewise all that was measured between the readings. By pressure only where threads don't tell how long they waited:
// beside a busy process there is pressure always, and still many an undisturbed run. Pure.
Disturbances DisturbedMachine(const MachineReading& before, const MachineReading& after, bool threads_tell);
// Whether this is close to a multiple of a time slice. Pure.
bool LooksLikeTimeSlices(absl::Duration time);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_MEASURE_MACHINE_WATCH_H_
