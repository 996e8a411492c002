#include "kernels/measure/measure_kernels.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "kernels/backend/algorithm_choices.h"
#include "kernels/base/integers.h"
#include "kernels/measure/run_buffers.h"

namespace swizzle {
namespace {

// Turns of every contender. More would spread them further, and warm the caches more often.
constexpr int kTurns = 5;
// And more of those whose runs were disturbed, while there is budget.
constexpr int kRepeats = 10;
// How many times the least of all a contender's least may be, after two turns.
constexpr int kFarBehind = 2;
// What is judged together as disturbed or not: reading the machine takes a few microseconds.
constexpr int kMostAtOnce = 8;
constexpr absl::Duration kLongAtOnce = absl::Microseconds(500);

// The two least times of some.
struct LeastTimes {
  absl::Duration least = absl::InfiniteDuration(), second = absl::InfiniteDuration();

  void Add(absl::Duration time) {
    second = std::min(second, std::max(time, least));
    least = std::min(least, time);
  }
  bool has_one() const { return least < absl::InfiniteDuration(); }
  bool has_two() const { return second < absl::InfiniteDuration(); }
  bool Agree() const {
    constexpr double kSpread = 0.15;
    constexpr absl::Duration kTick = absl::Microseconds(1);
    return has_two() && second <= least * (1.0 + kSpread) + kTick;
  }
};

// What is known of a contender.
struct Standing {
  bool starts = false;
  int runs = 0;
  absl::Duration of_all = absl::InfiniteDuration();  // the least of all runs
  LeastTimes undisturbed;
  LeastTimes work;  // by MachineWatch::StopWork
  Disturbances met;
};

// Times contenders in turn; see MeasureKernels.
class Race {
 public:
  Race(Backend& backend, Stream& stream, RunBuffers& buffers, const Problem& problem, const MeasureOptions& options)
      : backend_(backend),
        stream_(stream),
        buffers_(buffers),
        problem_(problem),
        options_(options),
        gate_(*options.gate),
        work_tells_(options.watch != nullptr) {}

  StatusOr<std::vector<MeasuredTime>> Run(std::span<const Contender> contenders) {
    contenders_ = contenders;
    standings_.resize(contenders.size());
    const std::optional<MachineReading> before = ReadMachine();
    SWIZZLE_RETURN_IF_ERROR(WarmUp());
    end_ = gate_.Spent() + options_.budget * static_cast<int64_t>(contenders.size());
    for (int turn = 0; turn < kTurns && !(turn >= 2 && IsBusy()); ++turn) {
      SWIZZLE_RETURN_IF_ERROR(TakeTurns(
          turn, [&](const Standing& standing) { return standing.runs < 2 || turn < 2 || !IsFarBehind(standing); }));
    }
    if (IsBusy()) SWIZZLE_RETURN_IF_ERROR(MeasureWork());
    for (int turn = kTurns; turn < kTurns + kRepeats && gate_.Spent() < end_ && !by_work_; ++turn) {
      SWIZZLE_RETURN_IF_ERROR(TakeTurns(turn, [&](const Standing& standing) { return !Suspicion(standing).empty(); }));
    }
    if (!by_work_ && work_tells_ && AnySuspicion()) SWIZZLE_RETURN_IF_ERROR(MeasureWork());
    SWIZZLE_RETURN_IF_ERROR(stream_.Synchronize());
    return Times(before ? DisturbedMachine(*before, *ReadMachine(), threads_tell_) : Disturbances());
  }

 private:
  std::optional<MachineReading> ReadMachine() const {
    return options_.watch == nullptr ? std::nullopt : std::optional(options_.watch->ReadMachine());
  }

  // Whether most runs waited for processors, so that more of them would tell little.
  bool IsBusy() const { return disturbed_ * 2 > runs_; }

  // How long a contender takes, as far as is known: all by the same measure.
  const LeastTimes& Known(const Standing& standing) const {
    return by_work_ && standing.work.has_one() ? standing.work : standing.undisturbed;
  }
  bool IsFarBehind(const Standing& standing) const {
    const LeastTimes& known = Known(standing);
    return known.has_one() && known.least > best_ * kFarBehind;
  }
  bool AnySuspicion() const {
    return std::ranges::any_of(
        standings_, [&](const Standing& standing) { return standing.starts && !Suspicion(standing).empty(); });
  }

