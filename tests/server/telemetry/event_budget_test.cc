#include "server/telemetry/event_budget.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

TEST(EventBudgetTest, LeavesOutWhatIsTooMuchInASecondAndCountsIt) {
  EventBudget budget(2);
  const Instant start = Instant() + absl::Hours(1);
  EXPECT_TRUE(budget.Ask(start).may_log);
  EXPECT_TRUE(budget.Ask(start).may_log);
  EXPECT_FALSE(budget.Ask(start).may_log);
  EXPECT_FALSE(budget.Ask(start + absl::Milliseconds(499)).may_log);
  const EventBudget::Answer next = budget.Ask(start + absl::Milliseconds(500));
  EXPECT_TRUE(next.may_log);
  EXPECT_EQ(next.left_out, 2);
  EXPECT_EQ(budget.Ask(start + absl::Seconds(1)).left_out, 0) << "they were told of";
}

}  // namespace
}  // namespace swizzle
