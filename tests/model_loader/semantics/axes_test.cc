#include "model_loader/semantics/axes.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::kInvalid;
using Ints = std::vector<int64_t>;

Node NodeWith(const std::map<std::string, Attribute>& attributes) { return {"Op", "", "node", {}, {}, attributes}; }

TEST(AxesTest, CountFromTheFront) {
  EXPECT_EQ(*NormalAxis(0, 3), 0);
  EXPECT_EQ(*NormalAxis(-3, 3), 0);
  EXPECT_EQ(*NormalAxis(-1, 3), 2);
  EXPECT_THAT(NormalAxis(3, 3).status(), IsError(kInvalid, "axis 3 is not one of 3 dimensions"));
  EXPECT_THAT(NormalAxis(-4, 3).status(), IsError(kInvalid, "axis -4"));
  EXPECT_THAT(NormalAxis(0, 0).status(), IsError(kInvalid, "not one of 0"));
  EXPECT_THAT(NormalAxis(NodeWith({}), std::numeric_limits<int64_t>::min(), 3).status(),
              IsError(kInvalid, "Op node 'node': axis -9223372036854775808"));
}

TEST(AxesTest, ListsAreSortedAndNameNoneTwice) {
  EXPECT_THAT(*NormalAxes({-1, 0}, 3), ElementsAre(0, 2));
  EXPECT_THAT(*NormalAxes({}, 3), ElementsAre());
  EXPECT_THAT(NormalAxes({0, -3}, 3).status(), IsError(kInvalid, "an axis is given twice"));
}

TEST(AxesTest, PermutationsAreReversedByDefault) {
  EXPECT_THAT(*PermutationOf(NodeWith({}), 3), ElementsAre(2, 1, 0));
  EXPECT_THAT(*PermutationOf(NodeWith({{"perm", Ints{0, 2, 1}}}), 3), ElementsAre(0, 2, 1));
  EXPECT_THAT(*PermutationOf(NodeWith({{"perm", Ints{0, -1, 1}}}), 3), ElementsAre(0, 2, 1));
  for (const Ints& wrong : {Ints{0, 1}, Ints{0, 1, 1}, Ints{0, 1, 3}, Ints{0, 1, 2, 3}, Ints{0, 1, -2}}) {
    EXPECT_THAT(PermutationOf(NodeWith({{"perm", wrong}}), 3).status(),
                IsError(kInvalid, "node 'node': perm is not a permutation of 3 axes"));
  }
}

TEST(AxesTest, FlattenMayJoinAll) {
  EXPECT_EQ(*FlattenAxis(NodeWith({}), 3), 1);
  EXPECT_EQ(*FlattenAxis(NodeWith({{"axis", int64_t{3}}}), 3), 3);
  EXPECT_EQ(*FlattenAxis(NodeWith({{"axis", int64_t{-1}}}), 3), 2);
  EXPECT_THAT(FlattenAxis(NodeWith({{"axis", int64_t{4}}}), 3).status(), IsError(kInvalid, "axis 4"));
}

TEST(AxesTest, SoftmaxRanOverAllThatFollows) {
  EXPECT_THAT(*SoftmaxAxes(NodeWith({}), 13, 4), ElementsAre(3));
  EXPECT_THAT(*SoftmaxAxes(NodeWith({{"axis", int64_t{1}}}), 17, 4), ElementsAre(1));
  EXPECT_THAT(*SoftmaxAxes(NodeWith({}), 12, 4), ElementsAre(1, 2, 3));
  EXPECT_THAT(*SoftmaxAxes(NodeWith({{"axis", int64_t{-1}}}), 11, 4), ElementsAre(3));
  EXPECT_THAT(SoftmaxAxes(NodeWith({{"axis", int64_t{4}}}), 17, 4).status(), IsError(kInvalid, "axis 4"));
}

}  // namespace
}  // namespace swizzle
