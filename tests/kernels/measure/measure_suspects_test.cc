// What measurements make of a machine that disturbs them: scripted times, readings and gates.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/measure/measure_kernels.h"
#include "tests/kernels/fake_backend.h"

namespace swizzle {
namespace {

bool AcceptsAll(const Problem&) { return true; }

char last_run = ' ';  // of the two kernels below
void RunA(const KernelArgs&, Stream&) { last_run = 'a'; }
void RunB(const KernelArgs&, Stream&) { last_run = 'b'; }

constexpr KernelKey kKey = {
    Op::kConv, Format::kDense, DType::kFloat32, {Layout::kNchw, DType::kFloat32}, {Layout::kPanels, DType::kFloat32}};
const Kernel kTable[] = {{"a", kKey, 0, AcceptsAll, nullptr, nullptr, RunA},
                         {"b", kKey, 0, AcceptsAll, nullptr, nullptr, RunB}};

// A machine whose time is scripted: it is gate, watch and stream in one.
class Machine final : public Stream, public MachineWatch, public MeasureGate {
 public:
  // Of each kernel; what a disturbed run takes instead.
  std::map<char, absl::Duration> times = {{'a', absl::Microseconds(100)}, {'b', absl::Microseconds(150)}};
  absl::Duration slice = absl::Milliseconds(4);
  // Which timed runs, by number from 1, a neighbour disturbs, or requests do.
  std::function<bool(int run)> neighbour = [](int) { return false; };
  std::function<bool(int run)> request = [](int) { return false; };
  bool threads_tell = true;
  absl::Duration stolen_per_run;
  absl::Duration gate_per_run;  // that the gate is shut for, which Spent leaves out
  bool work_tells = false;
  double work_share = 1.0;  // of what a run takes undisturbed, its work
  int cancel_after = 1 << 30;

  int runs = 0;
  std::map<char, int> runs_of;

  int threads() const override { return 1; }
  void Copy(void*, const void*, size_t) override {}
  void Run(Work work) override { work(); }
  StatusOr<absl::Duration> Time(Work work, Operands) override {
    work();
    ++runs;
    ++runs_of[last_run];
    absl::Duration time = times.at(last_run);
    if (request(runs)) ++requests_;
    if (neighbour(runs)) {
      time = slice;
      waited_ += slice - times.at(last_run);
    }
    now_ += time;
    cpu_ += time;  // the measuring thread spins while another waits
    stolen_ += stolen_per_run;
    shut_ += gate_per_run;
    work_ += times.at(last_run) * work_share;
    return time;
  }
  Status Synchronize() override { return absl::OkStatus(); }

  ThreadReading ReadThreads() override { return {cpu_, 0, threads_tell ? std::optional(waited_) : std::nullopt}; }
  void StartWork() override { work_ = absl::ZeroDuration(); }
  std::optional<absl::Duration> StopWork() override { return work_tells ? std::optional(work_) : std::nullopt; }
  MachineReading ReadMachine() override { return {Instant() + now_ + shut_, stolen_, absl::ZeroDuration(), 1}; }

  bool MustWait() override { return runs >= cancel_after; }
  Status Await() override { return MakeError(StatusCode::kCancelled, "stopped"); }
  int64_t disturbances() const override { return requests_; }
  absl::Duration Spent() override { return now_; }

