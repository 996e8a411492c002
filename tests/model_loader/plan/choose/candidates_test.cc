#include "model_loader/plan/choose/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/kernels/fake_backend.h"
#include "tests/support/network_builder.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

bool AcceptsAll(const Problem&) { return true; }

char last_run = ' ';  // of the kernels below
void RunA(const KernelArgs&, Stream&) { last_run = 'a'; }
void RunB(const KernelArgs&, Stream&) { last_run = 'b'; }

// What a row of tokens was run with last.
Problem seen;
std::vector<int32_t> seen_begins;
void RunTokens(const KernelArgs& args, Stream&) {
  last_run = 'a';
  seen = *args.problem;
  seen_begins.assign(args.sequences->begins.begin(), args.sequences->begins.end());
}

constexpr Storage kFrom = {Layout::kNchw, DType::kFloat32};
constexpr KernelKey kKey = {Op::kActivation, Format::kNone, DType::kFloat32, kFrom, kFrom};
const Kernel kTable[] = {{"a", kKey, 0, AcceptsAll, nullptr, nullptr, RunA},
                         {"b", kKey, 0, AcceptsAll, nullptr, nullptr, RunB}};
constexpr KernelKey kTokenKey = {Op::kSelectToken, Format::kNone, DType::kFloat32, kFrom, kFrom};
const Kernel kTokenTable[] = {{"a", kTokenKey, 0, AcceptsAll, nullptr, nullptr, RunTokens}};

// Kernels take scripted times, and requests arrive whenever a disturbed one runs.
class Machine final : public Stream, public MeasureGate {
 public:
  std::map<char, absl::Duration> times = {{'a', absl::Microseconds(10)}, {'b', absl::Microseconds(15)}};
  std::set<char> disturbed;
  std::map<char, int> runs;

  int threads() const override { return 1; }
  void Copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void Run(Work work) override { work(); }
  StatusOr<absl::Duration> Time(Work work, Operands) override {
    work();
    now_ += times.at(last_run);
    ++runs[last_run];
    requests_ += disturbed.contains(last_run) ? 1 : 0;
    return times.at(last_run);
  }
  Status Synchronize() override { return absl::OkStatus(); }

  bool MustWait() override { return false; }
  Status Await() override { return absl::OkStatus(); }
  int64_t disturbances() const override { return requests_; }
  absl::Duration Spent() override { return now_; }

 private:
  absl::Duration now_;
  int64_t requests_ = 0;
};

// What share of its input is zero.
double zeros_seen = 0.0;
void RunSkipping(const KernelArgs& args, Stream&) {
  last_run = 'b';
  const int64_t count = LayoutElements(args.problem->input, Layout::kRows);
  const float* const input = args.Input<float>(0);
  zeros_seen = static_cast<double>(std::count(input, input + count, 0.0f)) / static_cast<double>(count);
}
constexpr Storage kInRows = {Layout::kRows, DType::kFloat32};
constexpr KernelKey kConvKey = {Op::kConv, Format::kDense, DType::kFloat32, kInRows, kInRows};
const Kernel kSkippingTable[] = {{"a", kConvKey, 0, AcceptsAll, nullptr, nullptr, RunA},
                                 SkippingInputZeros({"b", kConvKey, 0, AcceptsAll, nullptr, nullptr, RunSkipping})};

class CandidatesTest : public ::testing::Test {
 protected:
  // Of the one layer.
  std::vector<Candidate> Measure(int64_t side = 4, std::vector<BatchSize> sizes = {1}) {
    testing::NetworkBuilder builder(1, 0);
    const int input = builder.Value("x", 8, side, side);
    builder.Pointwise(Op::kActivation, {input}, testing::kRelu);
    const Network network = builder.Finish();
    FakeBackend backend(kTable, 0);
    const PlanOptions options{.tuning_budget = absl::Seconds(1), .gate = &machine_, .make_watch = nullptr};
    Measurer measurer(backend, {&machine_, nullptr, machine_.threads()}, std::move(sizes), options);
    auto layers = measurer.MeasureLayers(network);
    EXPECT_TRUE(layers.ok()) << layers.status();
    untimed_ = measurer.untimed_layers();
    return layers->front();
  }

  Machine machine_;
  int untimed_ = 0;
};

TEST_F(CandidatesTest, HaveTheirTimesWhereNothingDisturbs) {
  const std::vector<Candidate> candidates = Measure();
  EXPECT_DOUBLE_EQ(candidates[0].microseconds[0], 10);
  EXPECT_DOUBLE_EQ(candidates[1].microseconds[0], 15);
  EXPECT_TRUE(candidates[0].measured);
  EXPECT_EQ(untimed_, 0);
}

