#include "model_loader/semantics/window_axis.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::kInvalid;

TEST(WindowAxisTest, CountsOutputs) {
  EXPECT_EQ((WindowAxis{5, 3, 1, 1}).Output(), 3);
  EXPECT_EQ((WindowAxis{5, 3, 2, 1, 1, 1}).Output(), 3);
  EXPECT_EQ((WindowAxis{5, 3, 1, 2}).Output(), 1);
  EXPECT_EQ((WindowAxis{5, 3, 1, 3}).Output(), 0) << "it does not fit";
  EXPECT_LT((WindowAxis{5, 3, 1, 3}).Room(), 0);
}

TEST(WindowAxisTest, PadsForTheSameExtent) {
  WindowAxis axis{5, 4, 2, 1};
  axis.PadToSame(AutoPad::kSameUpper);
  EXPECT_EQ(axis.Output(), 3);
  EXPECT_EQ(axis.before, 1);
  EXPECT_EQ(axis.after, 2);
  axis.PadToSame(AutoPad::kSameLower);
  EXPECT_EQ(axis.before, 2);
  EXPECT_EQ(axis.after, 1);
  WindowAxis wide{5, 1, 3, 1};
  wide.PadToSame(AutoPad::kSameUpper);
  EXPECT_EQ(wide.before + wide.after, 0);
}

TEST(WindowAxisTest, CutWindowsCountUnlessTheyBeginInThePadding) {
  WindowAxis cut{6, 3, 2, 1};
  EXPECT_TRUE(cut.HasCutWindow());
  EXPECT_EQ(cut.Output(), 2);
  EXPECT_TRUE(cut.PadForCutWindow());
  EXPECT_EQ(cut.Output(), 3);
  EXPECT_FALSE(cut.PadForCutWindow());
  WindowAxis outside{4, 2, 3, 1, 0, 3};  // a third one would begin at 6
  EXPECT_FALSE(outside.HasCutWindow());
  EXPECT_FALSE((WindowAxis{2, 3, 2, 1}).HasCutWindow()) << "it does not fit";
}

TEST(WindowAxisTest, WindowsTouchTheirInput) {
  EXPECT_TRUE((WindowAxis{5, 3, 1, 1, 2, 2}).AllTouch());
  EXPECT_FALSE((WindowAxis{5, 3, 1, 1, 3, 0}).AllTouch()) << "the first lies in the padding";
  EXPECT_FALSE((WindowAxis{5, 3, 1, 1, 0, 3}).AllTouch()) << "the last does";
  EXPECT_TRUE((WindowAxis{2, 2, 1, 3, 3, 0}).Touches(0)) << "with its second tap";
  EXPECT_FALSE((WindowAxis{1, 2, 1, 3, 2, 2}).Touches(0)) << "around the input";
  EXPECT_TRUE((WindowAxis{5, 3, 1, 1}).InRange());
  EXPECT_FALSE((WindowAxis{5, 3, 0, 1}).InRange());
  EXPECT_FALSE((WindowAxis{5, 3, 1, 1, -1, 0}).InRange());
  EXPECT_FALSE((WindowAxis{5, kMaxWindowExtent + 1, 1, 1}).InRange());
}

TEST(WindowAxisTest, KnowsAutoPad) {
  const auto mode = [](const std::string& text) {
    return AutoPadOf(Node{"Conv", "", "node", {}, {}, {{"auto_pad", text}}});
  };
  EXPECT_EQ(*AutoPadOf(Node()), AutoPad::kExplicit);
  EXPECT_EQ(*mode("SAME_LOWER"), AutoPad::kSameLower);
  EXPECT_EQ(*mode("VALID"), AutoPad::kValid);
  EXPECT_THAT(mode("same").status(), IsError(kInvalid, "Conv node 'node': auto_pad 'same'"));
}

TEST(WindowAxisTest, PadsOfSomeAxesAreThoseOfAll) {
  EXPECT_THAT(*PadsOfAll({1, 2, 3, 4}, {2, -1}, 4), ElementsAre(0, 0, 1, 2, 0, 0, 3, 4));
  EXPECT_THAT(*PadsOfAll({}, {}, 1), ElementsAre(0, 0));
  EXPECT_THAT(PadsOfAll({1, 2, 3}, {0, 1}, 2).status(), IsError(kInvalid, "3 amounts of padding for 2 dimensions"));
  EXPECT_THAT(PadsOfAll({1, 2}, {2}, 2).status(), IsError(kInvalid, "axis 2"));
}

}  // namespace
}  // namespace swizzle
