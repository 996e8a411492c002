#include "server/rpc/inference_service.h"

#include <gmock/gmock.h>

#include "kernels/cpu/cpu_backend.h"
#include "tests/server/served_models.h"
#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

using inference::GRPCInferenceService;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Stub = GRPCInferenceService::Stub;

class InferenceServiceTest : public ServedModels {
 protected:
  InferenceServiceTest() {
    directory_.Write("echo/config.pbtxt", IdentityConfig());
    directory_.Write("echo/5/empty", "");
    directory_.Write("exact/config.pbtxt", IdentityConfig("TYPE_FP32", "[1, 4]", "max_batch_size: 0"));
    directory_.Write("strings/config.pbtxt", IdentityConfig("TYPE_STRING", "[-1]", ""));
    directory_.Write("narrow/config.pbtxt",
                     IdentityConfig("TYPE_FP32", "[4]",
                                    "max_batch_size: 1 dynamic_batching { default_queue_policy { max_queue_size: 2 "
                                    "allow_timeout_override: true } }"));
  }
  void SetUp() override { Serve(); }

  bool MetricsHave(const std::string& line) const {
    return server_->metrics().Text().find(line + "\n") != std::string::npos;
  }
};

TEST_F(InferenceServiceTest, IsLiveAndReadyAndSaysWhatItIs) {
  inference::ServerLiveResponse live;
  ASSERT_TRUE(Call(&Stub::ServerLive, inference::ServerLiveRequest(), live).ok());
  EXPECT_TRUE(live.live());
  EXPECT_TRUE(ServerReady());
  inference::ServerMetadataResponse metadata;
  ASSERT_TRUE(Call(&Stub::ServerMetadata, inference::ServerMetadataRequest(), metadata).ok());
  EXPECT_EQ(metadata.name(), "swizzle");
  EXPECT_FALSE(metadata.version().empty());
  EXPECT_THAT(metadata.extensions(), ElementsAre("classification", "model_configuration", "statistics",
                                                 "model_repository", "logging", "trace"));
}

