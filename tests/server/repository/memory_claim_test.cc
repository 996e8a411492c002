// Models on a device whose memory is short.
#include "server/repository/memory_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/packed/packed_writer.h"
#include "server/repository/model_repository.h"
#include "tests/kernels/fake_device.h"
#include "tests/server/repository_directory.h"
#include "tests/support/fake_device.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/random_network.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;
using testing::IsError;
using ::testing::StartsWith;

constexpr int64_t kMiB = 1 << 20;

class MemoryClaimTest : public ::testing::Test {
 protected:
  // `free`: of the GPU's memory, of which half is in others' use.
  ModelRepository& Load(int64_t free) {
    auto gpu = std::make_unique<testing::FakeDevice>(2 * free, free);
    gpu_ = gpu.get();
    std::vector<std::unique_ptr<Backend>> gpus;
    gpus.push_back(std::move(gpu));
    repository_ = nullptr;
    devices_ = std::make_unique<Devices>(NewCpuBackend(), std::move(gpus));
    RepositoryOptions options{
        .directories = {directory_.path()}, .tune = tune_, .resident_bytes = [] { return int64_t{0}; }};
    if (tune_ == Tune::kOff) options.plan.tuning_budget = absl::ZeroDuration();
    repository_ = *NewModelRepository(options, *devices_, *metrics_);
    repository_->StopTuning();
    repository_->Load([] {});
    return *repository_;
  }

  void Write(const std::string& model, const std::string& config = "") {
    const std::vector<std::byte> bytes = *EncodePacked(network_);
    directory_.Write(model + "/1/model.swz", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!config.empty()) directory_.Write(model + "/config.pbtxt", config);
  }

  // Of one executor of the network, at batches of up to so many rows.
  int64_t ArenaBytes(int64_t rows) {
    testing::FakeDevice device(0, 0);
    PlanOptions options;
    options.tuning_budget = absl::ZeroDuration();
    options.max_batch = rows;
    return static_cast<int64_t>((*MakePlan(network_, device, options))->arena_bytes());
  }

  const Network network_ = testing::MakeRandomNetwork({});
  RepositoryDirectory directory_;
  Tune tune_ = Tune::kOff;
  std::unique_ptr<Devices> devices_;
  testing::FakeDevice* gpu_ = nullptr;
  std::unique_ptr<Metrics> metrics_ = *NewMetrics("127.0.0.1:0");
  std::unique_ptr<ModelRepository> repository_;
};

TEST_F(MemoryClaimTest, AModelTooLargeForAGpuLeavesTheOthersServing) {
  Write("large", "instance_group { count: 200 kind: KIND_GPU }");
  Write("on_the_gpu", "instance_group { count: 1 kind: KIND_GPU }");
  Write("on_the_host", "instance_group { kind: KIND_CPU }");
  const Status status = Load(200 * kMiB).Find("large", "").status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'large' failed to load: there is no room for it in the memory of cuda:0: at batches of 64 it "
                        "needs"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("of 400 MiB of cuda:0 200 MiB are left"));
  EXPECT_TRUE(repository_->Find("on_the_gpu", "").ok()) << repository_->Find("on_the_gpu", "").status();
  EXPECT_TRUE(repository_->Find("on_the_host", "").ok());
}

TEST_F(MemoryClaimTest, ALargestBatchThatHasNoRoomOnAGpuIsLowered) {
  Write("m", "max_batch_size: 4096 dynamic_batching { preferred_batch_size: [8, 4096] } instance_group { count: 2 }");
  const int64_t free = 2 * 64 * kMiB + ArenaBytes(4096);  // for two streams, and arenas of half the rows each
  const auto serving = Load(free).Find("m", "");
  ASSERT_TRUE(serving.ok()) << serving.status();
  const ModelSpec& spec = (*serving)->model->spec();
  EXPECT_LE(spec.max_batch_size, 2048);
  EXPECT_GE(spec.max_batch_size, 1024);
  EXPECT_THAT(spec.memory_note,
              StartsWith(Concat("the largest batch is ", spec.max_batch_size, ": at batches of 4096 it needs ")));
  EXPECT_THAT(spec.memory_note, HasSubstr(" MiB of cuda:0 "));
  const DeviceMemory memory = *gpu_->memory();
  EXPECT_GT(memory.used, free + ArenaBytes(spec.max_batch_size)) << "two executors have theirs";
  EXPECT_LE(memory.used + 2 * 64 * kMiB, memory.total);
}

