#include "server/rpc/stream_infer.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include <thread>

#include "tests/server/served_models.h"

namespace swizzle {
namespace {

using inference::ModelInferRequest;
using inference::ModelStreamInferResponse;
using ::testing::HasSubstr;

class StreamInferTest : public ServedModels {
 protected:
  StreamInferTest() {
    directory_.Write("echo/config.pbtxt", IdentityConfig());
    directory_.Write("other/config.pbtxt", IdentityConfig());
    directory_.Write("many/config.pbtxt",
                     IdentityConfig("TYPE_FP32", "[4]",
                                    "max_batch_size: 8 dynamic_batching { } model_transaction_policy { decoupled: true "
                                    "} parameters { key: 'repeat_count' value { string_value: '100000' } }"));
    directory_.Write("large/config.pbtxt", IdentityConfig("TYPE_FP32", "[1048576]", "max_batch_size: 8"));
  }

  // One stream of a client.
  class Stream {
   public:
    explicit Stream(inference::GRPCInferenceService::Stub& stub, bool errors_end_it = false) {
      if (errors_end_it) context_.AddMetadata("triton_grpc_error", "true");
      stream_ = stub.ModelStreamInfer(&context_);
    }
    grpc::ClientContext& context() { return context_; }
    bool Send(ModelInferRequest request, const std::string& id) {
      request.set_id(id);
      return stream_->Write(request);
    }
    void SendNoMore() { stream_->WritesDone(); }
    // The id, and where it is an error that; "end" after the last.
    std::string Next() {
      if (!stream_->Read(&answer_)) return "end";
      const std::string& error = answer_.error_message();
      return answer_.infer_response().id() + (error.empty() ? "" : ": " + error);
    }
    const ModelStreamInferResponse& answer() const { return answer_; }
    grpc::Status Finish() { return stream_->Finish(); }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<ModelInferRequest, ModelStreamInferResponse>> stream_;
    ModelStreamInferResponse answer_;
  };

  bool MetricsHave(const std::string& line) const {
    return server_->metrics().Text().find(line + "\n") != std::string::npos;
  }
};

TEST_F(StreamInferTest, AnswersInTheOrderOfRequests) {
  Serve();
  BatcherOf("echo").HoldUntilQueued(2);
  Stream stream(*stub_);
  ASSERT_TRUE(stream.Send(InferRequest("echo", 2), "first"));
  ASSERT_TRUE(stream.Send(InferRequest("other"), "second"));
  Await([&] { return MetricsHave("swizzle_requests_total{code=\"OK\",model=\"other\",version=\"1\"} 1"); });
  ASSERT_TRUE(stream.Send(InferRequest("echo"), "third"));
  EXPECT_EQ(stream.Next(), "first");
  const inference::ModelInferResponse& answer = stream.answer().infer_response();
  EXPECT_EQ(answer.model_name(), "echo");
  EXPECT_EQ(answer.raw_output_contents(0), InferRequest("echo", 2).raw_input_contents(0));
  EXPECT_EQ(stream.Next(), "second");
  EXPECT_EQ(stream.Next(), "third");
  stream.SendNoMore();
  EXPECT_EQ(stream.Next(), "end");
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(StreamInferTest, LargeAndCompressedMessagesAreAnswered) {
  Serve();
  ModelInferRequest large = InferRequest("large");
  large.mutable_inputs(0)->set_shape(1, 1 << 20);
  large.mutable_raw_input_contents(0)->assign(4 << 20, 'x');
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_NONE, GRPC_COMPRESS_GZIP}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    const auto stream = stub_->ModelStreamInfer(&context);
    ModelStreamInferResponse answer;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream->Write(large));
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(stream->Read(&answer)) << stream->Finish().error_message();
      EXPECT_EQ(answer.infer_response().raw_output_contents(0), large.raw_input_contents(0));
    }
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
  }
}

