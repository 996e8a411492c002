#include "model_loader/plan/choose/tuning_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "kernels/backend/kernel_table_version.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/runtime/processor.h"
#include "kernels/format/csr.h"
#include "model_loader/plan/planner.h"
#include "tests/support/fake_device.h"
#include "tests/support/random_network.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;
using testing::IsError;
using testing::MakeRandomNetwork;

// A backend that says it is another machine.
class OtherMachine final : public HostBackend {
 public:
  explicit OtherMachine(Backend& backend) : backend_(backend) {}
  std::string_view name() const override { return backend_.name(); }
  std::string device_name() const override { return "another processor"; }
  uint32_t features() const override { return backend_.features(); }
  std::string features_text() const override { return backend_.features_text(); }
  std::span<const Kernel> kernels() const override { return backend_.kernels(); }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override { return backend_.Allocate(bytes); }
  bool Computes(Precision precision) const override { return backend_.Computes(precision); }
  Throughput throughput(Precision precision) const override { return backend_.throughput(precision); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return backend_.Prepare(kernel, weight, problem);
  }
  Status health() const override { return absl::OkStatus(); }
  std::optional<DeviceMemory> memory() const override { return std::nullopt; }
  StatusOr<std::unique_ptr<HostStream>> NewHostStream(int threads) override {
    return std::get<HostBackend*>(backend_.kind())->NewHostStream(threads);
  }

 private:
  Backend& backend_;
};

class TuningCacheTest : public ::testing::Test {
 protected:
  TuningCache Open() const { return TuningCache(file_, *backend_); }

  void Write(const std::string& text) const { std::ofstream(file_) << text; }
  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "times";
  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  const Kernel& kernel_ = backend_->kernels().front();
  const Problem problem_{{}, {1, 8, 4, 4}, {1, 16, 4, 4}, 2};
};

TEST_F(TuningCacheTest, RemembersAcrossProcesses) {
  {
    TuningCache cache = Open();
    EXPECT_TRUE(cache.status().ok());
    EXPECT_TRUE(cache.empty());
    EXPECT_EQ(cache.Find(kernel_, problem_, 7), std::nullopt);
    cache.Add(kernel_, problem_, 7, 12.5);
    EXPECT_FALSE(cache.empty());
    EXPECT_EQ(cache.Find(kernel_, problem_, 7), 12.5);
    ASSERT_TRUE(cache.Save().ok());
  }
  EXPECT_FALSE(Open().empty());
  EXPECT_EQ(Open().Find(kernel_, problem_, 7), 12.5);
}

TEST_F(TuningCacheTest, KeepsApartWhateverATimeDependsOn) {
  TuningCache cache = Open();
  cache.Add(kernel_, problem_, 7, 12.5);
  const auto unknown = [&](auto change) {
    Problem problem = problem_;
    change(problem);
    return !cache.Find(kernel_, problem, 7).has_value();
  };
  EXPECT_TRUE(unknown([](Problem& p) { p.input.batch = 8; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.output.channels = 17; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.window().stride_w = 2; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.window().pad_left = 1; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.window().dilation_h = 2; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.window().count_include_pad = true; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.epilogue.low = 0; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.epilogue.residual = true; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.threads = 1; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.blocking = 1; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.SetOp(Op::kFunction); }));
  EXPECT_TRUE(unknown([](Problem& p) { p.epilogue.function = Function{FunctionKind::kGelu, 0, 0}; }));
  EXPECT_TRUE(unknown([](Problem& p) { p.op = Op::kDepthwiseConv; }));
  const auto tell_apart = [&](const Operator& a, const Operator& b) {
    Problem of_a = problem_, of_b = problem_;
    static_cast<Operator&>(of_a) = a;
    static_cast<Operator&>(of_b) = b;
    cache.Add(kernel_, of_a, 7, 1.0);
    return !cache.Find(kernel_, of_b, 7).has_value();
  };
  EXPECT_TRUE(
      tell_apart({Op::kFunction, Function{FunctionKind::kSigmoid}}, {Op::kFunction, Function{FunctionKind::kSilu}}));
  EXPECT_TRUE(tell_apart({Op::kAttention, Attention{.heads = 2}}, {Op::kAttention, Attention{.heads = 4}}));
  EXPECT_TRUE(tell_apart({Op::kAttention, Attention{}}, {Op::kAttention, Attention{.packed = true}}));
  EXPECT_TRUE(tell_apart({Op::kAttention, Attention{.heads = 6, .group_size = 2}},
                         {Op::kAttention, Attention{.heads = 6, .group_size = 3}}));
  EXPECT_TRUE(tell_apart({Op::kEmbedding, Lookup{}}, {Op::kEmbedding, Lookup{.by_position = true}}));
  EXPECT_FALSE(tell_apart({Op::kLayerNorm, Normalisation{1e-5f}}, {Op::kLayerNorm, Normalisation{1e-12f}}));
  EXPECT_TRUE(tell_apart({Op::kLayerNorm, Normalisation{1e-5f}}, {Op::kLayerNorm, Normalisation{1e-5f, false}}));
  // Of rows whose output is whole numbers; others are not asked for them.
  Problem requantised = problem_;
  requantised.epilogue.requantise = Quantised{DType::kUint8, 0.5f, 3};
  Kernel whole = kernel_;
  whole.key.output.dtype = DType::kUint8;
  cache.Add(whole, problem_, 7, 3.5);
  EXPECT_EQ(cache.Find(whole, requantised, 7), std::nullopt);
  EXPECT_EQ(cache.Find(kernel_, requantised, 7), cache.Find(kernel_, problem_, 7));
  EXPECT_EQ(cache.Find(kernel_, problem_, 8), std::nullopt);
  EXPECT_EQ(cache.Find(backend_->kernels().back(), problem_, 7), std::nullopt);
}