  // Which of them run here, and which algorithms they take where they have to choose. The first one's error if none
  // does; the device's if it is lost.
  Status WarmUp() {
    Status first_error;
    int starting = 0;
    for (size_t i = 0; i < contenders_.size(); ++i) {
      if (gate_.MustWait()) SWIZZLE_RETURN_IF_ERROR(gate_.Await());
      const KernelArgs args = buffers_.Args(contenders_[i], problem_);
      stream_.Run([&] { contenders_[i].kernel->run(args, stream_); });
      Status status = stream_.Synchronize();
      if (status.ok() && ChoicesOf(backend_) != nullptr) {
        status = stream_.Time([&] { contenders_[i].kernel->run(args, stream_); }, {}).status();
      }
      standings_[i].starts = status.ok();
      starting += status.ok();
      first_error.Update(status);
      SWIZZLE_RETURN_IF_ERROR(backend_.health());
    }
    return starting == 0 ? first_error : absl::OkStatus();
  }

  // One turn of each that is in. What is left of the budget is shared by all turns of the plan that are to come.
  Status TakeTurns(int turn, absl::FunctionRef<bool(const Standing&)> is_in) {
    int64_t in = 0;
    for (const Standing& standing : standings_) in += standing.starts && is_in(standing);
    if (in == 0) return absl::OkStatus();
    const int64_t turns_left = std::max(kTurns - turn, 1);
    const absl::Duration share = std::max(absl::ZeroDuration(), end_ - gate_.Spent()) / (in * turns_left);
    for (size_t i = 0; i < standings_.size(); ++i) {
      if (standings_[i].starts && is_in(standings_[i])) SWIZZLE_RETURN_IF_ERROR(TakeTurn(i, turn, share));
    }
    return absl::OkStatus();
  }

  // Runs until `share` is spent, or as many runs are done as there should be after this turn.
  Status TakeTurn(size_t i, int turn, absl::Duration share) {
    const int least_runs = CeilDiv(options_.min_runs * std::min(turn + 1, kTurns), kTurns);
    const int most_runs = CeilDiv(options_.max_runs * (turn + 1), kTurns);
    const absl::Duration end = gate_.Spent() + share;
    Standing& standing = standings_[i];
    while (true) {
      const int wanted = gate_.Spent() < end ? most_runs : least_runs;
      if (standing.runs >= wanted) break;
      SWIZZLE_RETURN_IF_ERROR(RunSome(i, std::min(kMostAtOnce, wanted - standing.runs)));
    }
    best_ = std::min(best_, standing.undisturbed.least);
    return absl::OkStatus();
  }