TEST_F(StreamInferTest, WhatIsWrongWithOneIsItsAnswer) {
  Serve();
  Stream stream(*stub_);
  ModelInferRequest wrong = InferRequest("echo");
  wrong.mutable_raw_input_contents(0)->append("more");
  ASSERT_TRUE(stream.Send(InferRequest("echo"), "1"));
  ASSERT_TRUE(stream.Send(wrong, "2"));
  ASSERT_TRUE(stream.Send(InferRequest("nobody"), "3"));
  ASSERT_TRUE(stream.Send(InferRequest("echo"), "4"));
  stream.SendNoMore();
  EXPECT_EQ(stream.Next(), "1");
  EXPECT_EQ(stream.Next(), "2: input 'X' of model 'echo' has 20 bytes; FP32 [1,4] needs 16");
  EXPECT_EQ(stream.Next(), "3: there is no model 'nobody'");
  EXPECT_EQ(stream.answer().infer_response().parameters().at("swizzle_status_code").int64_param(), 5);
  EXPECT_EQ(stream.Next(), "4");
  EXPECT_EQ(stream.Next(), "end");
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_TRUE(MetricsHave("swizzle_requests_total{code=\"INVALID_ARGUMENT\",model=\"echo\",version=\"1\"} 1"));
}

TEST_F(StreamInferTest, AnErrorEndsTheStreamOfWhoAsksForIt) {
  Serve();
  Stream stream(*stub_, true);
  BatcherOf("echo").HoldUntilQueued(100);
  ASSERT_TRUE(stream.Send(InferRequest("other"), "1"));
  ASSERT_TRUE(stream.Send(InferRequest("nobody"), "2"));
  stream.Send(InferRequest("echo"), "3");  // the stream may have ended before
  EXPECT_EQ(stream.Next(), "1");
  EXPECT_EQ(stream.Next(), "end");
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "there is no model 'nobody'");
}

TEST_F(StreamInferTest, WhatIsNoMessageEndsTheStreamAfterTheAnswersBefore) {
  Serve();
  grpc::ClientContext context;
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return ok;
  };
  const auto call = stub.PrepareCall(&context, "/inference.GRPCInferenceService/ModelStreamInfer", &queue);
  call->StartCall(&context);
  EXPECT_TRUE(next());
  for (const std::string& text : {InferRequest("echo").SerializeAsString(), std::string("\xff\xff no message")}) {
    const grpc::Slice slice(text);
    call->Write(grpc::ByteBuffer(&slice, 1), &queue);
    EXPECT_TRUE(next());
  }
  grpc::ByteBuffer answer;
  call->Read(&answer, &queue);
  EXPECT_TRUE(next()) << "the first is answered";
  call->Read(&answer, &queue);
  EXPECT_FALSE(next());
  grpc::Status status;
  call->Finish(&status, &queue);
  next();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("cannot be parsed as a ModelInferRequest"));
  EXPECT_TRUE(MetricsHave("swizzle_refused_calls_total{reason=\"malformed\"} 1"));
}

TEST_F(StreamInferTest, NoMoreIsReadThanMayBeUnanswered) {
  ServerOptions options;
  options.rpc.max_stream_requests = 3;
  Serve(options);
  BatcherOf("echo").HoldUntilQueued(100);
  Stream full(*stub_), other(*stub_);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(full.Send(InferRequest("echo"), std::to_string(i)));
  Await([&] { return BatcherOf("echo").queued() == 3; });
  ASSERT_TRUE(other.Send(InferRequest("other"), "after them on the connection"));
  EXPECT_EQ(other.Next(), "after them on the connection");
  EXPECT_EQ(BatcherOf("echo").queued(), 3);
  BatcherOf("echo").HoldUntilQueued(0);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(full.Next(), std::to_string(i));
}

// Each stream may have one request; beyond that those of a connection share what it may have of calls.
TEST_F(StreamInferTest, StreamsOfAConnectionShareWhatItMayHave) {
  ServerOptions options;
  options.rpc.max_streams = 4;
  Serve(options);
  BatcherOf("echo").HoldUntilQueued(100);
  Stream first(*stub_), second(*stub_), other(*stub_);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(first.Send(InferRequest("echo"), ""));
  Await([&] { return BatcherOf("echo").queued() == 4; });
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(second.Send(InferRequest("echo"), ""));
  Await([&] { return BatcherOf("echo").queued() == 5; });
  ASSERT_TRUE(other.Send(InferRequest("other"), "o"));
  EXPECT_EQ(other.Next(), "o");
  EXPECT_EQ(BatcherOf("echo").queued(), 5);
  BatcherOf("echo").HoldUntilQueued(0);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(first.Next() + second.Next(), "");
}