// Of whatever does not skip them, times are found whether the zeros of an input are known or not.
TEST_F(TuningCacheTest, ZerosOfInputsCountForKernelsThatSkipThem) {
  TuningCache cache("", *backend_);
  Kernel plain = backend_->kernels()[0];
  Kernel skipping = SkippingInputZeros(plain);
  skipping.name = "skips";
  Problem with_zeros, with_others;
  with_zeros.input_zeros = InputZeros{0, 0, 0.5, 0.9};
  with_others.input_zeros = InputZeros{0, 0, 0.5, 0.8};
  for (const Kernel& kernel : {plain, skipping}) cache.Add(kernel, with_zeros, 7, 3.0);
  EXPECT_EQ(cache.Find(plain, with_others, 7), 3.0);
  EXPECT_EQ(cache.Find(plain, Problem(), 7), 3.0);
  EXPECT_EQ(cache.Find(skipping, with_zeros, 7), 3.0);
  EXPECT_EQ(cache.Find(skipping, with_others, 7), std::nullopt);
}

TEST_F(TuningCacheTest, KeepsApartStepsAndTheirThreads) {
  using Steps = TuningCache::Steps;
  TuningCache cache = Open();
  cache.AddStep(5, 1, Steps::kSerial, 12.5);
  EXPECT_EQ(cache.FindStep(5, 1, Steps::kSerial), 12.5);
  EXPECT_EQ(cache.FindStep(6, 1, Steps::kSerial), std::nullopt);
  EXPECT_EQ(cache.FindStep(5, 2, Steps::kSerial), std::nullopt);
  EXPECT_EQ(cache.FindStep(5, 1, Steps::kParallel), std::nullopt);
  EXPECT_EQ(cache.FindStep(5, 1, Steps::kChosen), std::nullopt);
  ASSERT_TRUE(cache.Save().ok());
  EXPECT_EQ(Open().FindStep(5, 1, Steps::kSerial), 12.5);
}

// Clouds sell generations of processors by one name, and hide some of their instructions.
TEST_F(TuningCacheTest, KeepsAlgorithmsOfThisMachine) {
  AlgorithmChoices chosen;
  chosen.Add("a product", {5, 2.5});
  chosen.Add("another", {0, 4.0});
  const OtherMachine other(*backend_);
  {
    TuningCache cache = Open(), others = TuningCache(file_, other);
    cache.Add(kernel_, problem_, 7, 12.5);
    cache.TakeChoices(chosen);
    ASSERT_TRUE(cache.Save().ok());
    AlgorithmChoices of_other;
    of_other.Add("a product", {1, 1.0});
    others.TakeChoices(of_other);
    ASSERT_TRUE(others.Save().ok());
  }
  AlgorithmChoices known;
  known.Add("another", {2, 3.0});
  Open().GiveChoices(known);
  EXPECT_EQ(known.Find("a product"), (AlgorithmChoice{5, 2.5}));
  EXPECT_EQ(known.Find("another"), (AlgorithmChoice{2, 3.0})) << "what this process has taken so far stays";
  EXPECT_EQ(known.All().size(), 2u);
  EXPECT_EQ(Open().Find(kernel_, problem_, 7), 12.5);
}

