#include "model_loader/sequences/whole.h"

#include <limits>

#include "gtest/gtest.h"

namespace swizzle {
namespace {

constexpr Whole kBatch{1, 1, 0}, kLength{1, 0, 1};

TEST(WholeTest, CalculatesWhatStaysOneProduct) {
  EXPECT_EQ(Product(Whole{3, 1, 0}, Whole{4, 0, 1}), (Whole{12, 1, 1}));
  EXPECT_EQ(Quotient(Whole{12, 1, 1}, Whole{4, 1, 0}), (Whole{3, 0, 1}));
  EXPECT_EQ(Quotient(Whole{7}, Whole{2}), Whole{3});
  EXPECT_EQ(Quotient(Whole{7, 1, 0}, Whole{2}), std::nullopt);
  EXPECT_EQ(Quotient(kBatch, kLength), std::nullopt);
  EXPECT_EQ(Quotient(kBatch, Whole{0}), std::nullopt);
  EXPECT_EQ(Sum(kLength, Whole{0}), kLength);
  EXPECT_EQ(Sum(kLength, Whole{1}), std::nullopt);
  EXPECT_EQ(Difference(Whole{3, 0, 1}, kLength), (Whole{2, 0, 1}));
  EXPECT_EQ(Difference(kLength, kLength), Whole{0});
}

TEST(WholeTest, OverflowIsNothing) {
  const Whole most{std::numeric_limits<int64_t>::max()}, least{std::numeric_limits<int64_t>::min()};
  EXPECT_EQ(Product(most, Whole{2}), std::nullopt);
  EXPECT_EQ(Sum(most, Whole{1}), std::nullopt);
  EXPECT_EQ(Difference(Whole{0}, least), std::nullopt);
  EXPECT_EQ(Quotient(least, Whole{-1}), std::nullopt);
  EXPECT_EQ(Product(Wholes(9, kLength)), std::nullopt);
}

TEST(WholeTest, EqualsOnlyWhereItAlwaysDoes) {
  EXPECT_EQ(AreEqual(kLength, kLength), true);
  EXPECT_EQ(AreEqual(kLength, Whole{2, 0, 1}), false);
  EXPECT_EQ(AreEqual(kLength, Whole{-1}), false);
  EXPECT_EQ(AreEqual(kLength, Whole{1}), std::nullopt);
  EXPECT_EQ(AreEqual(kLength, kBatch), std::nullopt);
}

TEST(WholeTest, Broadcasts) {
  EXPECT_EQ(Broadcast({kBatch, {1}, kLength}, {kLength, {1}}), (Wholes{kBatch, kLength, kLength}));
  EXPECT_EQ(Broadcast({kBatch}, {kLength}), std::nullopt);
  EXPECT_EQ(Text({kBatch, {2, 0, 2}, {64}, {1}}), "[B,2SS,64,1]");
}

}  // namespace
}  // namespace swizzle
