// Kernel selection: which rows are candidates, and how one is measured.
#include "kernels/backend/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle {
namespace {

// A backend without memory of its own whose table and features a test chooses.
class FakeBackend final : public Backend {
 public:
  FakeBackend(std::span<const Kernel> kernels, uint32_t features) : kernels_(kernels), features_(features) {}
  std::string_view name() const override { return "fake"; }
  std::string device_name() const override { return "fake"; }
  uint32_t features() const override { return features_; }
  std::string features_text() const override { return ""; }
  std::span<const Kernel> kernels() const override { return kernels_; }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    if (out_of_memory) return MakeError(StatusCode::kResourceExhausted, "no memory");
    return cpu_->Allocate(bytes);
  }
  bool shares_host_memory() const override { return true; }
  StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) override { return Allocate(bytes); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return cpu_->Prepare(kernel, weight, problem);
  }
  Status health() const override { return absl::OkStatus(); }
  std::optional<DeviceMemory> memory() const override { return std::nullopt; }
  StatusOr<std::unique_ptr<Stream>> NewStream(int threads) override { return cpu_->NewStream(threads); }

  bool out_of_memory = false;

 private:
  std::span<const Kernel> kernels_;
  uint32_t features_;
  std::unique_ptr<Backend> cpu_ = NewCpuBackend();
};

bool AcceptsAll(const Problem&) { return true; }
bool AcceptsOneImage(const Problem& problem) { return problem.input.batch == 1; }

constexpr KernelKey Key(Op op, Format format) {
  return {op, format, DType::kFloat32, DType::kFloat32, DType::kFloat32, Layout::kNchw, Layout::kPanels};
}

// What the last run of the counting kernel saw.
struct Seen {
  int runs = 0;
  size_t inputs = 0;
  bool inputs_random = true;
  size_t workspace_bytes = 0;
  bool aligned = true;
  std::string order;  // a letter for each run
};
Seen seen;

bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % kBufferAlignment == 0; }

void CountRun(const KernelArgs& args, Stream&) {
  ++seen.runs;
  seen.inputs = args.inputs.size();
  seen.workspace_bytes = args.workspace.size();
  seen.aligned = seen.aligned && IsAligned(args.output) && IsAligned(args.workspace.data());
  for (const float* input : args.inputs) {
    seen.aligned = seen.aligned && IsAligned(input);
    seen.inputs_random = seen.inputs_random && input[0] != input[1] && input[0] != 0;
  }
  const int64_t outputs = LayoutElements(args.problem->output, Layout::kPanels);
  std::fill_n(args.output, outputs, 1.0f);
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
    {"dense_wide", Key(Op::kConv, Format::kDense), 2, AcceptsAll, nullptr, nullptr, CountRun},
    {"dense_one", Key(Op::kConv, Format::kDense), 1, AcceptsOneImage, nullptr, nullptr, CountRun},
    {"add", Key(Op::kAdd, Format::kNone), 0, AcceptsAll, nullptr, nullptr, CountRun},
};

std::vector<std::string> Names(const std::vector<const Kernel*>& kernels) {
  std::vector<std::string> names;
  for (const Kernel* kernel : kernels) names.emplace_back(kernel->name);
  return names;
}

Problem SmallProblem() { return {Op::kConv, {1, 3, 4, 4}, {1, 5, 4, 4}, {}, {}, 1}; }

TEST(CandidatesTest, DenseIsACandidateForASparseWeight) {
  const FakeBackend backend(kTable, 3);
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), Format::kCsr)),
            (std::vector<std::string>{"csr", "dense", "dense_wide", "dense_one"}));
}

TEST(CandidatesTest, CsrIsNoneForADenseWeight) {
  const FakeBackend backend(kTable, 3);
  EXPECT_EQ(Names(Candidates(backend, SmallProblem(), Format::kDense)),
            (std::vector<std::string>{"dense", "dense_wide", "dense_one"}));
}

TEST(CandidatesTest, FeaturesAndAcceptsDecide) {
  const FakeBackend backend(kTable, 1);
  Problem problem = SmallProblem();
  EXPECT_EQ(Names(Candidates(backend, problem, Format::kDense)), (std::vector<std::string>{"dense", "dense_one"}));
  problem.input.batch = problem.output.batch = 2;
  EXPECT_EQ(Names(Candidates(backend, problem, Format::kDense)), (std::vector<std::string>{"dense"}));
}