TEST_F(TuningCacheTest, TheFirstAlgorithmThatIsKeptStays) {
  for (const int algorithm : {5, 6}) {
    TuningCache cache = Open();
    AlgorithmChoices chosen;
    chosen.Add("a product", {algorithm, 2.5});
    cache.TakeChoices(chosen);
    ASSERT_TRUE(cache.Save().ok());
  }
  AlgorithmChoices known;
  Open().GiveChoices(known);
  EXPECT_EQ(known.Find("a product"), (AlgorithmChoice{5, 2.5}));
}

TEST_F(TuningCacheTest, TheKeyNamesTheProcessorAndAllThatItsLibrariesUse) {
  TuningCache cache = Open();
  cache.Add(kernel_, problem_, 7, 12.5);
  ASSERT_TRUE(cache.Save().ok());
  const cpu::Processor processor = cpu::ThisProcessor();
  EXPECT_THAT(Text(), HasSubstr(processor.name));
  EXPECT_THAT(Text(), HasSubstr(processor.Identity()));
  EXPECT_THAT(Text(), HasSubstr(processor.instruction_sets + "\""));
}

TEST_F(TuningCacheTest, SuspectTimesAreKeptAndNotFound) {
  {
    TuningCache cache = Open();
    cache.Add(kernel_, problem_, 7, 4000.0, "waited");
    EXPECT_EQ(cache.Find(kernel_, problem_, 7), std::nullopt);
    EXPECT_TRUE(cache.IsSuspect(kernel_, problem_, 7));
    ASSERT_TRUE(cache.Save().ok());
  }
  EXPECT_THAT(Text(), HasSubstr("\"suspect\":\"waited\""));
  TuningCache cache = Open();
  EXPECT_TRUE(cache.IsSuspect(kernel_, problem_, 7));
  cache.Add(kernel_, problem_, 7, 12.5);
  EXPECT_FALSE(cache.IsSuspect(kernel_, problem_, 7));
  ASSERT_TRUE(cache.Save().ok());
  EXPECT_EQ(Open().Find(kernel_, problem_, 7), 12.5);
}

TEST_F(TuningCacheTest, SuspectTimesReplaceNoOthers) {
  TuningCache cache = Open(), beside = Open();
  cache.Add(kernel_, problem_, 7, 12.5);
  ASSERT_TRUE(cache.Save().ok());
  cache.Add(kernel_, problem_, 7, 4000.0, "waited");
  EXPECT_EQ(cache.Find(kernel_, problem_, 7), 12.5);
  beside.Add(kernel_, problem_, 7, 4000.0, "waited");
  ASSERT_TRUE(beside.Save().ok());
  EXPECT_EQ(Open().Find(kernel_, problem_, 7), 12.5);
}

TEST_F(TuningCacheTest, RecordsOfOtherMachinesAreKeptAndNotUsed) {
  OtherMachine other(*backend_);
  TuningCache of_other(file_, other);
  of_other.Add(kernel_, problem_, 7, 1.0);
  ASSERT_TRUE(of_other.Save().ok());
  TuningCache cache = Open();
  EXPECT_EQ(cache.Find(kernel_, problem_, 7), std::nullopt);
  cache.Add(kernel_, problem_, 7, 2.0);
  ASSERT_TRUE(cache.Save().ok());
  EXPECT_EQ(TuningCache(file_, other).Find(kernel_, problem_, 7), 1.0);
  EXPECT_EQ(Open().Find(kernel_, problem_, 7), 2.0);
}

TEST_F(TuningCacheTest, TimesOfOlderKernelsDoNotCount) {
  TuningCache cache = Open();
  cache.Add(kernel_, problem_, 7, 2.0);
  ASSERT_TRUE(cache.Save().ok());
  std::string text = Text();
  const std::string version = Concat("\"kernel_table\":", kKernelTableVersion);
  ASSERT_THAT(text, HasSubstr(version));
  Write(text.replace(text.find(version), version.size(), "\"kernel_table\":0"));
  EXPECT_EQ(Open().Find(kernel_, problem_, 7), std::nullopt);
}

