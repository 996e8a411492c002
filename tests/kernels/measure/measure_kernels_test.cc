#include "kernels/measure/measure_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "tests/kernels/fake_backend.h"

namespace swizzle {
namespace {

bool AcceptsAll(const Problem&) { return true; }

constexpr KernelKey Key(Op op, Format format) {
  return {op, format, DType::kFloat32, {Layout::kNchw, DType::kFloat32}, {Layout::kPanels, DType::kFloat32}};
}

// What the last run of the counting kernel saw.
struct Seen {
  int runs = 0;
  size_t inputs = 0;
  bool inputs_random = true;
  size_t workspace_bytes = 0;
  bool aligned = true;
  bool sequences = false;
  std::string order;  // a letter for each run
};
Seen seen;

bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % kBufferAlignment == 0; }

void CountRun(const KernelArgs& args, Stream&) {
  ++seen.runs;
  seen.inputs = args.inputs.size();
  seen.workspace_bytes = args.workspace.size();
  seen.sequences = args.sequences != nullptr;
  seen.aligned = seen.aligned && IsAligned(args.output.data) && IsAligned(args.workspace.data());
  for (const Operand& operand : args.inputs) {
    const auto* input = operand.As<float>();
    seen.aligned = seen.aligned && IsAligned(input);
    seen.inputs_random = seen.inputs_random && input[0] != input[1] && input[0] != 0;
  }
  const int64_t outputs = LayoutElements(args.problem->output, Layout::kPanels);
  std::fill_n(args.Output<float>(), outputs, 1.0f);
}
size_t HundredBytes(const Problem&) { return 100; }
void RunFast(const KernelArgs&, Stream&) { seen.order += 'f'; }
void RunSlowly(const KernelArgs&, Stream&) {
  seen.order += 's';
  absl::SleepFor(absl::Milliseconds(20));
}

constexpr Kernel kTable[] = {
    {"csr", Key(Op::kConv, Format::kCsr), 0, AcceptsAll, nullptr, nullptr, CountRun},
    {"dense", Key(Op::kConv, Format::kDense), 0, AcceptsAll, nullptr, HundredBytes, CountRun},
};

Problem SmallProblem() { return {{}, {1, 3, 4, 4}, {1, 5, 4, 4}}; }

TEST(MeasureKernelTest, GivesTheKernelWhatItsContractSays) {
  seen = {};
  FakeBackend backend(kTable, 0);
  const auto stream = *backend.NewStream(1);
  Problem problem = SmallProblem();
  problem.epilogue.residual = true;
  const auto time = MeasureKernel(backend, *stream, kTable[1], problem, nullptr, {});
  ASSERT_TRUE(time.ok());
  EXPECT_GE(time->time, absl::ZeroDuration());
  EXPECT_TRUE(time->suspect.empty());
  EXPECT_EQ(seen.inputs, 2u);
  EXPECT_TRUE(seen.inputs_random);
  EXPECT_EQ(seen.workspace_bytes, 100u);
  EXPECT_TRUE(seen.aligned);
}

TEST(MeasureKernelTest, GivesBothOperands) {
  for (Op op : {Op::kAdd, Op::kMultiply, Op::kScale}) {
    seen = {};
    FakeBackend backend(kTable, 0);
    const auto stream = *backend.NewStream(1);
    Problem problem = SmallProblem();
    problem.SetOp(op);
    ASSERT_TRUE(MeasureKernel(backend, *stream, kTable[1], problem, nullptr, {}).ok());
    EXPECT_EQ(seen.inputs, 2u) << OpName(op);
  }
}

TEST(MeasureKernelTest, GivesSequencesToOpsThatKnowOfThem) {
  FakeBackend backend(kTable, 0);
  const auto stream = *backend.NewStream(1);
  for (Op op : {Op::kAdd, Op::kLayerNorm, Op::kMeanTokens, Op::kConvertLayout}) {
    Problem problem = SmallProblem();
    problem.SetOp(op);
    ASSERT_TRUE(MeasureKernel(backend, *stream, kTable[0], problem, nullptr, {}).ok());
    EXPECT_EQ(seen.sequences, IsOfSequences(op)) << OpName(op);
  }
}

TEST(MeasureKernelTest, RunsAtLeastAndAtMostAsOftenAsTold) {
  FakeBackend backend(kTable, 0);
  const auto stream = *backend.NewStream(1);
  seen = {};
  ASSERT_TRUE(MeasureKernel(backend, *stream, kTable[0], SmallProblem(), nullptr,
                            {.budget = absl::ZeroDuration(), .min_runs = 4, .max_runs = 9})
                  .ok());
  EXPECT_EQ(seen.runs, 1 + 4);
  seen = {};
  ASSERT_TRUE(MeasureKernel(backend, *stream, kTable[0], SmallProblem(), nullptr,
                            {.budget = absl::Hours(1), .min_runs = 4, .max_runs = 9})
                  .ok());
  EXPECT_EQ(seen.runs, 1 + 9);
}

TEST(MeasureKernelTest, WholeNumbersAreDrawnInTheirType) {
  static std::set<uint8_t> drawn;
  const auto run = [](const KernelArgs& args, Stream&) {
    const int64_t elements = LayoutElements(args.problem->input, args.problem->from.layout);
    drawn = {args.Input<uint8_t>(0), args.Input<uint8_t>(0) + elements};
  };
  constexpr Storage kWhole = {Layout::kNchw, DType::kUint8};
  const Kernel kernel = {
      "u8", {Op::kConv, Format::kDense, DType::kInt8, kWhole, kWhole}, 0, AcceptsAll, nullptr, nullptr, run};
  FakeBackend backend({&kernel, 1}, 0);
  const auto stream = *backend.NewStream(1);
  ASSERT_TRUE(MeasureKernel(backend, *stream, kernel, SmallProblem(), nullptr, {}).ok());
  EXPECT_GT(drawn.size(), 20u) << "of 48 elements";
}

// Operands that all share have to hold the largest layout.
TEST(MeasureKernelsTest, EachGetsWhatItsContractSays) {
  static Seen plain, blocked;
  const auto run_plain = [](const KernelArgs& args, Stream& stream) {
    seen = plain;
    CountRun(args, stream);
    plain = seen;
  };
  const auto run_blocked = [](const KernelArgs& args, Stream& stream) {
    seen = blocked;
    CountRun(args, stream);
    blocked = seen;
    const float last = args.Input<float>(0)[LayoutElements(args.problem->input, Layout::kBlocked16) - 1];
    blocked.inputs_random = blocked.inputs_random && last != 0;
    std::fill_n(args.Output<float>(), LayoutElements(args.problem->output, Layout::kBlocked16), last);
  };
  KernelKey blocked_key = Key(Op::kConv, Format::kDense);
  blocked_key.input = blocked_key.output = {Layout::kBlocked16, DType::kFloat32};
  const Kernel table[] = {
      {"plain", Key(Op::kConv, Format::kDense), 0, AcceptsAll, nullptr, HundredBytes, run_plain},
      {"blocked", blocked_key, 0, AcceptsAll, nullptr, nullptr, run_blocked},
  };
  FakeBackend backend(table, 0);
  const auto stream = *backend.NewStream(1);
  const Contender contenders[] = {{&table[0], nullptr}, {&table[1], nullptr}};
  Problem problem = SmallProblem();
  problem.epilogue.residual = true;
  const auto times = MeasureKernels(backend, *stream, contenders, problem, {.min_runs = 2, .max_runs = 2});
  ASSERT_TRUE(times.ok());
  ASSERT_EQ(times->size(), 2u);
  for (const MeasuredTime& time : *times) EXPECT_LT(time.time, absl::InfiniteDuration());
  for (const Seen& each : {plain, blocked}) {
    EXPECT_EQ(each.runs, 1 + 2);
    EXPECT_EQ(each.inputs, 2u);
    EXPECT_TRUE(each.inputs_random);
    EXPECT_TRUE(each.aligned);
  }
  EXPECT_EQ(plain.workspace_bytes, 100u);
  EXPECT_EQ(blocked.workspace_bytes, 0u);
}

TEST(MeasureKernelsTest, TakesTurnsAndLeavesOutWhoIsFarBehind) {
  const Kernel table[] = {{"fast", Key(Op::kConv, Format::kDense), 0, AcceptsAll, nullptr, nullptr, RunFast},
                          {"slow", Key(Op::kConv, Format::kDense), 0, AcceptsAll, nullptr, nullptr, RunSlowly}};
  seen = {};
  FakeBackend backend(table, 0);
  const auto stream = *backend.NewStream(1);
  const Contender contenders[] = {{&table[0], nullptr}, {&table[1], nullptr}};
  const auto times = MeasureKernels(backend, *stream, contenders, SmallProblem(),
                                    {.budget = absl::Hours(1), .min_runs = 1, .max_runs = 10});
  ASSERT_TRUE(times.ok());
  EXPECT_LT((*times)[0].time, (*times)[1].time);
  EXPECT_EQ(seen.order,
            "fs"
            "ffss"
            "ffss"
            "ff"
            "ff"
            "ff");
}

// Whose kernels may fail, as on a GPU that has not what they ask for.
class FallibleStream final : public Stream {
 public:
  explicit FallibleStream(Stream& stream) : stream_(stream) {}
  void Fail(std::string_view why) { status_.Update(MakeError(StatusCode::kInternal, why)); }