TEST_F(InferenceServiceTest, ModelReadyTellsUnknownFromReady) {
  inference::ModelReadyRequest request;
  inference::ModelReadyResponse response;
  request.set_name("echo");
  ASSERT_TRUE(Call(&Stub::ModelReady, request, response).ok());
  EXPECT_TRUE(response.ready());
  request.set_version("5");
  EXPECT_TRUE(Call(&Stub::ModelReady, request, response).ok());
  request.set_version("6");
  EXPECT_EQ(Call(&Stub::ModelReady, request, response).error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_version("five");
  EXPECT_EQ(Call(&Stub::ModelReady, request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_name("nobody");
  request.clear_version();
  const grpc::Status status = Call(&Stub::ModelReady, request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "there is no model 'nobody'");
}

TEST_F(InferenceServiceTest, TheIndexListsModels) {
  inference::RepositoryIndexRequest request;
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(Call(&Stub::RepositoryIndex, request, index).ok());
  ASSERT_EQ(index.models_size(), 4);
  EXPECT_EQ(index.models(0).name(), "echo");
  EXPECT_EQ(index.models(0).version(), "5");
  EXPECT_EQ(index.models(0).state(), "READY");
  EXPECT_EQ(index.models(0).reason(), "");
  request.set_repository_name("other");
  EXPECT_EQ(Call(&Stub::RepositoryIndex, request, index).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(InferenceServiceTest, ModelMetadataHasTheBatchDimensionWhereThereIsOne) {
  inference::ModelMetadataRequest request;
  inference::ModelMetadataResponse metadata;
  request.set_name("echo");
  ASSERT_TRUE(Call(&Stub::ModelMetadata, request, metadata).ok());
  EXPECT_EQ(metadata.name(), "echo");
  EXPECT_THAT(metadata.versions(), ElementsAre("5"));
  EXPECT_EQ(metadata.platform(), "swizzle_identity");
  EXPECT_EQ(metadata.inputs(0).datatype(), "FP32");
  EXPECT_THAT(metadata.inputs(0).shape(), ElementsAre(-1, 4));
  EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(-1, 4));
  request.set_name("exact");
  ASSERT_TRUE(Call(&Stub::ModelMetadata, request, metadata).ok());
  EXPECT_THAT(metadata.inputs(0).shape(), ElementsAre(1, 4));
  request.set_name("nobody");
  EXPECT_EQ(Call(&Stub::ModelMetadata, request, metadata).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(InferenceServiceTest, ModelConfigIsWhatServes) {
  inference::ModelConfigRequest request;
  inference::ModelConfigResponse response;
  request.set_name("narrow");
  ASSERT_TRUE(Call(&Stub::ModelConfig, request, response).ok());
  EXPECT_EQ(response.config().max_batch_size(), 1);
  EXPECT_EQ(response.config().dynamic_batching().default_queue_policy().max_queue_size(), 2u);
  EXPECT_EQ(response.config().input(0).data_type(), inference::TYPE_FP32);
}

TEST_F(InferenceServiceTest, InferEchoesItsInput) {
  inference::ModelInferRequest request = InferRequest("echo", 2);
  request.set_id("id-1");
  inference::ModelInferResponse response;
  ASSERT_TRUE(Infer(request, response).ok());
  EXPECT_EQ(response.id(), "id-1");
  EXPECT_EQ(response.model_name(), "echo");
  EXPECT_EQ(response.model_version(), "5");
  EXPECT_EQ(response.outputs(0).name(), "Y");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 4));
  EXPECT_THAT(response.raw_output_contents(), ElementsAre(request.raw_input_contents(0)));
  EXPECT_GE(response.parameters().at("swizzle_queue_us").int64_param(), 0);
  EXPECT_GE(response.parameters().at("swizzle_compute_us").int64_param(), 0);
}

TEST_F(InferenceServiceTest, TypedContentsAreAnsweredRaw) {
  inference::ModelInferRequest request = InferRequest("echo");
  request.clear_raw_input_contents();
  for (const float value : {1.0f, 2.0f, 3.0f, 4.0f}) {
    request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(value);
  }
  inference::ModelInferResponse response;
  ASSERT_TRUE(Infer(request, response).ok());
  EXPECT_EQ(response.raw_output_contents(0).substr(4, 4), std::string("\0\0\0\x40", 4));
  EXPECT_FALSE(response.outputs(0).has_contents());
}

TEST_F(InferenceServiceTest, StringsComeThrough) {
  inference::ModelInferRequest request;
  request.set_model_name("strings");
  auto& input = *request.add_inputs();
  input.set_name("X");
  input.set_datatype("BYTES");
  input.add_shape(2);
  input.mutable_contents()->add_bytes_contents("swizzle");
  input.mutable_contents()->add_bytes_contents("");
  inference::ModelInferResponse response;
  const grpc::Status status = Infer(request, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.raw_output_contents(0), std::string("\x07\0\0\0swizzle\0\0\0\0", 15));
}

TEST_F(InferenceServiceTest, WhatTheCallerGotWrongIsNamedAndCounted) {
  inference::ModelInferRequest request = InferRequest("echo");
  request.mutable_raw_input_contents(0)->append("more");
  const grpc::Status status = Infer(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "input 'X' of model 'echo' has 20 bytes; FP32 [1,4] needs 16");
  EXPECT_TRUE(MetricsHave("swizzle_requests_total{code=\"INVALID_ARGUMENT\",model=\"echo\",version=\"5\"} 1"));
  EXPECT_TRUE(Infer(InferRequest("echo")).ok()) << "and the server goes on";
}

TEST_F(InferenceServiceTest, UnknownModelsAreNotFound) {
  EXPECT_EQ(Infer(InferRequest("nobody")).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Infer(InferRequest("or\nso")).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(MetricsHave("swizzle_requests_total{code=\"NOT_FOUND\",model=\"(unknown)\",version=\"0\"} 2"));
  inference::ModelInferRequest request = InferRequest("echo");
  request.set_model_version("4");
  EXPECT_EQ(Infer(request).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(MetricsHave("swizzle_requests_total{code=\"NOT_FOUND\",model=\"echo\",version=\"5\"} 1"));
}

TEST_F(InferenceServiceTest, StatisticsCountRowsBatchesAndFailures) {
  ASSERT_TRUE(Infer(InferRequest("echo", 3)).ok());
  ASSERT_TRUE(Infer(InferRequest("echo", 1)).ok());
  EXPECT_FALSE(Infer(InferRequest("echo", 9)).ok());
  inference::ModelStatisticsRequest request;
  inference::ModelStatisticsResponse response;
  request.set_name("echo");
  ASSERT_TRUE(Call(&Stub::ModelStatistics, request, response).ok());
  ASSERT_EQ(response.model_stats_size(), 1);
  const inference::ModelStatistics& statistics = response.model_stats(0);
  EXPECT_EQ(statistics.name(), "echo");
  EXPECT_EQ(statistics.version(), "5");
  EXPECT_EQ(statistics.inference_count(), 4u);
  EXPECT_EQ(statistics.execution_count(), 2u);
  EXPECT_GT(statistics.last_inference(), 0u);
  EXPECT_EQ(statistics.inference_stats().success().count(), 2u);
  EXPECT_GT(statistics.inference_stats().success().ns(), 0u);
  EXPECT_EQ(statistics.inference_stats().fail().count(), 1u);
  EXPECT_EQ(statistics.inference_stats().queue().count(), 2u);
  EXPECT_EQ(statistics.batch_stats_size(), 2);
}

TEST_F(InferenceServiceTest, StatisticsOfNoModelAreOfAll) {
  inference::ModelStatisticsResponse response;
  ASSERT_TRUE(Call(&Stub::ModelStatistics, inference::ModelStatisticsRequest(), response).ok());
  EXPECT_EQ(response.model_stats_size(), 4);
  inference::ModelStatisticsRequest unknown;
  unknown.set_name("nobody");
  EXPECT_EQ(Call(&Stub::ModelStatistics, unknown, response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(InferenceServiceTest, AFullQueueRefuses) {
  BatcherOf("narrow").HoldUntilQueued(100);
  {
    InferCallInFlight first(*stub_, InferRequest("narrow")), second(*stub_, InferRequest("narrow"));
    Await([&] { return BatcherOf("narrow").queued() == 2; });
    const grpc::Status status = Infer(InferRequest("narrow"));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr("queue of model 'narrow' is full"));
    BatcherOf("narrow").HoldUntilQueued(0);
    EXPECT_TRUE(first.Finish().ok());
    EXPECT_TRUE(second.Finish().ok());
  }
  EXPECT_TRUE(MetricsHave("swizzle_requests_total{code=\"RESOURCE_EXHAUSTED\",model=\"narrow\",version=\"1\"} 1"));
}

TEST_F(InferenceServiceTest, TheTimeoutParameterEndsAQueuedRequest) {
  BatcherOf("narrow").HoldUntilQueued(100);
  inference::ModelInferRequest request = InferRequest("narrow");
  (*request.mutable_parameters())["timeout"].set_int64_param(1000);
  EXPECT_EQ(Infer(request).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(BatcherOf("narrow").queued(), 0);
  EXPECT_TRUE(MetricsHave("swizzle_requests_total{code=\"DEADLINE_EXCEEDED\",model=\"narrow\",version=\"1\"} 1"));
}

TEST_F(InferenceServiceTest, ACallsDeadlineTakesItOutOfTheQueue) {
  BatcherOf("narrow").HoldUntilQueued(100);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(20));
  inference::ModelInferResponse response;
  EXPECT_EQ(stub_->ModelInfer(&context, InferRequest("narrow"), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  Await([&] { return BatcherOf("narrow").queued() == 0; });
}

TEST_F(InferenceServiceTest, ACancelledCallLeavesTheQueue) {
  BatcherOf("narrow").HoldUntilQueued(100);
  InferCallInFlight call(*stub_, InferRequest("narrow"));
  Await([&] { return BatcherOf("narrow").queued() == 1; });
  call.Cancel();
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  Await([&] { return BatcherOf("narrow").queued() == 0; });
  Await([&] { return MetricsHave("swizzle_requests_total{code=\"CANCELLED\",model=\"narrow\",version=\"1\"} 1"); });
  BatcherOf("narrow").HoldUntilQueued(0);
  EXPECT_TRUE(Infer(InferRequest("narrow")).ok());
}

TEST_F(InferenceServiceTest, AClientThatGoesAwayLeavesTheQueue) {
  BatcherOf("narrow").HoldUntilQueued(100);
  auto channel = NewChannel();
  auto stub = GRPCInferenceService::NewStub(channel);
  auto call = std::make_unique<InferCallInFlight>(*stub, InferRequest("narrow"));
  Await([&] { return BatcherOf("narrow").queued() == 1; });
  call->Cancel();
  call.reset();
  stub.reset();
  channel.reset();
  Await([&] { return BatcherOf("narrow").queued() == 0; });
  BatcherOf("narrow").HoldUntilQueued(0);
  EXPECT_TRUE(Infer(InferRequest("narrow")).ok());
}

TEST_F(InferenceServiceTest, ManyClientsAtOnceAllGetTheirOwn) {
  constexpr int kThreads = 4, kRequests = 50;
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        inference::ModelInferRequest request = InferRequest("echo", 1 + (t + i) % 8);
        request.mutable_raw_input_contents(0)->front() = static_cast<char>(t * kRequests + i);
        inference::ModelInferResponse response;
        if (!Infer(request, response).ok()) continue;
        good += response.raw_output_contents(0) == request.raw_input_contents(0) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kThreads * kRequests);
}

TEST_F(InferenceServiceTest, ClientsLoadNoModels) {
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("echo");
  inference::RepositoryModelLoadResponse loaded;
  EXPECT_EQ(Call(&Stub::RepositoryModelLoad, load, loaded).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  inference::RepositoryModelUnloadRequest unload;
  unload.set_model_name("echo");
  inference::RepositoryModelUnloadResponse unloaded;
  const grpc::Status status = Call(&Stub::RepositoryModelUnload, unload, unloaded);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(status.error_message(),
            "models are loaded and unloaded at an address for operators (--control-address, --http-control-address)");
  EXPECT_TRUE(Infer(InferRequest("echo")).ok());
}

// A service on a repository of its own, without the server around it.
TEST(RefuseInferences, LetsWhatIsQueuedFinish) {
  RepositoryDirectory directory;
  directory.Write("m/config.pbtxt", IdentityConfig());
  const Devices devices(NewCpuBackend());
  const auto metrics = NewMetrics("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok());
  const auto repository = NewModelRepository({.directories = {directory.path()}}, devices, **metrics);
  ASSERT_TRUE(repository.ok());
  (*repository)->Load([] {});
  InferenceService service;
  service.Serve(**repository);
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = GRPCInferenceService::NewStub(server->InProcessChannel({}));

  Batcher& batcher = *(*(*repository)->Find("m", ""))->batcher;
  batcher.HoldUntilQueued(100);
  InferCallInFlight queued(*stub, InferRequest("m"));
  Await([&] { return batcher.queued() == 1; });
  service.RefuseInferences();
  InferCallInFlight late(*stub, InferRequest("m"));
  const grpc::Status refused = late.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(refused.error_message(), "the server is shutting down");
  EXPECT_THAT((*metrics)->Text(),
              HasSubstr("swizzle_rejected_requests_total{model=\"m\",reason=\"draining\",version=\"1\"} 1"));
  (*repository)->Drain();
  EXPECT_TRUE(queued.Finish().ok());
  server->Shutdown();
}

// Latencies and deadlines are differences of the monotonic clock's times.
TEST(InferenceServiceClock, SettingTheWallClockMovesNoLatencyAndNoDeadline) {
  RepositoryDirectory directory;
  directory.Write("m/config.pbtxt",
                  IdentityConfig("TYPE_FP32", "[4]",
                                 "max_batch_size: 1 dynamic_batching { default_queue_policy { "
                                 "default_timeout_microseconds: 1000000 allow_timeout_override: true } }"));
  FakeClock clock;
  const Devices devices(NewCpuBackend());
  const auto metrics = NewMetrics("127.0.0.1:0", clock);
  ASSERT_TRUE(metrics.ok());
  const auto repository = NewModelRepository({.directories = {directory.path()}, .clock = &clock}, devices, **metrics);
  ASSERT_TRUE(repository.ok());
  (*repository)->Load([] {});
  InferenceService service(clock);
  service.Serve(**repository);
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = GRPCInferenceService::NewStub(server->InProcessChannel({}));

  const std::shared_ptr<ServingModel> model = *(*repository)->Find("m", "");
  model->batcher->HoldUntilQueued(2);
  InferCallInFlight queued(*stub, InferRequest("m"));
  Await([&] { return model->batcher->queued() == 1; });
  clock.JumpWall(absl::Hours(24));
  InferCallInFlight after(*stub, InferRequest("m"));
  EXPECT_TRUE(queued.Finish().ok());
  EXPECT_TRUE(after.Finish().ok());
  EXPECT_EQ(queued.response().parameters().at("swizzle_queue_us").int64_param(), 0);

  const ModelStatisticsTotals totals = model->metrics->Statistics();
  EXPECT_EQ(totals.success.count, 2);
  EXPECT_EQ(totals.success.total, absl::ZeroDuration());
  EXPECT_EQ(totals.queue.total, absl::ZeroDuration());
  EXPECT_EQ(totals.last_inference_ms, absl::ToUnixMillis(clock.WallNow()));
  EXPECT_THAT((*metrics)->Text(), HasSubstr("swizzle_request_duration_seconds_sum{model=\"m\",version=\"1\"} 0\n"));
  server->Shutdown();
}

TEST(InferenceServiceWithoutModels, AnswersUnavailableWhileLoading) {
  InferenceService service;
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = GRPCInferenceService::NewStub(server->InProcessChannel({}));
  {
    grpc::ClientContext context;
    inference::ServerReadyResponse response;
    ASSERT_TRUE(stub->ServerReady(&context, {}, &response).ok());
    EXPECT_FALSE(response.ready());
  }
  {
    grpc::ClientContext context;
    inference::ServerLiveResponse response;
    ASSERT_TRUE(stub->ServerLive(&context, {}, &response).ok());
    EXPECT_TRUE(response.live());
  }
  grpc::ClientContext context;
  inference::ModelInferResponse response;
  const grpc::Status status = stub->ModelInfer(&context, InferRequest("m"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the server is loading its models");
  server->Shutdown();
}

}  // namespace
}  // namespace swizzle
