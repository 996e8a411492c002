#include "server/repository/model_repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <string>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/packed/packed_writer.h"
#include "proto/model_config.pb.h"
#include "server/rpc/model_description.h"
#include "tests/server/repository_directory.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/process_limits.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Measures nothing: these models are not to be fast.
PlanOptions QuickPlan() {
  PlanOptions options;
  options.tuning_budget = absl::ZeroDuration();
  return options;
}

class ModelRepositoryTest : public ::testing::Test {
 protected:
  // Loads what `directory_` holds by now.
  ModelRepository& Load() {
    auto repository = NewModelRepository({.directories = {directory_.path()},
                                          .plan = QuickPlan(),
                                          .memory = memory_,
                                          .resident_bytes = [] { return int64_t{0}; }},
                                         devices_, *metrics_);
    SWIZZLE_CHECK(repository.ok());
    repository_ = *std::move(repository);
    repository_->Load([] {});
    return *repository_;
  }

  void Write(const std::string& file, const std::vector<std::byte>& bytes) {
    directory_.Write(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void WriteNetwork(const std::string& model, const Network& network) {
    Write(model + "/1/model.swz", *EncodePacked(network));
  }

  std::string LoadError(const std::string& name) {
    const Status status = Load().Find(name, "").status();
    EXPECT_EQ(status.code(), StatusCode::kInternal) << status;
    return std::string(status.message());
  }

  RepositoryDirectory directory_;
  const Devices devices_{NewCpuBackend()};
  MemoryRoom memory_;
  std::unique_ptr<Metrics> metrics_ = *NewMetrics("127.0.0.1:0");
  std::unique_ptr<ModelRepository> repository_;
};

TEST_F(ModelRepositoryTest, AMissingDirectoryIsNotFound) {
  const auto repository = NewModelRepository({.directories = {directory_.path() / "nowhere"}}, devices_, *metrics_);
  EXPECT_EQ(repository.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(repository.status().message()), HasSubstr("nowhere"));
}

TEST_F(ModelRepositoryTest, AModelServesWhileOthersAreStillLoaded) {
  directory_.Write("a/config.pbtxt", IdentityConfig());
  directory_.Write("b/config.pbtxt", IdentityConfig());
  repository_ = *NewModelRepository({.directories = {directory_.path()}, .plan = QuickPlan()}, devices_, *metrics_);
  EXPECT_EQ(repository_->Find("a", "").status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(repository_->readiness().reasons, ElementsAre("model 'a' is loading", "model 'b' is loading"));
  int changes = 0;
  repository_->Load([&] {
    const bool first = changes++ == 0;
    EXPECT_TRUE(repository_->Find("a", "").ok());
    EXPECT_EQ(repository_->Find("b", "").ok(), !first);
    EXPECT_EQ(repository_->readiness().ready, !first);
  });
  EXPECT_EQ(changes, 2);
}

TEST_F(ModelRepositoryTest, LoadsNoMoreThanIsWanted) {
  directory_.Write("a/config.pbtxt", IdentityConfig());
  directory_.Write("b/config.pbtxt", IdentityConfig());
  bool stop = false;
  repository_ = *NewModelRepository(
      {.directories = {directory_.path()}, .stop = [&] { return stop; }, .plan = QuickPlan()}, devices_, *metrics_);
  repository_->Load([&] { stop = true; });
  EXPECT_TRUE(repository_->Find("a", "").ok());
  EXPECT_EQ(repository_->Find("b", "").status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(repository_->readiness().reasons, ElementsAre("model 'b' is loading")) << "it has not failed";
}

// With a cold start nothing is measured before the model serves; then its plan is tuned.
TEST_F(ModelRepositoryTest, ServesBeforeItMeasures) {
  WriteNetwork("m", testing::MakeRandomNetwork({}));
  repository_ = *NewModelRepository({.directories = {directory_.path()}}, devices_, *metrics_);
  repository_->Load([&] {
    const auto serving = repository_->Find("m", "");
    ASSERT_TRUE(serving.ok()) << serving.status();
    EXPECT_EQ((*serving)->model->facts()->timed_now, 0);
  });
  EXPECT_THAT(metrics_->Text(), Not(HasSubstr("state=\"off\",version=\"1\"} 1")));
}

TEST_F(ModelRepositoryTest, MayMeasureBeforeItServes) {
  WriteNetwork("m", testing::MakeRandomNetwork({}));
  repository_ =
      *NewModelRepository({.directories = {directory_.path()}, .tune = Tune::kBeforeReady}, devices_, *metrics_);
  repository_->Load([] {});
  EXPECT_THAT(metrics_->Text(), HasSubstr("state=\"done\",version=\"1\"} 1"));
  EXPECT_THAT(metrics_->Text(), Not(HasSubstr("swizzle_model_tuning_seconds_total{model=\"m\",version=\"1\"} 0\n")));
}

TEST_F(ModelRepositoryTest, PlansOfRegionsAreMeasuredToo) {
  testing::OnnxBuilder builder;
  builder.Input("x", {-1, 8}).Floats("w", {8, 24}, std::vector<float>(192, 0.25f));
  builder.Floats("v", {24, 8}, std::vector<float>(192, 0.5f)).Node("MatMul", {"x", "w"}, {"a"});
  builder.Node("Tan", {"a"}, {"b"}).Node("MatMul", {"b", "v"}, {"y"}).Output("y");
  Write("m/1/model.onnx", builder.Bytes());
  repository_ =
      *NewModelRepository({.directories = {directory_.path()}, .tune = Tune::kBeforeReady}, devices_, *metrics_);
  repository_->Load([] {});
  const auto serving = repository_->Find("m", "");
  ASSERT_TRUE(serving.ok()) << serving.status();
  EXPECT_EQ((*serving)->model->facts()->properties.at("swizzle_regions"), "2");
  EXPECT_THAT(metrics_->Text(), HasSubstr("state=\"done\",version=\"1\"} 1"));
  EXPECT_THAT(metrics_->Text(), Not(HasSubstr("swizzle_model_tuning_seconds_total{model=\"m\",version=\"1\"} 0\n")));
}

TEST_F(ModelRepositoryTest, WhatNeedsAGpuIsRefusedWithoutOne) {
  const Network network = testing::MakeRandomNetwork({});
  const std::vector<std::byte> bytes = *EncodePacked(network);
  for (const char* name : {"kind", "precision", "tf32", "bf16", "either"}) {
    directory_.Write(Concat(name, "/1/model.swz"),
                     std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  directory_.Write("precision/config.pbtxt", "parameters { key: 'precision' value { string_value: 'FP16' } }");
  directory_.Write("tf32/config.pbtxt", "parameters { key: 'precision' value { string_value: 'TF32' } }");
  directory_.Write("bf16/config.pbtxt", "parameters { key: 'precision' value { string_value: 'BF16' } }");
  directory_.Write("either/config.pbtxt", "parameters { key: 'precision' value { string_value: 'FP32' } }");
  EXPECT_THAT(LoadError("precision"), HasSubstr("'FP16', but the model runs on the CPU, which computes in FP32"));
  EXPECT_THAT(LoadError("tf32"), HasSubstr("'TF32', but the model runs on the CPU, which computes in FP32"));
  EXPECT_TRUE(Load().Find("bf16", "").ok());
  EXPECT_TRUE(repository_->Find("either", "").ok());
}

// A repository that was written for a machine with GPUs.
TEST_F(ModelRepositoryTest, WhatNamesAGpuRunsWithoutOne) {
  WriteNetwork("m", testing::MakeRandomNetwork({}));
  directory_.Write("m/config.pbtxt", "instance_group { kind: KIND_GPU gpus: [0, 1] }");
  const auto serving = Load().Find("m", "");
  ASSERT_TRUE(serving.ok()) << serving.status();
  EXPECT_EQ((*serving)->model->spec().instance_kind, InstanceKind::kCpu);
}

TEST_F(ModelRepositoryTest, TheConfigurationNamesVersionAndFile) {
  const std::vector<std::byte> bytes = *EncodePacked(testing::MakeRandomNetwork({}));
  Write("m/1/first.swz", bytes);
  Write("m/2/model.swz", bytes);
  directory_.Write("m/config.pbtxt", "default_model_filename: 'first.swz' version_policy { specific { versions: 1 } }");
  const auto serving = Load().Find("m", "");
  ASSERT_TRUE(serving.ok()) << serving.status();
  EXPECT_EQ((*serving)->model->spec().version, 1);
  directory_.Write("m/config.pbtxt", "default_model_filename: 'first.swz'");
  EXPECT_THAT(LoadError("m"), HasSubstr("there is no 'first.swz' in the version's directory"));
  directory_.Write("m/config.pbtxt", "version_policy { specific { versions: 3 } }");
  EXPECT_THAT(LoadError("m"), HasSubstr("none of the versions that 'version_policy' names is there; the latest is 2"));
}

TEST_F(ModelRepositoryTest, ServesTheVersionsThatAPolicyMeans) {
  for (const char* version : {"2", "3", "10"}) directory_.Write(Concat("m/", version, "/x"), "");
  directory_.Write("m/config.pbtxt",
                   IdentityConfig("TYPE_FP32", "[4]", "version_policy { latest { num_versions: 2 } }"));
  const ModelRepository& repository = Load();
  EXPECT_THAT(repository.Versions("m"), ElementsAre(3, 10));
  EXPECT_EQ((*repository.Find("m", ""))->model->spec().version, 10);
  EXPECT_EQ((*repository.Find("m", "3"))->model->spec().version, 3);
  EXPECT_EQ(repository.Find("m", "2").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(repository.List().size(), 2u);
}

TEST_F(ModelRepositoryTest, AVersionThatFailsLeavesTheOthersServing) {
  Write("m/1/model.swz", *EncodePacked(testing::MakeRandomNetwork({})));
  directory_.Write("m/2/model.swz", "no model");
  directory_.Write("m/config.pbtxt", "version_policy { all { } }");
  const ModelRepository& repository = Load();
  EXPECT_EQ((*repository.Find("m", ""))->model->spec().version, 1) << "the latest that serves";
  EXPECT_EQ(repository.Find("m", "2").status().code(), StatusCode::kInternal);
  ASSERT_EQ(repository.List().size(), 2u);
  EXPECT_EQ(repository.List()[1].state, ModelState::kFailed);
  EXPECT_FALSE(repository.readiness().ready);
}

TEST_F(ModelRepositoryTest, AModelInTwoRepositoriesIsRefused) {
  const RepositoryDirectory other;
  for (const char* model : {"a", "b"}) directory_.Write(Concat(model, "/config.pbtxt"), IdentityConfig());
  std::filesystem::copy(directory_.path() / "a", other.path() / "a", std::filesystem::copy_options::recursive);
  std::filesystem::copy(directory_.path() / "b", other.path() / "c", std::filesystem::copy_options::recursive);
  repository_ =
      *NewModelRepository({.directories = {directory_.path(), other.path()}, .plan = QuickPlan()}, devices_, *metrics_);
  repository_->Load([] {});
  EXPECT_EQ(std::string(repository_->Find("a", "").status().message()),
            "model 'a' failed to load: it is in two repositories; keep it in one");
  EXPECT_TRUE(repository_->Find("b", "").ok());
  EXPECT_TRUE(repository_->Find("c", "").ok());
}

TEST_F(ModelRepositoryTest, SaysWhatAMissingDirectoryIsToBe) {
  const auto missing = NewModelRepository({.directories = {directory_.path() / "none"}}, devices_, *metrics_);
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("none; it is to be a folder with MODEL/1/model.onnx"));
}

TEST_F(ModelRepositoryTest, AnEmptyDirectoryIsReady) {
  EXPECT_TRUE(Load().readiness().ready);
  EXPECT_TRUE(repository_->List().empty());
}

TEST_F(ModelRepositoryTest, FindsModelsByNameAndVersion) {
  directory_.Write("b/config.pbtxt", IdentityConfig());
  directory_.Write("a.1-x_/config.pbtxt", IdentityConfig());
  directory_.Write("a.1-x_/2/empty", "");
  directory_.Write("a.1-x_/10/empty", "");
  directory_.Write("a.1-x_/011/empty", "");
  directory_.Write("a.1-x_/draft/empty", "");
  ModelRepository& repository = Load();
  EXPECT_TRUE(repository.readiness().ready);
  ASSERT_EQ(repository.List().size(), 2u);
  EXPECT_EQ(repository.List()[0].name, "a.1-x_");
  EXPECT_EQ(repository.List()[0].version, 10);
  EXPECT_EQ(repository.List()[1].version, 1) << "an identity model needs no version directory";
  EXPECT_THAT(repository.Versions("a.1-x_"), ElementsAre(10));
  EXPECT_TRUE(repository.Find("b", "").ok());
  EXPECT_TRUE(repository.Find("b", "1").ok());
  EXPECT_EQ((*repository.Find("a.1-x_", "10"))->model->spec().version, 10);
}

TEST_F(ModelRepositoryTest, UnknownNamesAndVersionsAreToldApart) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ModelRepository& repository = Load();
  EXPECT_EQ(repository.Find("other", "").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(repository.Find("", "").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(repository.Find("../m", "").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(repository.Find("m", "2").status().code(), StatusCode::kNotFound);
  for (const std::string version : {"0", "-1", "x", "1.0", "01", " 1", "99999999999999999999"}) {
    EXPECT_EQ(repository.Find("m", version).status().code(), StatusCode::kInvalidArgument) << version;
  }
  EXPECT_TRUE(repository.Versions("other").empty());
}

TEST_F(ModelRepositoryTest, ABadModelDoesNotKeepOthersFromServing) {
  directory_.Write("bad/config.pbtxt", "no_such_field: 1");
  directory_.Write("good/config.pbtxt", IdentityConfig());
  EXPECT_EQ(LoadError("bad"),
            "model 'bad' failed to load: config.pbtxt: line 1: Message type \"inference.ModelConfig\" has no field "
            "named \"no_such_field\".");
  EXPECT_FALSE(repository_->readiness().ready);
  EXPECT_TRUE(repository_->Find("good", "").ok());
  EXPECT_TRUE(repository_->Versions("bad").empty());
  ASSERT_EQ(repository_->List().size(), 2u);
  EXPECT_FALSE(repository_->List()[0].status.ok());
  EXPECT_TRUE(repository_->List()[1].status.ok());
  EXPECT_THAT(metrics_->Text(), HasSubstr("swizzle_model_load_failures_total{model=\"bad\"} 1"));
}

TEST_F(ModelRepositoryTest, AModelWithoutThreadsFailsAndTheServerGoesOn) {
#ifdef SWIZZLE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer ends a process that can't start a thread";
#endif
  directory_.Write("m/config.pbtxt", IdentityConfig());
  repository_ = *NewModelRepository({.directories = {directory_.path()}, .plan = QuickPlan()}, devices_, *metrics_);
  {
    const NoMoreThreads none;
    repository_->Load([] {});
  }
  EXPECT_THAT(std::string(repository_->Find("m", "").status().message()),
              HasSubstr("'m' failed to load: its threads would leave too few to answer calls with"));
  EXPECT_TRUE(Load().Find("m", "").ok());
}

// In a process of its own.
TEST_F(ModelRepositoryTest, AModelForWhichMemoryRunsOutFailsAndTheServerGoesOn) {
#if defined(__SANITIZE_ADDRESS__) || defined(SWIZZLE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers take address space of their own";
#endif
  directory_.Write("m/1/model.swz", "");
  std::filesystem::resize_file(directory_.path() / "m/1/model.swz", size_t{256} << 20);
  const auto load = [this] {
    repository_ = *NewModelRepository({.directories = {directory_.path()}, .plan = QuickPlan()}, devices_, *metrics_);
    LimitAddresses(size_t{64} << 20);
    repository_->Load([] {});
    std::cerr << repository_->Find("m", "").status().message() << std::endl;
    std::_Exit(0);
  };
  EXPECT_EXIT(load(), ::testing::ExitedWithCode(0), "'m' failed to load: there is not enough memory");
}

// What one executor of the network takes at batches of up to so many rows.
int64_t ArenaBytes(const Network& network, int64_t rows) {
  const auto backend = NewCpuBackend();
  PlanOptions options = QuickPlan();
  options.max_batch = rows;
  return static_cast<int64_t>((*MakePlan(network, *backend, options))->arena_bytes());
}

TEST_F(ModelRepositoryTest, AModelTooLargeForTheMemoryLeavesTheOthersServing) {
  const Network network = testing::MakeRandomNetwork({});
  WriteNetwork("large", network);
  directory_.Write("large/config.pbtxt", "instance_group { count: 200 kind: KIND_CPU }");
  WriteNetwork("other", network);
  memory_.limit = 2 * ArenaBytes(network, 64);
  EXPECT_THAT(LoadError("large"),
              HasSubstr("'large' failed to load: there is no room for it in memory: at batches of 64 it needs"));
  EXPECT_TRUE(repository_->Find("other", "").ok());
  memory_.limit = 1000;
  EXPECT_THAT(LoadError("other"), HasSubstr("'other' failed to load: there is no room for it in memory: its files have "
                                            "1 MiB, and of 0 MiB of memory 0 MiB are left"));
}

TEST_F(ModelRepositoryTest, ALargestBatchThatHasNoRoomIsLowered) {
  const Network network = testing::MakeRandomNetwork({});
  WriteNetwork("first", network);
  WriteNetwork("second", network);
  directory_.Write("second/config.pbtxt", "max_batch_size: 4096 dynamic_batching { preferred_batch_size: [8, 4096] }");
  memory_.limit = ArenaBytes(network, 4096) / 2;
  ModelRepository& repository = Load();
  EXPECT_EQ((*repository.Find("first", ""))->model->spec().max_batch_size, 64);
  EXPECT_GT(repository.promised_bytes(), static_cast<int64_t>(ArenaBytes(network, 64)));
  EXPECT_LE(repository.promised_bytes(), memory_.limit);
  const auto second = repository.Find("second", "");
  ASSERT_TRUE(second.ok()) << second.status();
  const ModelSpec& spec = (*second)->model->spec();
  EXPECT_LT(spec.max_batch_size, 4096);
  EXPECT_GT(spec.max_batch_size, 64);
  EXPECT_LT(ArenaBytes(network, spec.max_batch_size), memory_.limit);
  EXPECT_THAT(spec.preferred_batch_sizes, ElementsAre(8));
  EXPECT_THAT(spec.memory_note,
              HasSubstr(Concat("the largest batch is ", spec.max_batch_size, ": at batches of 4096")));
  const auto described = DescribeModel(*(*second)->model, {1});
  EXPECT_EQ(described.properties().at("swizzle_memory"), spec.memory_note);
}

TEST_F(ModelRepositoryTest, WhatIsMissingIsNamed) {
  directory_.Write("empty/readme", "");
  EXPECT_THAT(LoadError("empty"), HasSubstr("there is no version directory"));
  directory_.Write("hollow/3/readme", "");
  EXPECT_THAT(LoadError("hollow"), HasSubstr("none of model.onnx, model.swz and model.safetensors"));
  directory_.Write("both/1/model.onnx", "");
  directory_.Write("both/1/model.swz", "");
  EXPECT_THAT(LoadError("both"), HasSubstr("both model.onnx and model.swz"));
}

TEST_F(ModelRepositoryTest, AGarbageModelFileIsReportedWithoutItsPath) {
  directory_.Write("garbage/1/model.onnx", "this is not a model");
  directory_.Write("packed/1/model.swz", "neither is this");
  EXPECT_THAT(LoadError("garbage"), Not(HasSubstr(directory_.path().string())));
  EXPECT_THAT(LoadError("packed"), Not(HasSubstr(directory_.path().string())));
}

TEST_F(ModelRepositoryTest, NamesOutsideTheAlphabetAreReported) {
  directory_.Write("two words/config.pbtxt", IdentityConfig());
  EXPECT_THAT(LoadError("two words"), HasSubstr("model names consist of"));
}

TEST_F(ModelRepositoryTest, FilesAndWhatSystemsKeepBesideThemAreNotModels) {
  directory_.Write("README", "");
  for (const char* folder :
       {".git", ".snapshot", ".Trash-0", "..2026_01_02", "lost+found", "@eaDir", "@Recycle", "#recycle", "#snapshot",
        "~snapshot", "$RECYCLE.BIN", "System Volume Information", "__MACOSX", "__pycache__"}) {
    directory_.Write(std::string(folder) + "/m/config.pbtxt", "");
  }
  EXPECT_TRUE(Load().List().empty());
  EXPECT_TRUE(repository_->readiness().reasons.empty());
}

// As a volume of a ConfigMap lies at the repository's root, and one with a file system of its own at a model's.
TEST_F(ModelRepositoryTest, ModelsMayBeVolumes) {
  directory_.Write("..2026_01_02/m/config.pbtxt", IdentityConfig());
  std::filesystem::create_directory_symlink("..2026_01_02", directory_.path() / "..data");
  std::filesystem::create_directory_symlink("..data/m", directory_.path() / "m");
  directory_.Write("own/config.pbtxt", IdentityConfig());
  directory_.Write("own/lost+found/x", "");
  EXPECT_TRUE(Load().Find("m", "").ok());
  EXPECT_TRUE(repository_->Find("own", "").ok());
  EXPECT_EQ(repository_->List().size(), 2u);
}

TEST_F(ModelRepositoryTest, LinkedDirectoriesAreModels) {
  directory_.Write(".store/m/config.pbtxt", IdentityConfig());
  std::filesystem::create_directory_symlink(directory_.path() / ".store/m", directory_.path() / "linked");
  std::filesystem::create_directory_symlink(directory_.path() / "nowhere", directory_.path() / "dangling");
  EXPECT_TRUE(Load().Find("linked", "").ok());
  EXPECT_EQ(repository_->List().size(), 1u);
}

TEST_F(ModelRepositoryTest, TheConfigurationThatServesIsKept) {
  directory_.Write("m/config.pbtxt", IdentityConfig("TYPE_INT64", "[-1, 2]", "max_batch_size: 4"));
  const auto serving = Load().Find("m", "");
  ASSERT_TRUE(serving.ok()) << serving.status();
  inference::ModelConfig config;
  ASSERT_TRUE(config.ParseFromString((*serving)->config_bytes));
  EXPECT_EQ(config.name(), "m");
  EXPECT_EQ(config.backend(), "identity");
  EXPECT_EQ(config.max_batch_size(), 4);
  EXPECT_FALSE(config.has_dynamic_batching());
  EXPECT_THAT(config.input(0).dims(), ElementsAre(-1, 2));
}

TEST_F(ModelRepositoryTest, DrainedModelsTakeNoMore) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Load().Drain();
  Request request;
  request.inputs = {TensorView{DType::kFloat32, {1, 4}, {}}};
  const auto ticket = (*repository_->Find("m", ""))->batcher->Submit(std::move(request), [](StatusOr<Result>) {});
  EXPECT_EQ(ticket.status().code(), StatusCode::kUnavailable);
}

TEST(PinsThreadsTest, AutomaticallyWhereProcessorsAreKnownToBeTheExecutors) {
  const struct {
    PinThreads when;
    int executor_threads, threads, affinity, available;
    bool pins;
  } cases[] = {
      {PinThreads::kAuto, 16, 16, 16, 16, true}, {PinThreads::kAuto, 8, 16, 16, 16, true},  // two executors
      {PinThreads::kAuto, 4, 16, 16, 16, false},  // four: too few threads each
      {PinThreads::kAuto, 8, 8, 16, 16, false},   // --threads=8
      {PinThreads::kAuto, 8, 8, 16, 8, false},    // a quota
      {PinThreads::kAuto, 16, 16, 16, 8, false},  // and --threads=16
      {PinThreads::kOn, 1, 1, 16, 8, true},      {PinThreads::kOff, 16, 16, 16, 16, false},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(PinsThreads(test.when, test.executor_threads, test.threads, test.affinity, test.available), test.pins)
        << test.executor_threads << " of " << test.threads << " threads, " << test.affinity << " and "
        << test.available;
  }
}

}  // namespace
}  // namespace swizzle
