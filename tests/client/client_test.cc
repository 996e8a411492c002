#include "client/client.h"

#include <atomic>
#include <future>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"

namespace swizzle::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr float kRow[] = {1, 2, 3};

InferRequest EchoRequest() {
  InferRequest request;
  request.model = "echo";
  request.id = "request 7";
  request.inputs = {MakeTensor<float>("x", "FP32", {1, 3}, kRow)};
  return request;
}

class ClientTest : public testing::Test {
 protected:
  FakeServer server_;
  std::unique_ptr<Client> client_ = NewClient({.address = server_.address()});
};

TEST_F(ClientTest, AsksForHealth) {
  EXPECT_TRUE(client_->Live().value());
  EXPECT_TRUE(client_->Ready().value());
  EXPECT_TRUE(client_->ModelReady("echo").value());
  EXPECT_EQ(client_->ModelReady("nobody").status().code(), absl::StatusCode::kNotFound);
  server_.ready = false;
  EXPECT_FALSE(client_->Ready().value());
  EXPECT_FALSE(client_->ModelReady("echo").value());
}

TEST_F(ClientTest, ListsModels) {
  const auto models = client_->ListModels();
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->size(), 2u);
  EXPECT_EQ(models->at(0).name, "echo");
  EXPECT_EQ(models->at(0).version, "3");
  EXPECT_EQ(models->at(0).state, "READY");
  EXPECT_EQ(models->at(1).reason, "the file ends early");
  server_.lists = false;
  EXPECT_EQ(client_->ListModels().status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(ClientTest, ReadsMetadata) {
  EXPECT_EQ(client_->GetServerMetadata()->name, "fake");
  EXPECT_THAT(client_->GetServerMetadata()->extensions, ElementsAre("statistics"));
  const auto model = client_->GetModelMetadata("echo");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->platform, "fake_platform");
  EXPECT_THAT(model->versions, ElementsAre("3"));
  ASSERT_EQ(model->inputs.size(), 1u);
  EXPECT_EQ(model->inputs[0].name, "x");
  EXPECT_EQ(model->inputs[0].datatype, "FP32");
  EXPECT_THAT(model->inputs[0].shape, ElementsAre(-1, 3));
  EXPECT_THAT(model->properties, ElementsAre(Pair("sparsity", "0.9")));
}