TEST_F(StreamInferTest, BytesInFlightCountAsOfCalls) {
  ServerOptions options;
  options.rpc.max_connection_inflight_bytes = 20000;
  Serve(options);
  BatcherOf("echo").HoldUntilQueued(100);
  Stream stream(*stub_);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(stream.Send(InferRequest("echo"), std::to_string(i)));
  const std::string refused = "swizzle_refused_calls_total{reason=\"inflight_bytes\"} 2\n";
  Await([&] { return server_->metrics().Text().find(refused) != std::string::npos; });
  BatcherOf("echo").HoldUntilQueued(0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(stream.Next(), std::to_string(i));
  EXPECT_THAT(stream.Next(), HasSubstr("4: the connection has requests and responses of 16384 bytes in flight"));
  EXPECT_THAT(stream.Next(), HasSubstr("5: the connection has"));
}

TEST_F(StreamInferTest, CancellingTheStreamCancelsWhatIsQueued) {
  Serve();
  BatcherOf("echo").HoldUntilQueued(100);
  Stream stream(*stub_);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream.Send(InferRequest("echo"), ""));
  Await([&] { return BatcherOf("echo").queued() == 3; });
  stream.context().TryCancel();
  Await([&] { return BatcherOf("echo").queued() == 0; });
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  Await([&] { return MetricsHave("swizzle_requests_total{code=\"CANCELLED\",model=\"echo\",version=\"1\"} 3"); });
  Await([&] { return MetricsHave("swizzle_inflight_bytes 0"); });
}

TEST_F(StreamInferTest, TheDeadlineOfTheStreamIsItsRequests) {
  Serve();
  BatcherOf("echo").HoldUntilQueued(100);
  grpc::ClientContext context;
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(1);
  context.set_deadline(deadline);
  const auto stream = stub_->ModelStreamInfer(&context);
  stream->Write(InferRequest("echo"));
  Await([&] { return BatcherOf("echo").queued() == 1 || std::chrono::system_clock::now() > deadline; });
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  Await([&] { return BatcherOf("echo").queued() == 0; });
}

TEST_F(StreamInferTest, AShutdownAnswersWhatWasReadAndEndsStreams) {
  Serve();
  BatcherOf("echo").HoldUntilQueued(100);
  Stream busy(*stub_), idle(*stub_);
  ASSERT_TRUE(idle.Send(InferRequest("other"), "done"));
  EXPECT_EQ(idle.Next(), "done");
  ASSERT_TRUE(busy.Send(InferRequest("echo"), "1"));
  ASSERT_TRUE(busy.Send(InferRequest("echo"), "2"));
  Await([&] { return BatcherOf("echo").queued() == 2; });
  std::thread drain([this] { server_->Drain(); });
  EXPECT_EQ(idle.Next(), "end");
  EXPECT_EQ(busy.Next(), "1");
  EXPECT_EQ(busy.Next(), "2");
  EXPECT_EQ(busy.Next(), "end");
  for (Stream* const stream : {&busy, &idle}) {
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(status.error_message(), "the server is shutting down");
  }
  drain.join();
}

TEST_F(StreamInferTest, StreamsEndInOrderBeforeTheirConnectionDoes) {
  ServerOptions options;
  options.rpc.connection_age = absl::Seconds(2);
  options.rpc.connection_grace = absl::Seconds(10);
  Serve(options);
  Stream stream(*stub_);
  ASSERT_TRUE(stream.Send(InferRequest("echo"), "answered"));
  EXPECT_EQ(stream.Next(), "answered");
  EXPECT_EQ(stream.Next(), "end");
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the connection is as old as it may be; open another stream");
}