TEST_F(TuningCacheTest, TimesOfDevicesBehindNothingDoNotCount) {
  const testing::FakeDevice device(1 << 20, 0);
  TuningCache cache(file_, device);
  cache.Add(kernel_, problem_, 7, 2.0);
  ASSERT_TRUE(cache.Save().ok());
  EXPECT_EQ(TuningCache(file_, device).Find(kernel_, problem_, 7), 2.0);
  std::string text = Text();
  const std::string behind = ", timed behind a kernel";
  ASSERT_THAT(text, HasSubstr(behind));
  Write(text.erase(text.find(behind), behind.size()));
  EXPECT_EQ(TuningCache(file_, device).Find(kernel_, problem_, 7), std::nullopt);
}

TEST_F(TuningCacheTest, SavesBesideWhatOthersSavedMeanwhile) {
  TuningCache first = Open(), second = Open();
  first.Add(kernel_, problem_, 1, 1.0);
  second.Add(kernel_, problem_, 2, 2.0);
  ASSERT_TRUE(first.Save().ok());
  ASSERT_TRUE(second.Save().ok());
  EXPECT_EQ(Open().Find(kernel_, problem_, 1), 1.0);
  EXPECT_EQ(Open().Find(kernel_, problem_, 2), 2.0);
}

// As several equal GPUs of one server do.
TEST_F(TuningCacheTest, WithoutAFilePlansOfEqualDevicesShareTimes) {
  TuningCache cache({}, *backend_);
  const PlanOptions options{
      .threads = 1, .tuning_budget = absl::Seconds(2), .make_watch = nullptr, .tuning_cache = &cache};
  const auto equal = NewCpuBackend();
  const auto first = MakePlan(MakeRandomNetwork({}), *backend_, options);
  const auto second = MakePlan(MakeRandomNetwork({}), *equal, options);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_GT((*first)->report().timed_now, 0);
  EXPECT_EQ((*second)->report().timed_now, 0);
  EXPECT_TRUE(cache.Save().ok());
}

TEST_F(TuningCacheTest, NothingNewIsNotWritten) {
  EXPECT_TRUE(Open().Save().ok());
  EXPECT_FALSE(std::filesystem::exists(file_));
}

struct Useless {
  const char* name;
  std::string text;
  const char* message;
};
void PrintTo(const Useless& useless, std::ostream* out) { *out << useless.name; }

class UselessFileTest : public TuningCacheTest, public ::testing::WithParamInterface<Useless> {};

TEST_P(UselessFileTest, IsNeitherUsedNorOverwritten) {
  Write(GetParam().text);
  TuningCache cache = Open();
  EXPECT_THAT(cache.status(), IsError(StatusCode::kInvalidArgument, GetParam().message));
  EXPECT_THAT(std::string(cache.status().message()), HasSubstr(file_.string()));
  cache.Add(kernel_, problem_, 7, 2.0);
  EXPECT_EQ(cache.Find(kernel_, problem_, 7), 2.0);
  EXPECT_TRUE(cache.Save().ok());
  EXPECT_EQ(Text(), GetParam().text);
}

const std::string kHead = "{\"swizzle_tuning_cache\":1}\n";
const Useless kUseless[] = {
    {"Foreign", "#!/bin/sh\n", "no tuning cache"},
    {"Empty", "", "no tuning cache"},
    {"NewerVersion", "{\"swizzle_tuning_cache\":2}\n", "no tuning cache of this version"},
    {"Cut", kHead + "{\"device\":\"a\",\"microsec", "line 2 is no record"},
    {"NoObject", kHead + "[1]\n", "line 2 is no record"},
    {"NoTime", kHead + "{\"device\":\"a\"}\n", "line 2 is no record"},
    {"TimeOfText", kHead + "{\"microseconds\":\"1\"}\n", "line 2 is no record"},
    {"NegativeTime", kHead + "{\"microseconds\":1}\n{\"microseconds\":-1}\n", "line 3 is no record"},
    {"EndlessTime", kHead + "{\"microseconds\":1e999}\n", "line 2 is no record"},
};
INSTANTIATE_TEST_SUITE_P(Files, UselessFileTest, ::testing::ValuesIn(kUseless),
                         [](const auto& useless) { return std::string(useless.param.name); });