 private:
  absl::Duration now_, cpu_, waited_, stolen_, shut_, work_;
  int64_t requests_ = 0;
};

StatusOr<std::vector<MeasuredTime>> Measure(Machine& machine, absl::Duration budget = absl::Milliseconds(20)) {
  FakeBackend backend(kTable, 0);
  const Contender contenders[] = {{&kTable[0], nullptr}, {&kTable[1], nullptr}};
  const Problem problem = {{}, {1, 3, 4, 4}, {1, 5, 4, 4}};
  return MeasureKernels(backend, machine, contenders, problem,
                        {.budget = budget, .min_runs = 2, .max_runs = 25, .gate = &machine, .watch = &machine});
}

TEST(SuspectTest, AQuietMachineIsTrusted) {
  Machine machine;
  const auto times = Measure(machine);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ((*times)[0].time, absl::Microseconds(100));
  EXPECT_EQ((*times)[1].time, absl::Microseconds(150));
  for (const MeasuredTime& time : *times) EXPECT_TRUE(time.suspect.empty());
}

// A fast kernel that loses its processor in its first turns took a time slice, and was left out as far behind.
TEST(SuspectTest, DisturbedRunsDoNotLeaveAKernelOut) {
  Machine machine;
  machine.neighbour = [&](int) { return last_run == 'a' && machine.runs_of['a'] <= 24; };
  const auto times = Measure(machine, absl::Seconds(1));
  ASSERT_TRUE(times.ok());
  EXPECT_EQ((*times)[0].time, absl::Microseconds(100));
  EXPECT_TRUE((*times)[0].suspect.empty());
}

TEST(SuspectTest, DisturbedRunsAreRepeatedWithinTheBudget) {
  Machine machine;
  machine.neighbour = [](int) { return true; };
  const auto times = Measure(machine);
  ASSERT_TRUE(times.ok());
  for (const MeasuredTime& time : *times) {
    EXPECT_EQ(time.time, absl::Milliseconds(4));
    EXPECT_EQ(DisturbancesText(time.suspect), "waited");
  }
  EXPECT_LT(machine.Spent(), absl::Milliseconds(40) + 4 * machine.slice) << "20 ms for each of two";
}

// Whose runs are longer than a time slice is never undisturbed.
TEST(SuspectTest, WorkStandsInForUndisturbedRuns) {
  Machine machine;
  machine.work_tells = true;
  machine.slice = absl::Milliseconds(30);
  machine.times = {{'a', absl::Milliseconds(5)}, {'b', absl::Milliseconds(6)}};
  machine.neighbour = [](int) { return true; };
  const auto times = Measure(machine, absl::Seconds(1));
  ASSERT_TRUE(times.ok());
  EXPECT_EQ((*times)[0].time, absl::Milliseconds(5));
  EXPECT_EQ((*times)[1].time, absl::Milliseconds(6));
  for (const MeasuredTime& time : *times) EXPECT_TRUE(time.suspect.empty());
}

// A neighbour takes a whole time slice from each run of what takes much less, while the thread that measures spins.
TEST(SuspectTest, WorkOfShortKernelsIsNoTimeSlice) {
  Machine machine;
  machine.work_tells = true;
  machine.neighbour = [](int) { return true; };
  const auto times = Measure(machine, absl::Seconds(1));
  ASSERT_TRUE(times.ok());
  EXPECT_EQ((*times)[0].time, absl::Microseconds(100));
  EXPECT_EQ((*times)[1].time, absl::Microseconds(150));
  for (const MeasuredTime& time : *times) EXPECT_TRUE(time.suspect.empty());
}

// Work of one is not compared with runs of another.
TEST(SuspectTest, AllAreJudgedByWorkIfOneIs) {
  Machine machine;
  machine.work_tells = true;
  machine.work_share = 0.9;
  machine.neighbour = [](int) { return last_run == 'b'; };
  const auto times = Measure(machine);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ((*times)[0].time, absl::Microseconds(90));
  EXPECT_EQ((*times)[1].time, absl::Microseconds(135));
  for (const MeasuredTime& time : *times) EXPECT_TRUE(time.suspect.empty());
}

TEST(SuspectTest, AQuietMachineIsNotAskedForWork) {
  Machine machine;
  machine.work_tells = true;
  machine.work_share = 0.9;
  machine.neighbour = [](int run) { return run % 10 == 0; };
  const auto times = Measure(machine);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ((*times)[0].time, absl::Microseconds(100));
}

TEST(SuspectTest, RunsBesideRequestsDoNotCount) {
  Machine machine;
  machine.work_tells = true;
  machine.request = [](int) { return true; };
  const auto times = Measure(machine);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(DisturbancesText((*times)[0].suspect), "requests");
}

TEST(SuspectTest, TimesThatDoNotAgreeAreSuspect) {
  Machine machine;
  machine.request = [&](int run) {
    machine.times['a'] = absl::Microseconds(100) * (run + 1);  // of the next
    return false;
  };
  const auto times = Measure(machine, absl::Milliseconds(1));
  ASSERT_TRUE(times.ok());
  EXPECT_TRUE((*times)[0].suspect.Has(Disturbance::kSpread));
  EXPECT_TRUE((*times)[1].suspect.empty());
}

TEST(SuspectTest, MultiplesOfATimeSliceAreSuspectWhereThreadsTellNothing) {
  Machine machine;
  machine.threads_tell = false;
  machine.neighbour = [](int) { return true; };
  const auto times = Measure(machine);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(DisturbancesText((*times)[0].suspect), "slices");
}

TEST(SuspectTest, StolenTimeMakesAllSuspect) {
  Machine machine;
  machine.stolen_per_run = absl::Milliseconds(10);
  const auto times = Measure(machine);
  ASSERT_TRUE(times.ok());
  for (const MeasuredTime& time : *times) EXPECT_TRUE(time.suspect.Has(Disturbance::kStolen));
}

TEST(SuspectTest, WhatIsStolenWhileTheGateIsShutIsNoneOfTheMeasurement) {
  Machine machine;
  machine.stolen_per_run = absl::Milliseconds(10);
  machine.gate_per_run = absl::Seconds(1);
  const auto times = Measure(machine);
  ASSERT_TRUE(times.ok());
  for (const MeasuredTime& time : *times) EXPECT_TRUE(time.suspect.empty());
}

TEST(SuspectTest, AClosedGateEndsIt) {
  Machine machine;
  machine.cancel_after = 3;
  EXPECT_EQ(Measure(machine).status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace swizzle
