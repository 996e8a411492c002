#include "server/rpc/response_watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

TEST(ResponseWatch, EndsWhatIsLateAndNothingElse) {
  FakeClock clock;
  ResponseWatch watch(absl::Seconds(10), clock);
  ResponseWatch::Response first, second, third;
  std::vector<int> ended;
  watch.Start(first, [&] { ended.push_back(1); });
  clock.Advance(absl::Seconds(5));
  watch.Start(second, [&] { ended.push_back(2); });
  watch.Start(third, [&] { ended.push_back(3); });
  watch.EndLate();
  EXPECT_TRUE(ended.empty());
  clock.Advance(absl::Seconds(5));
  watch.EndLate();
  EXPECT_EQ(ended, std::vector{1});
  watch.Stop(second);
  clock.Advance(absl::Seconds(5));
  watch.EndLate();
  watch.EndLate();
  EXPECT_EQ(ended, (std::vector{1, 3}));
  EXPECT_EQ(watch.ended(), 2);
  EXPECT_TRUE(first.ending() && third.ending());
  EXPECT_FALSE(second.ending());
  watch.Stop(first);  // as every call does at its end
  watch.Stop(third);
}

TEST(ResponseWatch, AResponseThatWasNeverStartedCanStop) {
  ResponseWatch watch(absl::Seconds(10), Clock::Real());
  ResponseWatch::Response response;
  watch.Stop(response);
  watch.EndLate();
  EXPECT_EQ(watch.ended(), 0);
}

}  // namespace
}  // namespace swizzle