TEST_F(ClientTest, ReadsStatistics) {
  const auto none = client_->GetStatistics();
  ASSERT_TRUE(none.ok()) << none.status();
  ASSERT_EQ(none->size(), 1u);
  EXPECT_EQ(none->front().last_inference, absl::InfinitePast());
  ASSERT_TRUE(client_->Infer(EchoRequest()).ok());
  const auto models = client_->GetStatistics("echo");
  ASSERT_TRUE(models.ok()) << models.status();
  const ModelStatistics& echo = models->front();
  EXPECT_EQ(echo.name, "echo");
  EXPECT_EQ(echo.version, "3");
  EXPECT_EQ(echo.rows, 2);
  EXPECT_EQ(echo.batches, 1);
  EXPECT_EQ(echo.success.count, 1);
  EXPECT_EQ(echo.compute.Mean(), absl::Milliseconds(1));
  EXPECT_EQ(echo.last_inference, absl::FromUnixSeconds(1'700'000'000));
  ASSERT_EQ(echo.batch_sizes.size(), 1u);
  EXPECT_EQ(echo.batch_sizes[0].rows, 2);
  ASSERT_EQ(echo.memory.size(), 1u);
  EXPECT_EQ(echo.memory[0].bytes, 2'500'000);
}

TEST_F(ClientTest, ReadsConfigurations) {
  const auto config = client_->GetModelConfig("echo");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->text, HasSubstr("max_batch_size: 8\n"));
  EXPECT_THAT(config->json, HasSubstr("\"dims\":[3]"));
  EXPECT_EQ(client_->GetModelConfig("nobody").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ClientTest, Infers) {
  const auto result = client_->Infer(EchoRequest());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->version, "3");
  EXPECT_EQ(result->id, "request 7");
  EXPECT_EQ(result->queue, absl::Microseconds(5));
  EXPECT_EQ(result->compute, absl::Microseconds(7));
  ASSERT_EQ(result->outputs.size(), 1u);
  EXPECT_EQ(result->outputs[0].name, "y");
  EXPECT_THAT(result->outputs[0].Values<float>(), ElementsAre(1, 2, 3));
}

TEST_F(ClientTest, RefusesMalformedTensorsBeforeSending) {
  InferRequest request = EchoRequest();
  request.inputs[0].shape = {2, 3};
  EXPECT_EQ(client_->Infer(request).status().code(), absl::StatusCode::kInvalidArgument);
  absl::Status async;
  client_->InferAsync(request, [&async](absl::StatusOr<InferResult> result) { async = result.status(); });
  EXPECT_EQ(async.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server_.infer_calls, 0);
}

TEST_F(ClientTest, RefusesAnswersThatDoNotHoldTogether) {
  InferRequest request = EchoRequest();
  request.model = "broken";
  EXPECT_EQ(client_->Infer(request).status().code(), absl::StatusCode::kInternal);
}

TEST_F(ClientTest, PassesOnTheServersError) {
  InferRequest request = EchoRequest();
  request.model = "nobody";
  const absl::Status status = client_->Infer(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "model 'nobody' is not known");
  EXPECT_FALSE(IsUnreachable(status));
}

TEST_F(ClientTest, InfersAsynchronously) {
  std::promise<absl::StatusOr<InferResult>> done;
  const auto call = client_->InferAsync(
      EchoRequest(), [&done](absl::StatusOr<InferResult> answer) { done.set_value(std::move(answer)); });
  const absl::StatusOr<InferResult> result = done.get_future().get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->outputs[0].Values<float>(), ElementsAre(1, 2, 3));
  call->Cancel();  // too late, and harmless
}

TEST_F(ClientTest, WaitsForCallbacksBeforeItGoes) {
  std::promise<void> answered;
  std::atomic<bool> over = false;
  client_->InferAsync(EchoRequest(), [&](const absl::StatusOr<InferResult>&) {
    answered.set_value();
    absl::SleepFor(absl::Milliseconds(50));
    over = true;
  });
  answered.get_future().wait();
  client_.reset();
  EXPECT_TRUE(over);
}

TEST_F(ClientTest, Cancels) {
  InferRequest request = EchoRequest();
  request.model = "slow";
  std::promise<absl::Status> done;
  const auto call =
      client_->InferAsync(request, [&done](absl::StatusOr<InferResult> answer) { done.set_value(answer.status()); });
  server_.slow_started.wait();
  call->Cancel();
  EXPECT_EQ(done.get_future().get().code(), absl::StatusCode::kCancelled);
}

TEST_F(ClientTest, GivesUpAtTheDeadline) {
  ASSERT_TRUE(client_->Live().ok());
  InferRequest request = EchoRequest();
  request.model = "slow";
  request.timeout = absl::Milliseconds(20);
  const absl::Status status = client_->Infer(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(IsUnreachable(status));
}

TEST_F(ClientTest, WaitsUntilReady) {
  EXPECT_TRUE(client_->WaitReady("", absl::Seconds(10)).ok());
  EXPECT_TRUE(client_->WaitReady("echo", absl::Seconds(10)).ok());
  EXPECT_EQ(client_->WaitReady("nobody", absl::Milliseconds(1)).code(), absl::StatusCode::kNotFound);
  server_.ready = false;
  EXPECT_THAT(std::string(client_->WaitReady("echo", absl::Milliseconds(1)).message()),
              HasSubstr("model 'echo' is not ready"));
}

TEST(UnreachableTest, SaysThatNoServerAnswers) {
  auto server = std::make_unique<FakeServer>();
  const std::string address = server->address();
  server.reset();
  const absl::Status status = NewClient({.address = address})->Live().status();
  EXPECT_TRUE(IsUnreachable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no server answers at " + address));
}

}  // namespace
}  // namespace swizzle::client
