#include "model_loader/sequences/whole.h"

#include <limits>

#include "gtest/gtest.h"

namespace swizzle {
namespace {

constexpr Whole kOneBatch{1, 1, 0}, kOneLength{1, 0, 1};

TEST(WholeTest, CalculatesWhatStaysOneProduct) {
  EXPECT_EQ(Product(Whole{3, 1, 0}, Whole{4, 0, 1}), (Whole{12, 1, 1}));
  EXPECT_EQ(Quotient(Whole{12, 1, 1}, Whole{4, 1, 0}), (Whole{3, 0, 1}));
  EXPECT_EQ(Quotient(Whole{7}, Whole{2}), Whole{3});
  EXPECT_EQ(Quotient(Whole{7, 1, 0}, Whole{2}), std::nullopt);
  EXPECT_EQ(Quotient(kOneBatch, kOneLength), std::nullopt);
  EXPECT_EQ(Quotient(kOneBatch, Whole{0}), std::nullopt);
  EXPECT_EQ(Sum(kOneLength, Whole{0}), kOneLength);
  EXPECT_EQ(Sum(kOneLength, Whole{1}), std::nullopt);
  EXPECT_EQ(Difference(Whole{3, 0, 1}, kOneLength), (Whole{2, 0, 1}));
  EXPECT_EQ(Difference(kOneLength, kOneLength), Whole{0});
}

TEST(WholeTest, OverflowIsNothing) {
  const Whole most{std::numeric_limits<int64_t>::max()}, least{std::numeric_limits<int64_t>::min()};
  EXPECT_EQ(Product(most, Whole{2}), std::nullopt);
  EXPECT_EQ(Sum(most, Whole{1}), std::nullopt);
  EXPECT_EQ(Difference(Whole{0}, least), std::nullopt);
  EXPECT_EQ(Quotient(least, Whole{-1}), std::nullopt);
  EXPECT_EQ(Product(Wholes(9, kOneLength)), std::nullopt);
}

TEST(WholeTest, EqualsOnlyWhereItAlwaysDoes) {
  EXPECT_EQ(AreEqual(kOneLength, kOneLength), true);
  EXPECT_EQ(AreEqual(kOneLength, Whole{2, 0, 1}), false);
  EXPECT_EQ(AreEqual(kOneLength, Whole{-1}), false);
  EXPECT_EQ(AreEqual(kOneLength, Whole{1}), std::nullopt);
  EXPECT_EQ(AreEqual(kOneLength, kOneBatch), std::nullopt);
}

TEST(WholeTest, Broadcasts) {
  EXPECT_EQ(Broadcast({kOneBatch, {1}, kOneLength}, {kOneLength, {1}}), (Wholes{kOneBatch, kOneLength, kOneLength}));
  EXPECT_EQ(Broadcast({kOneBatch}, {kOneLength}), std::nullopt);
  EXPECT_EQ(Text({kOneBatch, {2, 0, 2}, {64}, {1}}), "[B,2SS,64,1]");
}

}  // namespace
}  // namespace swizzle
