#include "server/tracing/trace_sampling.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

TEST(TraceSampling, FollowsTheCaller) {
  TraceSampling none(0.0), all(1.0);
  const TraceContext recorded = {.sampled = true, .state = {}}, unrecorded = {.sampled = false, .state = {}};
  EXPECT_TRUE(none.Samples(recorded));
  EXPECT_FALSE(all.Samples(unrecorded));
  EXPECT_FALSE(none.Samples(std::nullopt));
  EXPECT_TRUE(all.Samples(std::nullopt));
}

TEST(TraceSampling, TheCountIsUsedUp) {
  TraceSampling sampling(1.0);
  sampling.Change({.on = true, .share = 1.0, .count = 2});
  EXPECT_TRUE(sampling.Samples(std::nullopt));
  EXPECT_EQ(sampling.Current().count, 1);
  EXPECT_TRUE(sampling.Samples(TraceContext{.sampled = true, .state = {}}));
  EXPECT_FALSE(sampling.Samples(std::nullopt));
  EXPECT_FALSE(sampling.Samples(TraceContext{.sampled = true, .state = {}}));
  EXPECT_EQ(sampling.Current().count, 0);
}

TEST(TraceSampling, OffTracesNothing) {
  TraceSampling sampling(1.0);
  sampling.Change({.on = false, .share = 1.0, .count = -1});
  EXPECT_FALSE(sampling.on());
  EXPECT_FALSE(sampling.Samples(TraceContext{.sampled = true, .state = {}}));
  EXPECT_EQ(sampling.first(), (TraceSettings{.on = true, .share = 1.0, .count = -1}));
}

}  // namespace
}  // namespace swizzle
