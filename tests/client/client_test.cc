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

class ClientTest : public ::testing::Test {
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

constexpr RetryOptions kThreeAttempts{.max_attempts = 3, .initial_backoff = absl::Microseconds(1)};

class RetriesTest : public ClientTest {
 protected:
  RetriesTest() { client_ = NewClient({.address = server_.address(), .retries = kThreeAttempts}); }
};

TEST_F(ClientTest, TriesOnceUnlessItIsTold) {
  server_.refusals = 1;
  const absl::Status status = client_->Infer(EchoRequest()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "not now");
  EXPECT_EQ(AttemptsOf(status), 1);
  EXPECT_EQ(server_.infer_calls, 1);
}

TEST_F(RetriesTest, TriesAgainWhatIsUnavailable) {
  server_.refusals = 2;
  const auto result = client_->Infer(EchoRequest());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->attempts, 3);
  EXPECT_EQ(server_.infer_calls, 3);
  EXPECT_EQ(client_->Infer(EchoRequest())->attempts, 1);
}

TEST_F(RetriesTest, SaysHowOftenItTried) {
  server_.refusals = 100;
  const absl::Status status = client_->Infer(EchoRequest()).status();
  EXPECT_EQ(status.message(), "not now (after 3 attempts)");
  EXPECT_EQ(AttemptsOf(status), 3);
  EXPECT_EQ(server_.infer_calls, 3);
}

TEST_F(RetriesTest, TriesNothingElseAgain) {
  server_.refusal = grpc::StatusCode::INTERNAL;
  server_.refusals = 1;
  EXPECT_EQ(client_->Infer(EchoRequest()).status().code(), absl::StatusCode::kInternal);
  server_.refusal = grpc::StatusCode::RESOURCE_EXHAUSTED;
  server_.refusals = 1;
  EXPECT_EQ(client_->Infer(EchoRequest()).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server_.infer_calls, 2);
}

TEST_F(RetriesTest, TriesAnOverloadedServerAgainWhereItIsAsked) {
  RetryOptions retries = kThreeAttempts;
  retries.resource_exhausted = true;
  client_ = NewClient({.address = server_.address(), .retries = retries});
  server_.refusal = grpc::StatusCode::RESOURCE_EXHAUSTED;
  server_.refusals = 1;
  EXPECT_EQ(client_->Infer(EchoRequest())->attempts, 2);
}

TEST_F(RetriesTest, GivesOrdersOnce) {
  server_.refusals = 1;
  EXPECT_EQ(client_->LoadModel("echo", absl::Seconds(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server_.order_calls, 1);
}

TEST_F(RetriesTest, HeedsAServerThatWantsNoMore) {
  server_.pushback = "-1";
  server_.refusals = 1;
  EXPECT_EQ(client_->Infer(EchoRequest()).status().code(), absl::StatusCode::kUnavailable);
  server_.pushback = "1";
  server_.refusals = 1;
  EXPECT_EQ(client_->Infer(EchoRequest())->attempts, 2);
}

TEST_F(RetriesTest, LeavesAnAttemptThatHangs) {
  RetryOptions retries = kThreeAttempts;
  retries.attempt_timeout = absl::Milliseconds(50);
  client_ = NewClient({.address = server_.address(), .timeout = absl::Minutes(5), .retries = retries});
  server_.hanging = 1;
  const auto result = client_->Infer(EchoRequest());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->attempts, 1);
}

TEST_F(RetriesTest, TriesAgainAsynchronously) {
  server_.refusals = 2;
  std::promise<absl::StatusOr<InferResult>> done;
  client_->InferAsync(EchoRequest(),
                      [&done](absl::StatusOr<InferResult> answer) { done.set_value(std::move(answer)); });
  const absl::StatusOr<InferResult> result = done.get_future().get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->attempts, 3);
  server_.refusals = 100;
  std::promise<absl::Status> failed;
  client_->InferAsync(EchoRequest(),
                      [&failed](const absl::StatusOr<InferResult>& answer) { failed.set_value(answer.status()); });
  EXPECT_EQ(AttemptsOf(failed.get_future().get()), 3);
}

TEST_F(RetriesTest, CancelsAWaitForTheNextAttempt) {
  const RetryOptions patient{.max_attempts = 2, .initial_backoff = absl::Hours(2000), .max_backoff = absl::Hours(2000)};
  client_ = NewClient({.address = server_.address(), .timeout = absl::Hours(2500), .retries = patient});
  server_.refusals = 1;
  std::promise<absl::Status> done;
  const auto call = client_->InferAsync(
      EchoRequest(), [&done](const absl::StatusOr<InferResult>& answer) { done.set_value(answer.status()); });
  while (server_.infer_calls == 0) absl::SleepFor(absl::Milliseconds(1));
  call->Cancel();
  EXPECT_EQ(done.get_future().get().code(), absl::StatusCode::kCancelled);
}

TEST(SeveralServersTest, GetCallsInTurnAndOneMayGo) {
  auto first = std::make_unique<FakeServer>();
  FakeServer second;
  const auto client = NewClient({.address = first->address() + "," + second.address(), .retries = kThreeAttempts});
  ASSERT_TRUE(client->WaitReady("", absl::Minutes(5)).ok());
  while (first->infer_calls == 0 || second.infer_calls == 0) ASSERT_TRUE(client->Infer(EchoRequest()).ok());
  first.reset();
  for (int i = 0; i < 20; ++i) {
    const auto result = client->Infer(EchoRequest());
    ASSERT_TRUE(result.ok()) << result.status();
  }
}

TEST(SeveralServersTest, HaveToBeNumbers) {
  const auto client = NewClient({.address = "here:1,there:2"});
  const absl::Status status = client->Live().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'here:1'"));
}

TEST(CompressionTest, IsLeftOutWhereAServerDoesNotTakeIt) {
  FakeServer server(/*takes_gzip=*/false);
  const ClientOptions options{.address = server.address(), .gzip = true};
  const auto end_of_stream = [](Client& client) {
    std::promise<absl::Status> end;
    const auto stream =
        client.OpenStream({[](const StreamAnswer&) {}, [&end](const absl::Status& status) { end.set_value(status); }});
    EXPECT_TRUE(stream->Send(EchoRequest()).ok());
    stream->HalfClose();
    return end.get_future().get();
  };
  EXPECT_EQ(end_of_stream(*NewClient(options)).code(), absl::StatusCode::kUnimplemented);  // it was compressed
  const auto client = NewClient(options);
  const auto result = client->Infer(EchoRequest());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->attempts, 1);
  EXPECT_TRUE(end_of_stream(*client).ok());
}

TEST(CompressionTest, IsUsedWhereAServerTakesIt) {
  FakeServer server;
  const auto result = NewClient({.address = server.address(), .gzip = true})->Infer(EchoRequest());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->outputs[0].Values<float>(), ElementsAre(1, 2, 3));
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