  int threads() const override { return 1; }
  void Copy(void* to, const void* from, size_t bytes) override { stream_.Copy(to, from, bytes); }
  void Run(Work work) override { work(); }
  StatusOr<absl::Duration> Time(Work work, Operands recent) override { return stream_.Time(work, recent); }
  Status Synchronize() override { return std::exchange(status_, absl::OkStatus()); }

 private:
  Stream& stream_;
  Status status_;
};

void RunAndFail(const KernelArgs&, Stream& stream) {
  seen.order += 'x';
  static_cast<FallibleStream&>(stream).Fail("too little shared memory");
}

TEST(MeasureKernelsTest, WhoCannotRunIsOut) {
  const Kernel table[] = {{"unable", Key(Op::kConv, Format::kDense), 0, AcceptsAll, nullptr, nullptr, RunAndFail},
                          {"fast", Key(Op::kConv, Format::kDense), 0, AcceptsAll, nullptr, nullptr, RunFast}};
  seen = {};
  FakeBackend backend(table, 0);
  const auto inner = *backend.NewStream(1);
  FallibleStream stream(*inner);
  const Contender contenders[] = {{&table[0], nullptr}, {&table[1], nullptr}};
  const MeasureOptions options{.budget = absl::ZeroDuration(), .min_runs = 2, .max_runs = 2};
  const auto times = MeasureKernels(backend, stream, contenders, SmallProblem(), options);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ((*times)[0].time, absl::InfiniteDuration());
  EXPECT_LT((*times)[1].time, absl::InfiniteDuration());
  EXPECT_EQ(seen.order,
            "x"
            "fff");

  const auto none = MeasureKernels(backend, stream, {contenders, 1}, SmallProblem(), options);
  EXPECT_EQ(none.status().code(), StatusCode::kInternal);
  EXPECT_EQ(none.status().message(), "too little shared memory");
}

TEST(MeasureKernelTest, OutOfMemoryIsAnError) {
  FakeBackend backend(kTable, 0);
  const auto stream = *backend.NewStream(1);
  backend.out_of_memory = true;
  EXPECT_EQ(MeasureKernel(backend, *stream, kTable[0], SmallProblem(), nullptr, {}).status().code(),
            StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace swizzle
