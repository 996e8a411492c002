#include "server/tracing/trace_context.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace swizzle {
namespace {

constexpr char kTraceparent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(ParseTraceContext, TakesWhatTheStandardWrites) {
  const auto context = ParseTraceContext(kTraceparent, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  ASSERT_TRUE(context);
  EXPECT_EQ(Hex(context->trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(Hex(context->span), "b7ad6b7169203331");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->state, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
}

TEST(ParseTraceContext, OnlyTheLowestFlagSaysThatItIsRecorded) {
  std::string traceparent = kTraceparent;
  traceparent.replace(53, 2, "00");
  EXPECT_FALSE(ParseTraceContext(traceparent, "")->sampled);
  traceparent.replace(53, 2, "fe");
  EXPECT_FALSE(ParseTraceContext(traceparent, "")->sampled);
  traceparent.replace(53, 2, "ff");
  EXPECT_TRUE(ParseTraceContext(traceparent, "")->sampled);
}

TEST(ParseTraceContext, LaterVersionsMayGoOn) {
  std::string traceparent = kTraceparent;
  traceparent.replace(0, 2, "cc");
  EXPECT_TRUE(ParseTraceContext(traceparent, ""));
  EXPECT_TRUE(ParseTraceContext(traceparent + "-what-comes-later", ""));
  EXPECT_FALSE(ParseTraceContext(traceparent + "x", ""));
  EXPECT_FALSE(ParseTraceContext(std::string(kTraceparent) + "-more", "")) << "version 0 is as long as it is";
}

TEST(ParseTraceContext, WhatIsWrongIsNoContext) {
  for (const char* wrong : {
           "",
           "00",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",  // the one version that may not be
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",  // no trace
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",  // no span
           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",  // upper case
           "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",  // no digit
           "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",  // no dash
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-\xff\xff",
       }) {
    EXPECT_FALSE(ParseTraceContext(wrong, "")) << wrong;
  }
}

TEST(ParseTraceContext, StateThatIsNoneIsLeftOut) {
  EXPECT_EQ(ParseTraceContext(kTraceparent, std::string(512, 'a'))->state.size(), 512u);
  EXPECT_EQ(ParseTraceContext(kTraceparent, std::string(513, 'a'))->state, "");
  EXPECT_EQ(ParseTraceContext(kTraceparent, "a=\xff")->state, "");
  EXPECT_EQ(ParseTraceContext(kTraceparent, "a=b\n")->state, "");
}

TEST(NewTraceIdTest, IdsDiffer) {
  std::set<TraceId> traces;
  std::set<SpanId> spans;
  for (int i = 0; i < 1000; ++i) {
    traces.insert(NewTraceId());
    spans.insert(NewSpanId());
  }
  EXPECT_EQ(traces.size(), 1000u);
  EXPECT_EQ(spans.size(), 1000u);
}

TEST(ChanceTest, NeverAndAlwaysAreExact) {
  int hits = 0;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_FALSE(Chance(0.0));
    EXPECT_TRUE(Chance(1.0));
    hits += Chance(0.25) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 2500, 400);  // nine standard deviations
}

}  // namespace
}  // namespace swizzle