TEST(WidestCandidatesTest, OfInstructionSetsOneAndOfLibrariesAll) {
  static constexpr Kernel kVariants[] = {
      {"conv_dense_f32_narrow", Key(Op::kConv, Format::kDense), 1, AcceptsAll, nullptr, nullptr, CountRun},
      {"conv_dense_f32_wide", Key(Op::kConv, Format::kDense), 2, AcceptsAll, nullptr, nullptr, CountRun},
      {"conv_dense_f32_widest", Key(Op::kConv, Format::kDense), 4, AcceptsAll, nullptr, nullptr, CountRun},
      {"conv_nhwc_dense_f32_one", Key(Op::kConv, Format::kDense), 1, AcceptsAll, nullptr, nullptr, CountRun},
      {"conv_nhwc_dense_f32_other", Key(Op::kConv, Format::kDense), 1, AcceptsAll, nullptr, nullptr, CountRun},
  };
  const FakeBackend backend(kVariants, 3);
  EXPECT_EQ(Names(WidestCandidates(backend, SmallProblem(), Format::kDense)),
            (std::vector<std::string>{"conv_dense_f32_wide", "conv_nhwc_dense_f32_one", "conv_nhwc_dense_f32_other"}));
}

TEST(CandidatesTest, OpsWithoutWeights) {
  const FakeBackend backend(kTable, 0);
  Problem problem = SmallProblem();
  problem.op = Op::kAdd;
  EXPECT_EQ(Names(Candidates(backend, problem, Format::kNone)), (std::vector<std::string>{"add"}));
}

TEST(MeasureKernelTest, GivesTheKernelWhatItsContractSays) {
  seen = {};
  FakeBackend backend(kTable, 0);
  const auto stream = *backend.NewStream(1);
  Problem problem = SmallProblem();
  problem.epilogue.residual = true;
  const auto time = MeasureKernel(backend, *stream, kTable[1], problem, nullptr, {});
  ASSERT_TRUE(time.ok());
  EXPECT_GE(*time, absl::ZeroDuration());
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
    problem.op = op;
    ASSERT_TRUE(MeasureKernel(backend, *stream, kTable[1], problem, nullptr, {}).ok());
    EXPECT_EQ(seen.inputs, 2u) << OpName(op);
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
    const float last = args.inputs[0][LayoutElements(args.problem->input, Layout::kBlocked16) - 1];
    blocked.inputs_random = blocked.inputs_random && last != 0;
    std::fill_n(args.output, LayoutElements(args.problem->output, Layout::kBlocked16), last);
  };
  KernelKey blocked_key = Key(Op::kConv, Format::kDense);
  blocked_key.input = blocked_key.output = Layout::kBlocked16;
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
  for (absl::Duration time : *times) EXPECT_LT(time, absl::InfiniteDuration());
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
  EXPECT_LT((*times)[0], (*times)[1]);
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
  StatusOr<std::unique_ptr<Recording>> Record(Work) override { return nullptr; }
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
  EXPECT_EQ((*times)[0], absl::InfiniteDuration());
  EXPECT_LT((*times)[1], absl::InfiniteDuration());
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

TEST(KernelTableTest, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Kernel& kernel : NewCpuBackend()->kernels()) EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
}

TEST(KernelTableTest, EveryProcessorHasSparseAndDenseConvolutions) {
  const auto backend = NewCpuBackend();
  int csr = 0;
  int dense = 0;
  for (const Kernel& kernel : backend->kernels()) {
    if (kernel.required_features != cpu::kAnyX86 || kernel.key.op != Op::kConv) continue;
    csr += kernel.key.weights == Format::kCsr;
    dense += kernel.key.weights == Format::kDense;
  }
  EXPECT_GT(csr, 0);
  EXPECT_GT(dense, 0);
}

TEST(KernelTableTest, WeightsOfEitherFormatCount) {
  const DenseMatrix dense{.rows = 2, .cols = 3, .values = {0, 1, 0, 2, 0, 3}};
  const Weight as_dense{.matrix = dense, .bias = {}};
  const Weight as_csr{.matrix = CsrMatrix::FromDense(dense), .bias = {}};
  for (const Weight* weight : {&as_dense, &as_csr}) {
    EXPECT_EQ(weight->rows(), 2);
    EXPECT_EQ(weight->cols(), 3);
    EXPECT_EQ(weight->nonzeros(), 3);
    EXPECT_EQ(weight->ToDense().values, dense.values);
  }
  EXPECT_EQ(as_dense.format(), Format::kDense);
  EXPECT_EQ(as_csr.format(), Format::kCsr);
}

}  // namespace
}  // namespace swizzle