// What was disturbed took so long at most: whatever wins by such times is known to be no slower than what can be
// trusted, while all estimates may be alike.
TEST_F(CandidatesTest, DisturbedTimesStandBesideTrustedOnes) {
  machine_.disturbed = {'b'};
  const std::vector<Candidate> candidates = Measure();
  EXPECT_DOUBLE_EQ(candidates[0].microseconds[0], 10);
  EXPECT_DOUBLE_EQ(candidates[1].microseconds[0], 15);
  EXPECT_FALSE(candidates[0].suspect);
  EXPECT_TRUE(candidates[1].suspect);
  EXPECT_FALSE(candidates[0].measured) << "the layer is measured again";
  EXPECT_EQ(untimed_, 1);
}

TEST_F(CandidatesTest, AreEstimatedWhereNoTimeCanBeTrusted) {
  machine_.disturbed = {'a', 'b'};
  const std::vector<Candidate> candidates = Measure();
  EXPECT_DOUBLE_EQ(candidates[0].microseconds[0], candidates[1].microseconds[0]);
  EXPECT_EQ(untimed_, 1);
}

TEST_F(CandidatesTest, LargeRowsAreMeasuredAlone) {
  const std::vector<Candidate> small = Measure(4, {1, 8});
  EXPECT_THAT(small[0].microseconds, ElementsAre(10, 10));
  const absl::Duration spent = machine_.Spent();
  const std::vector<Candidate> large = Measure(256, {1, 8});
  EXPECT_THAT(large[0].microseconds, ElementsAre(10, 80));
  EXPECT_THAT(large[1].microseconds, ElementsAre(15, 120));
  EXPECT_TRUE(large[0].measured);
  EXPECT_EQ(untimed_, 0);
  EXPECT_LT(machine_.Spent() - spent, spent) << "eight rows were run";
}

// One that is near at one of a size's neighbours may win there; one that is far from the fastest at both does not.
TEST_F(CandidatesTest, BetweenSizesOnlyThoseThatMayWinAreMeasured) {
  const std::vector<BatchSize> sizes = {1, 2, 4, 8, 16, 32, 64};
  const std::vector<Candidate> near = Measure(4, sizes);
  EXPECT_EQ(near[1].microseconds.size(), 7u);
  EXPECT_EQ(machine_.runs['b'], machine_.runs['a']) << "15 and 10 us";
  machine_.runs.clear();
  machine_.times['b'] = absl::Microseconds(19);
  const std::vector<Candidate> far = Measure(4, sizes);
  EXPECT_THAT(far[1].microseconds, ::testing::Each(::testing::DoubleNear(19, 1e-9)));
  EXPECT_TRUE(far[1].measured);
  EXPECT_EQ(untimed_, 0);
  EXPECT_LT(machine_.runs['b'] * 2, machine_.runs['a']) << "at 3 sizes of 7";
}

TEST_F(CandidatesTest, AreTimedOnInputsWithTheZerosOfCalibrationData) {
  testing::NetworkBuilder builder(1, 0);
  const int input = builder.Value("x", 64, 16, 16);
  builder.Conv(input, 8, testing::SquareWindow(1, 1, 0), 0.0, testing::kRelu);
  Network network = builder.Finish();
  network.values[input].zeros = InputZeros{0.25, 0.5, 0.75, 0.875};
  FakeBackend backend(kSkippingTable, 0);
  const PlanOptions options{.tuning_budget = absl::Seconds(1), .gate = &machine_, .make_watch = nullptr};
  Measurer measurer(backend, {&machine_, nullptr, machine_.threads()}, {BatchSize(4)}, options);
  const auto layers = measurer.MeasureLayers(network);
  ASSERT_TRUE(layers.ok()) << layers.status();
  ASSERT_EQ(layers->front().size(), 2u);
  EXPECT_DOUBLE_EQ(layers->front()[1].microseconds[0], 15);
  EXPECT_NEAR(zeros_seen, 0.875, 0.05);
}

// Timed with a row for each token, a mean of 4,096 tokens took 65 us on a GPU that makes 32 of them in a tenth.
TEST_F(CandidatesTest, RowsAreTimedByTheirOwnNumberNotByThatOfTokens) {
  testing::NetworkBuilder builder(1, 0);
  const int input = builder.Value("x", 8);
  builder.SelectFirstToken(input);
  Network network = builder.Finish();
  network.values[input].per_token = true;
  network.sequences.emplace();
  FakeBackend backend(kTokenTable, 0);
  const PlanOptions options{.tuning_budget = absl::Seconds(1), .gate = &machine_, .make_watch = nullptr};
  Measurer measurer(backend, {&machine_, nullptr, machine_.threads()}, {BatchSize(3, 300)}, options);
  ASSERT_TRUE(measurer.MeasureLayers(network).ok());
  EXPECT_EQ(seen.input.batch, 300);
  EXPECT_EQ(seen.output.batch, 3);
  EXPECT_EQ(seen_begins, (std::vector<int32_t>{0, 100, 200, 300}));
}

}  // namespace
}  // namespace swizzle
