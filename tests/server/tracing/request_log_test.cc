#include "server/tracing/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

// What is written, as JSON; until the log ends.
class Lines {
 public:
  RequestLog::Sink Sink() {
    return [this](std::string_view message, std::span<const LogField> fields) {
      lines_.push_back(nlohmann::json::parse("{" + FormatLogEvent(LogFormat::kJson, message, fields) + "}"));
    };
  }
  const std::vector<nlohmann::json>& lines() const { return lines_; }

 private:
  std::vector<nlohmann::json> lines_;
};

std::shared_ptr<SampledRequest> Answered(FakeClock& clock) {
  auto request = std::make_shared<SampledRequest>();
  request->logged = true;
  request->start = clock.Now();
  request->end = request->start + absl::Microseconds(700);
  request->model = "m";
  request->version = 3;
  request->rows = 2;
  request->stages = {.queued = request->start + absl::Microseconds(10),
                     .begun = request->start + absl::Microseconds(60),
                     .input = absl::Microseconds(1),
                     .compute = absl::Microseconds(500),
                     .output = absl::Microseconds(2),
                     .batch_rows = 5};
  return request;
}

TEST(RequestLogTest, ALineSaysWhoWhatAndHowLong) {
  FakeClock clock;
  Lines lines;
  {
    RequestLog log(1.0, clock, lines.Sink());
    auto request = Answered(clock);
    request->SetId("id \"1\"\n");
    log.Write(request);
  }
  ASSERT_EQ(lines.lines().size(), 1u);
  EXPECT_EQ(lines.lines()[0],
            nlohmann::json::parse(R"({"message":"request","model":"m","version":3,"id":"id \"1\"\n","code":"OK",
                                      "rows":2,"queue_us":50,"compute_us":500,"batch_size":5,"total_us":700})"));
}

TEST(RequestLogTest, WhatNeverRanHasNoStages) {
  FakeClock clock;
  Lines lines;
  {
    RequestLog log(1.0, clock, lines.Sink());
    auto request = Answered(clock);
    request->stages = std::nullopt;
    request->code = StatusCode::kResourceExhausted;
    request->parent = ParseTraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "");
    request->place.trace = request->parent->trace;
    log.Write(request);
  }
  ASSERT_EQ(lines.lines().size(), 1u);
  EXPECT_EQ(lines.lines()[0]["code"], "RESOURCE_EXHAUSTED");
  EXPECT_EQ(lines.lines()[0]["trace_id"], "0af7651916cd43dd8448eb211c80319c");
  EXPECT_FALSE(lines.lines()[0].contains("queue_us"));
}

TEST(RequestLogTest, IdsAreCutBetweenCharacters) {
  SampledRequest request;
  request.SetId(std::string(127, 'a') + "\xc3\xa9");  // the last character would be halved
  EXPECT_EQ(request.id, std::string(127, 'a'));
  request.SetId(std::string(126, 'a') + "\xc3\xa9" + "b");
  EXPECT_EQ(request.id, std::string(126, 'a') + "\xc3\xa9");
  request.SetId("short");
  EXPECT_EQ(request.id, "short");
}

TEST(RequestLogTest, NoMoreThanABudgetIsWanted) {
  FakeClock clock;
  Lines lines;
  RequestLog log(1.0, clock, lines.Sink());
  for (int i = 0; i < RequestLog::kMostPerSecond; ++i) EXPECT_TRUE(log.Wants());
  EXPECT_FALSE(log.Wants());
  EXPECT_EQ(log.dropped(), 1);
  clock.Advance(absl::Milliseconds(10));  // time for one
  EXPECT_TRUE(log.Wants());
  EXPECT_FALSE(log.Wants());
  clock.Advance(absl::Hours(1));  // saves up no more than a second's
  for (int i = 0; i < RequestLog::kMostPerSecond; ++i) EXPECT_TRUE(log.Wants());
  EXPECT_FALSE(log.Wants());
  EXPECT_EQ(log.dropped(), 3);
}

TEST(RequestLogTest, AReaderThatStopsHoldsUpNobody) {
  FakeClock clock;
  Mutex reading;
  reading.Lock();
  {
    RequestLog log(1.0, clock, [&](std::string_view, std::span<const LogField>) { const MutexLock lock(reading); });
    for (int i = 0; i < RequestLog::kMostWaiting; ++i) {
      clock.Advance(absl::Milliseconds(10));
      ASSERT_TRUE(log.Wants());
      log.Write(Answered(clock));
    }
    clock.Advance(absl::Seconds(1));
    EXPECT_FALSE(log.Wants()) << "what waits for the reader is bounded";
    EXPECT_EQ(log.dropped(), 1);
    reading.Unlock();
  }
}

TEST(RequestLogTest, AShareIsLogged) {
  FakeClock clock;
  RequestLog none(0.0, clock, [](std::string_view, std::span<const LogField>) {});
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(none.Wants());
  EXPECT_EQ(none.dropped(), 0);
}

}  // namespace
}  // namespace swizzle
