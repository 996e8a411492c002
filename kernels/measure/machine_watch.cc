#include "kernels/measure/machine_watch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/measure/loop_clock.h"

namespace swizzle {
namespace {

// A file of /proc that is read again and again from its beginning.
class ProcFile {
 public:
  explicit ProcFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~ProcFile() {
    if (file_ >= 0) close(file_);
  }
  ProcFile(ProcFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;
  ProcFile& operator=(ProcFile&&) = delete;

  // Its first bytes, as many as fit; ended by a zero. Null if it can't be read.
  const char* Read() {
    const ssize_t bytes = file_ < 0 ? -1 : pread(file_, text_.data(), text_.size() - 1, 0);
    if (bytes <= 0) return nullptr;
    text_[static_cast<size_t>(bytes)] = '\0';
    return text_.data();
  }

 private:
  int file_;
  std::array<char, 256> text_;
};

int ThisThread() { return static_cast<int>(syscall(SYS_gettid)); }

class ProcMachineWatch final : public MachineWatch {
 public:
  explicit ProcMachineWatch(const std::set<int>& threads) {
    for (const int thread : threads) {
      files_.emplace_back("/proc/self/task/" + std::to_string(thread) + "/schedstat");
    }
  }

  // Work whose end was never asked for, since it threw, ends here.
  ~ProcMachineWatch() override { LoopClock::OfThisThread().Stop(); }

  ThreadReading ReadThreads() override {
    ThreadReading reading;
    rusage usage = {};
    getrusage(RUSAGE_THREAD, &usage);
    reading.forced_switches = usage.ru_nivcsw;
    reading.waited = Waited();
    reading.cpu = ThreadTime();
    return reading;
  }

  MachineReading ReadMachine() override {
    MachineReading reading;
    reading.at = MonotonicNow();
    reading.processors = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    // cpu user nice system idle iowait irq softirq steal ..., in ticks
    unsigned long long ticks[8] = {};
    const char* const statistics = stat_.Read();
    if (statistics != nullptr &&
        std::sscanf(statistics, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1], &ticks[2],
                    &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]) == 8) {
      reading.stolen = absl::Seconds(static_cast<double>(ticks[7]) / static_cast<double>(sysconf(_SC_CLK_TCK)));
    }
    unsigned long long total = 0;
    const char* const pressure = pressure_.Read();
    if (pressure != nullptr && std::sscanf(pressure, "some %*s %*s %*s total=%llu", &total) == 1) {
      reading.pressure = absl::Microseconds(static_cast<int64_t>(total));
    }
    return reading;
  }

  void StartWork() override { LoopClock::OfThisThread().Start(); }
  std::optional<absl::Duration> StopWork() override { return LoopClock::OfThisThread().Stop(); }

 private:
  // The second number of schedstat: nanoseconds in a run queue. A thread that has ended counts no more.
  std::optional<absl::Duration> Waited() {
    int64_t nanoseconds = 0;
    bool told = false;
    for (ProcFile& file : files_) {
      unsigned long long ran = 0, waited = 0;
      const char* const text = file.Read();
      if (text == nullptr || std::sscanf(text, "%llu %llu", &ran, &waited) != 2) continue;
      told = told || ran > 0;  // a kernel without these statistics says 0
      nanoseconds += static_cast<int64_t>(waited);
    }
    return told ? std::optional(absl::Nanoseconds(nanoseconds)) : std::nullopt;
  }

  std::vector<ProcFile> files_;  // of the watched threads
  ProcFile stat_{"/proc/stat"};
  ProcFile pressure_{"/proc/pressure/cpu"};
};

}  // namespace

std::set<int> ThreadIds() {
  std::set<int> ids;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/task", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    int id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ec == std::errc()) ids.insert(id);
  }
  return ids;
}

std::unique_ptr<MachineWatch> NewMachineWatch(const std::set<int>& before) {
  std::set<int> watched = ThreadIds();
  std::erase_if(watched, [&](int id) { return before.contains(id); });
  watched.insert(ThisThread());
  return std::make_unique<ProcMachineWatch>(watched);
}

std::string DisturbancesText(Disturbances disturbances) {
  std::string text;
  for (size_t i = 0; i < kDisturbanceNames.size(); ++i) {
    if (!disturbances.Has(static_cast<Disturbance>(i))) continue;
    if (!text.empty()) text += ",";
    text += kDisturbanceNames[i];
  }
  return text;
}

Disturbances DisturbedThreads(const ThreadReading& before, const ThreadReading& after, absl::Duration wall) {
  constexpr absl::Duration kShortWait = absl::Microseconds(10), kShortSleep = absl::Microseconds(50);
  Disturbances found;
  const bool told = before.waited && after.waited;
  if (told && *after.waited - *before.waited > std::max(kShortWait, wall / 50)) found.Add(Disturbance::kWaited);
  if (after.forced_switches > before.forced_switches) found.Add(Disturbance::kWaited);
  if (wall - (after.cpu - before.cpu) > std::max(kShortSleep, wall / 20)) found.Add(Disturbance::kAsleep);
  return found;
}

Disturbances DisturbedMachine(const MachineReading& before, const MachineReading& after, bool threads_tell) {
  constexpr absl::Duration kLeastStolen = absl::Milliseconds(30);  // what /proc/stat counts in is 10 ms
  constexpr absl::Duration kLeastPressure = absl::Milliseconds(1);
  constexpr double kMostShare = 0.1;
  const absl::Duration wall = after.at - before.at;
  Disturbances found;
  if (before.stolen && after.stolen) {
    const absl::Duration stolen = *after.stolen - *before.stolen;
    if (stolen >= kLeastStolen && stolen > wall * after.processors * kMostShare) found.Add(Disturbance::kStolen);
  }
  if (!threads_tell && before.pressure && after.pressure) {
    const absl::Duration pressure = *after.pressure - *before.pressure;
    if (pressure >= kLeastPressure && pressure > wall * kMostShare) found.Add(Disturbance::kPressure);
  }
  return found;
}

bool LooksLikeTimeSlices(absl::Duration time) {
  // Of kernels at 250 Hz. At 1000 Hz slices are a few of 1 ms, and 100 Hz are rare.
  constexpr absl::Duration kSlice = absl::Milliseconds(4);
  constexpr double kNear = 0.03;  // of a slice
  const double slices = absl::FDivDuration(time, kSlice);
  const double whole = std::round(slices);
  return whole >= 1.0 && std::abs(slices - whole) <= kNear;
}

}  // namespace swizzle