  // Two runs of each contender at least, whatever is left of the budget: they wait for no other thread. From the first
  // that is told on, all are judged by their work.
  Status MeasureWork() {
    best_ = absl::InfiniteDuration();
    for (int turn = 0; turn < 2 || (turn < kRepeats && gate_.Spent() < end_); ++turn) {
      for (size_t i = 0; i < standings_.size(); ++i) {
        const Standing& standing = standings_[i];
        const bool is_in = turn < 2 || (!standing.work.Agree() && !IsFarBehind(standing));
        if (standing.starts && is_in) SWIZZLE_RETURN_IF_ERROR(RunWork(i));
        if (!work_tells_) return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  // Some runs, of which what is asked is the work.
  Status RunWork(size_t i) {
    SWIZZLE_RETURN_IF_ERROR(AwaitGate(i));
    const int64_t others = gate_.disturbances();
    options_.watch->StartWork();
    const StatusOr<Runs> runs = RunAtOnce(i, kMostAtOnce);
    const std::optional<absl::Duration> work = options_.watch->StopWork();
    SWIZZLE_RETURN_IF_ERROR(runs);
    work_tells_ = work.has_value();
    if (!work || gate_.disturbances() != others) return absl::OkStatus();
    by_work_ = true;
    LeastTimes& known = standings_[i].work;
    known.Add(*work / runs->count);
    best_ = std::min(best_, known.least);
    return absl::OkStatus();
  }

  Status AwaitGate(size_t i) {
    if (!gate_.MustWait()) return absl::OkStatus();
    SWIZZLE_RETURN_IF_ERROR(stream_.Synchronize());
    SWIZZLE_RETURN_IF_ERROR(gate_.Await());
    return RunAtOnce(i, 1).status();  // caches are others' by now
  }

  // Timed runs, as many as are judged together.
  struct Runs {
    std::array<absl::Duration, kMostAtOnce> times;
    int count = 0;
    absl::Duration spent;
  };
  StatusOr<Runs> RunAtOnce(size_t i, int most) {
    const KernelArgs args = buffers_.Args(contenders_[i], problem_);
    const Stream::Operands activations = buffers_.Activations(contenders_[i], problem_);
    Runs runs;
    while (runs.count < most && runs.spent < kLongAtOnce) {
      SWIZZLE_ASSIGN_OR_RETURN(runs.times[runs.count],
                               stream_.Time([&] { contenders_[i].kernel->run(args, stream_); }, activations));
      runs.spent += runs.times[runs.count++];
    }
    return runs;
  }

  // At most so many runs, which are disturbed or not together.
  Status RunSome(size_t i, int most) {
    SWIZZLE_RETURN_IF_ERROR(AwaitGate(i));
    const int64_t others = gate_.disturbances();
    const ThreadReading before = options_.watch == nullptr ? ThreadReading() : options_.watch->ReadThreads();
    SWIZZLE_ASSIGN_OR_RETURN(const Runs runs, RunAtOnce(i, most));
    Disturbances met;
    if (options_.watch != nullptr) {
      const ThreadReading after = options_.watch->ReadThreads();
      threads_tell_ = after.waited.has_value();
      met = DisturbedThreads(before, after, runs.spent);
    }
    runs_ += runs.count;
    if (!met.empty()) disturbed_ += runs.count;
    if (gate_.disturbances() != others) met.Add(Disturbance::kRequests);
    Standing& standing = standings_[i];
    standing.met.Add(met);
    standing.runs += runs.count;
    for (int k = 0; k < runs.count; ++k) {
      standing.of_all = std::min(standing.of_all, runs.times[k]);
      if (met.empty()) standing.undisturbed.Add(runs.times[k]);
    }
    return absl::OkStatus();
  }

  // Why the time of a contender that starts isn't to be trusted.
  Disturbances Suspicion(const Standing& standing) const {
    const LeastTimes& known = Known(standing);
    if (IsFarBehind(standing)) return {};
    if (!known.has_one()) return standing.met;
    if (options_.watch == nullptr) return {};
    Disturbances found;
    if (!known.has_two()) {
      found = standing.met;
    } else if (!known.Agree()) {
      found.Add(Disturbance::kSpread);
    }
    if (!threads_tell_ && LooksLikeTimeSlices(known.least)) found.Add(Disturbance::kSlices);
    return found;
  }

  std::vector<MeasuredTime> Times(Disturbances of_machine) const {
    std::vector<MeasuredTime> times(standings_.size());
    for (size_t i = 0; i < standings_.size(); ++i) {
      const Standing& standing = standings_[i];
      if (!standing.starts) continue;
      const LeastTimes& known = Known(standing);
      times[i].time = known.has_one() ? known.least : standing.of_all;
      times[i].suspect = Suspicion(standing);
      times[i].suspect.Add(of_machine);
    }
    return times;
  }

  Backend& backend_;
  Stream& stream_;
  RunBuffers& buffers_;
  const Problem& problem_;
  const MeasureOptions& options_;
  MeasureGate& gate_;
  std::span<const Contender> contenders_;
  std::vector<Standing> standings_;                 // of contenders_
  absl::Duration best_ = absl::InfiniteDuration();  // that is known
  bool by_work_ = false;                            // that is what is known
  int runs_ = 0, disturbed_ = 0;                    // of which the latter were, not by requests
  absl::Duration end_;                              // of the budget, by the gate's clock
  bool threads_tell_ = false, work_tells_;
};

}  // namespace

StatusOr<std::vector<MeasuredTime>> MeasureKernels(Backend& backend, Stream& stream,
                                                   std::span<const Contender> contenders, const Problem& problem,
                                                   const MeasureOptions& options) {
  if (contenders.empty()) return std::vector<MeasuredTime>();
  SWIZZLE_ASSIGN_OR_RETURN(RunBuffers buffers, RunBuffers::Make(backend, stream, contenders, problem));
  return Race(backend, stream, buffers, problem, options).Run(contenders);
}

StatusOr<MeasuredTime> MeasureKernel(Backend& backend, Stream& stream, const Kernel& kernel, const Problem& problem,
                                     const PackedWeight* weight, const MeasureOptions& options) {
  const Contender contender{&kernel, weight};
  SWIZZLE_ASSIGN_OR_RETURN(const auto times, MeasureKernels(backend, stream, {&contender, 1}, problem, options));
  return times[0];
}

}  // namespace swizzle