// Of all models together one is tuned at a time.
TEST_F(MemoryClaimTest, AModelThatIsTunedNeedsOneExecutorMore) {
  Write("a", "instance_group { count: 1 }");
  const int64_t executor = 64 * kMiB + ArenaBytes(64);
  EXPECT_EQ((*Load(executor).Find("a", ""))->model->spec().memory_note, "");
  tune_ = Tune::kBackground;
  EXPECT_EQ((*Load(2 * executor).Find("a", ""))->model->spec().memory_note, "");
  EXPECT_FALSE(Load(executor).Find("a", "").ok());
}

// In regions on a device that computes.
class RegionsClaimTest : public ::testing::Test {
 protected:
  StatusOr<std::shared_ptr<ServingModel>> Load(const std::string& model, int64_t total) {
    auto gpu = std::make_unique<FakeDevice>();
    gpu->total = total;
    const DeviceFunctions* const functions = &gpu->functions();
    std::vector<std::unique_ptr<Backend>> gpus;
    gpus.push_back(std::move(gpu));
    repository_ = nullptr;
    devices_ = std::make_unique<Devices>(NewCpuBackend(), std::move(gpus), functions);
    RepositoryOptions options{
        .directories = {directory_.path()}, .tune = Tune::kOff, .memory = memory_, .resident_bytes = [] {
          return int64_t{0};
        }};
    options.plan.tuning_budget = absl::ZeroDuration();
    repository_ = *NewModelRepository(options, *devices_, *metrics_);
    repository_->Load([] {});
    return repository_->Find(model, "");
  }