TEST_F(TuningCacheTest, ADirectoryIsAnError) { EXPECT_FALSE(TuningCache(folder_.path(), *backend_).status().ok()); }

TEST_F(TuningCacheTest, AFullFileTakesNoMore) {
  std::string text = kHead;
  for (size_t i = 0; i < TuningCache::kMaxRecords; ++i) text += Concat("{\"device\":", i, ",\"microseconds\":1}\n");
  Write(text);
  TuningCache cache = Open();
  ASSERT_TRUE(cache.status().ok()) << cache.status();
  cache.Add(kernel_, problem_, 7, 2.0);
  EXPECT_THAT(cache.Save(), IsError(StatusCode::kResourceExhausted, "1 new ones were dropped"));
  EXPECT_EQ(Open().Find(kernel_, problem_, 7), std::nullopt);
}

TEST(PlanHashTest, DependsOnNumbersAndTheirOrder) {
  const uint64_t one_two = ExtendPlanHash(ExtendPlanHash(7, 1), 2);
  EXPECT_EQ(one_two, ExtendPlanHash(ExtendPlanHash(7, 1), 2));
  EXPECT_NE(one_two, ExtendPlanHash(ExtendPlanHash(7, 2), 1));
  EXPECT_NE(one_two, ExtendPlanHash(ExtendPlanHash(8, 1), 2));
}

TEST(PatternHashTest, DependsOnThePlacesOfNonzerosOnly) {
  const auto sparse = [](std::vector<float> values) {
    return Weight{CsrMatrix::FromDense({.rows = 2, .cols = 3, .values = std::move(values)}), {}};
  };
  const uint64_t hash = PatternHash(sparse({1, 0, 0, 0, 2, 0}));
  EXPECT_EQ(hash, PatternHash(sparse({3, 0, 0, 0, 4, 0})));
  EXPECT_NE(hash, PatternHash(sparse({0, 1, 0, 0, 2, 0})));
  EXPECT_NE(hash, PatternHash(sparse({1, 2, 0, 0, 0, 0})));
  const Weight dense{DenseMatrix{.rows = 2, .cols = 3, .values = {1, 0, 0, 0, 2, 0}}, {}};
  EXPECT_NE(hash, PatternHash(dense));
}

// A plan made from the cache alone chooses what the first one chose.
TEST_F(TuningCacheTest, ASecondPlanMeasuresNothing) {
  const auto plan = [&](absl::Duration budget) {
    TuningCache cache = Open();
    const auto made = MakePlan(MakeRandomNetwork({}), *backend_,
                               {.threads = 1, .tuning_budget = budget, .make_watch = nullptr, .tuning_cache = &cache});
    EXPECT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(cache.Save().ok());
    return (*made)->report();
  };
  const PlanReport first = plan(absl::Seconds(2));
  EXPECT_GT(first.timed_now, 0);
  EXPECT_EQ(first.timed_before, 0);
  for (absl::Duration budget : {absl::Seconds(10), absl::ZeroDuration()}) {
    const PlanReport again = plan(budget);
    EXPECT_EQ(again.timed_now, 0);
    EXPECT_GE(again.timed_before, first.timed_now);
    ASSERT_EQ(again.layers.size(), first.layers.size());
    for (size_t i = 0; i < first.layers.size(); ++i) {
      EXPECT_EQ(again.layers[i].kernels, first.layers[i].kernels);
      EXPECT_EQ(again.layers[i].blocking, first.layers[i].blocking);
      for (size_t k = 0; k < first.layers[i].candidates.size(); ++k) {
        EXPECT_EQ(again.layers[i].candidates[k].microseconds, first.layers[i].candidates[k].microseconds);
        EXPECT_EQ(again.layers[i].candidates[k].measured, first.layers[i].candidates[k].measured);
      }
    }
  }
}

TEST_F(TuningCacheTest, WithoutABudgetALayerThatIsNotKnownWholeIsEstimated) {
  TuningCache cache = Open();
  const auto plan = MakePlan(MakeRandomNetwork({}), *backend_,
                             {.threads = 1, .tuning_budget = absl::ZeroDuration(), .tuning_cache = &cache});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ((*plan)->report().timed_now, 0);
  for (const LayerReport& layer : (*plan)->report().layers) {
    for (const auto& candidate : layer.candidates) EXPECT_FALSE(candidate.measured);
  }
}

}  // namespace
}  // namespace swizzle
