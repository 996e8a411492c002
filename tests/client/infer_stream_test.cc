#include "client/infer_stream.h"

#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"

namespace swizzle::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kStreamedRow[] = {1, 2, 3};

InferRequest Ask(const std::string& model, const std::string& id) {
  InferRequest request;
  request.model = model;
  request.id = id;
  request.inputs = {MakeTensor<float>("x", "FP32", {1, 3}, kStreamedRow)};
  return request;
}

class InferStreamTest : public ::testing::Test {
 protected:
  // What came, as "id", "id!" for an error, and "." where it was the last of its request.
  std::unique_ptr<InferStream> Open() {
    return client_->OpenStream({.on_answer =
                                    [this](StreamAnswer answer) {
                                      const std::lock_guard lock(mutex_);
                                      answers_.push_back(answer.id + (answer.result.ok() ? "" : "!") +
                                                         (answer.last ? "." : ""));
                                      results_.push_back(std::move(answer.result));
                                    },
                                .on_end = [this](const absl::Status& status) { end_.set_value(status); }});
  }

  absl::Status End() { return end_.get_future().get(); }

  FakeServer server_;
  std::mutex mutex_;
  std::vector<std::string> answers_;
  std::vector<absl::StatusOr<InferResult>> results_;
  std::promise<absl::Status> end_;
  std::unique_ptr<Client> client_ = NewClient({.address = server_.address()});
};

TEST_F(InferStreamTest, AnswersInOrderErrorsToo) {
  const auto stream = Open();
  for (const auto& [model, id] : {std::pair("echo", "a"), {"nobody", "b"}, {"thrice", "c"}, {"nobody", "told"}}) {
    ASSERT_TRUE(stream->Send(Ask(model, id)).ok());
  }
  stream->HalfClose();
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(answers_, ElementsAre("a.", "b!.", "c", "c", "c", "c.", "told!."));
  ASSERT_EQ(results_.size(), 7u);
  EXPECT_THAT(results_[0]->outputs[0].Values<float>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(results_[1].status().code(), absl::StatusCode::kUnknown);
  EXPECT_TRUE(results_[5]->outputs.empty());
  EXPECT_EQ(results_[6].status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(results_[6].status().message()), HasSubstr("'nobody' is not known"));
}

TEST_F(InferStreamTest, SendsMoreThanMayWait) {
  const auto stream = Open();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(stream->Send(Ask("echo", std::to_string(i))).ok());
  stream->HalfClose();
  EXPECT_TRUE(End().ok());
  ASSERT_EQ(answers_.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(answers_[i], std::to_string(i) + ".");
}

TEST_F(InferStreamTest, SendsFromACallback) {
  std::unique_ptr<InferStream> stream;
  std::promise<void> opened;
  int left = 50;
  stream = client_->OpenStream({.on_answer =
                                    [&, is_open = opened.get_future().share()](const StreamAnswer&) {
                                      is_open.wait();
                                      if (--left > 0) {
                                        EXPECT_TRUE(stream->Send(Ask("echo", "next")).ok());
                                      } else {
                                        stream->HalfClose();
                                      }
                                    },
                                .on_end = [this](const absl::Status& status) { end_.set_value(status); }});
  opened.set_value();
  ASSERT_TRUE(stream->Send(Ask("echo", "first")).ok());
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(left, 0);
}

TEST_F(InferStreamTest, RefusesWhatComesTooLate) {
  const auto stream = Open();
  InferRequest malformed = Ask("echo", "a");
  malformed.inputs[0].shape = {2, 3};
  EXPECT_EQ(stream->Send(malformed).code(), absl::StatusCode::kInvalidArgument);
  stream->HalfClose();
  EXPECT_EQ(stream->Send(Ask("echo", "a")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(End().ok());
  stream->HalfClose();
  stream->Cancel();
}

TEST_F(InferStreamTest, TellsWhatTheServerEndsItWith) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Send(Ask("echo", "a")).ok());
  ASSERT_TRUE(stream->Send(Ask("end", "b")).ok());
  const absl::Status status = End();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "open another stream");
  EXPECT_THAT(answers_, ElementsAre("a."));
  EXPECT_EQ(stream->Send(Ask("echo", "c")).code(), absl::StatusCode::kUnavailable);
}

TEST_F(InferStreamTest, Cancels) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Send(Ask("slow", "a")).ok());
  server_.slow_started.wait();
  stream->Cancel();
  EXPECT_EQ(End().code(), absl::StatusCode::kCancelled);
}

TEST_F(InferStreamTest, WakesWhoWaitsToSendWhenItEnds) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Send(Ask("slow", "a")).ok());
  server_.slow_started.wait();
  std::promise<void> sending;
  auto sender = std::async(std::launch::async, [&] {
    InferRequest large = Ask("echo", "b");
    large.inputs[0] = Tensor{"x", "FP32", {1, 100000}, std::string(400000, '\0')};
    sending.set_value();
    for (;;) {
      if (const absl::Status status = stream->Send(large); !status.ok()) return status;
    }
  });
  sending.get_future().wait();
  stream->Cancel();
  EXPECT_EQ(sender.get().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(End().code(), absl::StatusCode::kCancelled);
}

TEST_F(InferStreamTest, IsCancelledWhenItIsDropped) {
  auto stream = Open();
  ASSERT_TRUE(stream->Send(Ask("slow", "a")).ok());
  server_.slow_started.wait();
  stream.reset();
  client_.reset();  // waits for the end
  EXPECT_EQ(End().code(), absl::StatusCode::kCancelled);
}

TEST_F(InferStreamTest, EndsAtItsDeadline) {
  ASSERT_TRUE(client_->Live().ok());
  const auto stream =
      client_->OpenStream({[](const StreamAnswer&) {}, [this](const absl::Status& status) { end_.set_value(status); }},
                          absl::Milliseconds(20));
  EXPECT_EQ(End().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace swizzle::client