  // Of which a row of 64 tokens takes a quarter of a MiB, and more, between its layers.
  void Write(const std::string& model, const std::string& config, const std::string& between = "Exp") {
    testing::OnnxBuilder builder;
    builder.Input("x", {-1, 64, 8}).Counting("w1", {8, 1024}).Counting("w2", {1024, 8});
    builder.Node("MatMul", {"x", "w1"}, {"h"}).Node(between, {"h"}, {"s"}).Node("MatMul", {"s", "w2"}, {"y"});
    builder.graph().add_output()->CopyFrom(builder.graph().input(0));
    builder.graph().mutable_output(0)->set_name("y");
    const std::vector<std::byte> bytes = builder.Bytes();
    directory_.Write(model + "/1/model.onnx", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    directory_.Write(model + "/config.pbtxt", config);
  }

  MemoryRoom memory_;  // the process's
  RepositoryDirectory directory_;
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Metrics> metrics_ = *NewMetrics("127.0.0.1:0");
  std::unique_ptr<ModelRepository> repository_;
};

TEST_F(RegionsClaimTest, ExecutorsWithoutRoomAreRefused) {
  Write("m", "instance_group { count: 4 kind: KIND_GPU }");
  EXPECT_TRUE(Load("m", 0).ok());
  EXPECT_TRUE(Load("m", 1024 * kMiB).ok());
  EXPECT_THAT(
      std::string(Load("m", 4 * 64 * kMiB).status().message()),
      HasSubstr("'m' failed to load: there is no room for it in the memory of fake:0: at batches of 64 it needs"));
}

TEST_F(RegionsClaimTest, RunOnTheGpuUnlessSomethingWouldBeLeftToTheHost) {
  const auto kind = [&](const std::string& between, const std::string& config) {
    Write("m", config, between);
    const auto serving = Load("m", 0);
    EXPECT_TRUE(serving.ok()) << serving.status();
    return (*serving)->model->spec().instance_kind;
  };
  EXPECT_EQ(kind("Exp", ""), InstanceKind::kGpu);
  EXPECT_EQ(kind("Asinh", ""), InstanceKind::kCpu);
  EXPECT_EQ(kind("Asinh", "instance_group { kind: KIND_GPU }"), InstanceKind::kGpu);
  EXPECT_EQ(kind("Exp", "instance_group { kind: KIND_CPU }"), InstanceKind::kCpu);
}

TEST_F(RegionsClaimTest, ALargestBatchThatHasNoRoomIsLowered) {
  Write("m", "max_batch_size: 4096 dynamic_batching { } instance_group { kind: KIND_GPU }");
  const auto serving = Load("m", 256 * kMiB);
  ASSERT_TRUE(serving.ok()) << serving.status();
  const ModelSpec& spec = (*serving)->model->spec();
  EXPECT_LE(spec.max_batch_size, 512);
  EXPECT_GE(spec.max_batch_size, 64);
  EXPECT_THAT(spec.memory_note,
              StartsWith(Concat("the largest batch is ", spec.max_batch_size, ": at batches of 4096 it needs ")));
  EXPECT_THAT(spec.memory_note, HasSubstr(" MiB of fake:0 "));
}

TEST_F(RegionsClaimTest, WhatWasPromisedIsKeptUntilItIsTaken) {
  for (const char* model : {"a", "b"}) Write(model, "max_batch_size: 2 instance_group { count: 1 kind: KIND_GPU }");
  EXPECT_TRUE(Load("b", 2 * 72 * kMiB).ok());
  EXPECT_FALSE(Load("b", 2 * 60 * kMiB).ok());
  EXPECT_TRUE(repository_->Find("a", "").ok());
}

TEST_F(RegionsClaimTest, ALargestBatchThatHasNoRoomOnTheHostIsLowered) {
  Write("m", "max_batch_size: 4096 dynamic_batching { } instance_group { count: 1 kind: KIND_CPU }");
  memory_.limit = 256 * kMiB;
  const auto serving = Load("m", 0);
  ASSERT_TRUE(serving.ok()) << serving.status();
  const ModelSpec& spec = (*serving)->model->spec();
  EXPECT_LE(spec.max_batch_size, 1024);
  EXPECT_GE(spec.max_batch_size, 64);
  EXPECT_THAT(spec.memory_note, HasSubstr("at batches of 4096 it needs "));
}

TEST(RegionsClaim, RunsOfAllModelsTakeNoMoreTogetherThanIsLeft) {
  ModelSpec spec;
  spec.instance_count = 2;
  spec.max_batch_size = 8;
  const interpreter::RunMemory run = {10 * kMiB, 2};
  MemoryRooms rooms{{.limit = 1000 * kMiB, .requests = 100 * kMiB}};
  MemoryClaim claim(rooms, [] { return 300 * kMiB; });
  EXPECT_TRUE(*claim.FindRoom(spec, run));
  EXPECT_EQ(claim.MostOfARun(spec, run, 1000 * kMiB), 40 * kMiB + (1000 - 300 - 100 - 2 * 40) * kMiB / 4);
  claim.Take();
  EXPECT_EQ(rooms.process.promised, 2 * 40 * kMiB);
  EXPECT_TRUE(claim.runs()->Take(600 * kMiB)) << "what was promised to them is theirs";
  EXPECT_FALSE(claim.runs()->Take(1));
}

// Of two models that are tuned the larger has the spare executor, until it is gone.
TEST(MemoryRoomsTest, WhatWasTakenIsGivenBack) {
  const auto resident = [] { return 300 * kMiB; };
  MemoryRooms rooms{{.limit = 1000 * kMiB}};
  const uint64_t small = rooms.Take({.promised = 10 * kMiB, .spare = 5 * kMiB}, resident);
  const uint64_t runs = rooms.Take({.promised = 20 * kMiB, .runs_by_node = true}, resident);
  const uint64_t large = rooms.Take({.promised = 100 * kMiB, .spare = 50 * kMiB}, resident);
  EXPECT_EQ(rooms.process.promised, 180 * kMiB);
  EXPECT_EQ(rooms.process.spare, 50 * kMiB);
  EXPECT_EQ(rooms.runs_limit, (1000 - 300 - 180 + 20) * kMiB);
  rooms.GiveBack(large, resident);
  EXPECT_EQ(rooms.process.promised, 35 * kMiB);
  EXPECT_EQ(rooms.runs_limit, (1000 - 300 - 35 + 20) * kMiB) << "runs may have what is left now";
  rooms.GiveBack(large, resident);
  EXPECT_EQ(rooms.process.promised, 35 * kMiB) << "once";
  rooms.GiveBack(small, resident);
  rooms.GiveBack(runs, resident);
  EXPECT_EQ(rooms.process.promised, 0);
  EXPECT_EQ(rooms.process.spare, 0);
  EXPECT_EQ(rooms.promised_to_runs, 0);
}

TEST(RegionsClaim, RunsOfAllModelsTakeNoMoreThanTheyMay) {
  ModelSpec spec;
  spec.instance_count = 1;
  spec.max_batch_size = 8;
  const interpreter::RunMemory run = {10 * kMiB, 2};
  for (const int64_t memory : {int64_t{0}, 1000 * kMiB}) {
    MemoryRooms rooms{.process = {.limit = memory}, .most_of_runs = 200 * kMiB};
    MemoryClaim claim(rooms, [] { return 300 * kMiB; });
    EXPECT_TRUE(*claim.FindRoom(spec, run));
    EXPECT_EQ(claim.MostOfARun(spec, run, 1000 * kMiB), 200 * kMiB);
    claim.Take();
    EXPECT_EQ(rooms.runs_limit, 200 * kMiB);
    EXPECT_TRUE(claim.runs()->Take(200 * kMiB));
    EXPECT_FALSE(claim.runs()->Take(1));

    MemoryClaim second(rooms, [] { return 300 * kMiB; });
    EXPECT_FALSE(*second.FindRoom(spec, {200 * kMiB, 8})) << "40 MiB of them are promised";
    EXPECT_EQ(second.largest(), 4);
    EXPECT_THAT(second.why(), HasSubstr("of 200 MiB 160 MiB are left"));
    EXPECT_THAT(second.FindRoom(spec, {2000 * kMiB, 1}).status(),
                IsError(StatusCode::kResourceExhausted, "no room for it within --max-run-bytes"));
  }
}

TEST(RegionsClaim, ARunMayTakeWhatTheLargestBatchTakesAndAShareOfTheRest) {
  const testing::FakeDevice gpu(1000 * kMiB, 100 * kMiB);
  ModelSpec spec;
  spec.instance_count = 2;
  spec.max_batch_size = 8;
  const interpreter::RunMemory run = {10 * kMiB, 2};
  MemoryRooms rooms;
  MemoryClaim claim(rooms, [] { return int64_t{0}; });
  EXPECT_TRUE(*claim.FindRoomOn(gpu, spec, run));
  EXPECT_EQ(claim.MostOfARunOn(gpu, spec, run, 1000 * kMiB), 40 * kMiB + (1000 - 100 - 2 * (64 + 40)) * kMiB / 4);
  EXPECT_EQ(claim.MostOfARunOn(gpu, spec, run, 100 * kMiB), 100 * kMiB);
  claim.Take();
  EXPECT_EQ(rooms.promised_on.at(&gpu), 2 * (64 + 40) * kMiB);
}

TEST_F(MemoryClaimTest, WeightsThatHaveNoRoomAreNotPrepared) {
  Write("m");
  const Status status = Load(network_.StoredWeightBytes() / 2).Find("m", "").status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("there is no room for it in the memory of cuda:0: its weights have 1 MiB, and of 0 MiB"));
}

}  // namespace
}  // namespace swizzle