TEST_F(StreamInferTest, AnswersEndAtTheDeadlineOfTheirRequest) {
  directory_.Write("slow/config.pbtxt",
                   IdentityConfig("TYPE_FP32", "[4]",
                                  "max_batch_size: 8 model_transaction_policy { decoupled: true } parameters { key: "
                                  "'repeat_count' value { string_value: '1000000' } } parameters { key: "
                                  "'execute_delay_ms' value { string_value: '1' } }"));
  ServerOptions options;
  options.rpc.max_deadline = absl::Seconds(2);  // the request is to run before
  Serve(options);
  Stream stream(*stub_);
  ASSERT_TRUE(stream.Send(InferRequest("slow"), "m"));
  int answers = 0;
  std::string next;
  while ((next = stream.Next()) == "m") ++answers;
  EXPECT_LT(answers, 1000000);
  EXPECT_THAT(next, HasSubstr("m: the request's deadline passed while it ran"));
}

// Answers that are not read have room to a bound; then their request ends. Once they are read, others have room.
TEST_F(StreamInferTest, AnswersThatNobodyReadsAreBounded) {
  ServerOptions options;
  options.rpc.max_connection_inflight_bytes = 1 << 20;
  Serve(options);
  Stream stream(*stub_);
  ASSERT_TRUE(stream.Send(InferRequest("many"), "m"));
  Await([&] {
    return MetricsHave("swizzle_requests_total{code=\"RESOURCE_EXHAUSTED\",model=\"many\",version=\"1\"} 1");
  });
  int answers = 0;
  std::string next;
  while ((next = stream.Next()) == "m") ++answers;
  EXPECT_GT(answers, 100);
  EXPECT_LT(answers, 100000);
  EXPECT_THAT(next, HasSubstr("m: the connection has requests and responses of"));
  ASSERT_TRUE(stream.Send(InferRequest("echo"), "e"));
  EXPECT_EQ(stream.Next(), "e");
}

TEST_F(StreamInferTest, MetricsTellOfStreamsAndOfWhatWaitsOnThem) {
  Serve();
  EXPECT_TRUE(MetricsHave("swizzle_infer_streams 0"));
  BatcherOf("echo").HoldUntilQueued(2);
  Stream stream(*stub_), idle(*stub_);
  ASSERT_TRUE(idle.Send(InferRequest("other"), "read"));
  EXPECT_EQ(idle.Next(), "read");
  ASSERT_TRUE(stream.Send(InferRequest("echo"), "1"));
  ASSERT_TRUE(stream.Send(InferRequest("other"), "2"));
  Await([&] {
    return MetricsHave("swizzle_infer_stream_requests{state=\"running\"} 1") &&
           MetricsHave("swizzle_infer_stream_requests{state=\"unread\"} 1");
  });
  EXPECT_TRUE(MetricsHave("swizzle_infer_streams 2"));
  ASSERT_TRUE(stream.Send(InferRequest("echo"), "3"));
  for (const char* id : {"1", "2", "3"}) EXPECT_EQ(stream.Next(), id);
  Await([&] {
    return MetricsHave("swizzle_infer_stream_requests{state=\"running\"} 0") &&
           MetricsHave("swizzle_infer_stream_requests{state=\"unread\"} 0");
  });
  idle.context().TryCancel();
  Await([&] { return MetricsHave("swizzle_infer_streams 1"); });
  stream.SendNoMore();
  EXPECT_EQ(stream.Next(), "end");
  Await([&] { return MetricsHave("swizzle_infer_streams 0"); });
}

// Whoever does not read is not read from, and then ended.
TEST_F(StreamInferTest, WhoDoesNotReadIsEnded) {
  ServerOptions options;
  options.rpc.response_timeout = absl::Milliseconds(200);
  Serve(options);
  Stream stream(*stub_);
  ModelInferRequest large = InferRequest("large");
  large.mutable_inputs(0)->set_shape(1, 1 << 20);
  large.mutable_raw_input_contents(0)->assign(4 << 20, 'x');
  while (stream.Send(large, "")) {
  }
  Await([&] { return MetricsHave("swizzle_refused_calls_total{reason=\"slow_reader\"} 1"); });
  Await([&] { return MetricsHave("swizzle_inflight_bytes 0"); });
}

}  // namespace
}  // namespace swizzle
