#include "model_loader/semantics/symbolic_int.h"

#include <limits>

#include "gtest/gtest.h"

namespace swizzle {
namespace {

class SymbolsTest : public ::testing::Test {
 protected:
  Symbols symbols_;
  const SymbolicInt a_ = symbols_.New(), b_ = symbols_.New();
};

TEST_F(SymbolsTest, SumsAndProductsAreEqualHoweverTheyWereMade) {
  EXPECT_EQ(symbols_.Sum(a_, b_), symbols_.Sum(b_, a_));
  EXPECT_EQ(symbols_.Product(a_, symbols_.Sum(b_, 2)), symbols_.Sum(symbols_.Product(b_, a_), symbols_.Product(2, a_)));
  EXPECT_EQ(symbols_.Difference(symbols_.Sum(a_, 3), a_), SymbolicInt(3));
  EXPECT_TRUE(symbols_.Difference(a_, a_).Is(0));
  EXPECT_NE(a_, b_);
  EXPECT_NE(a_, SymbolicInt(1));
  EXPECT_EQ(symbols_.Product(a_, 0), SymbolicInt());
}

TEST_F(SymbolsTest, QuotientsAreExactOrTheSameSymbolForTheSame) {
  const SymbolicInt product = symbols_.Product(symbols_.Product(a_, b_), 6);
  EXPECT_EQ(symbols_.Quotient(product, symbols_.Product(a_, 2)), symbols_.Product(b_, 3));
  EXPECT_EQ(symbols_.Quotient(7, 2), SymbolicInt(3));
  EXPECT_EQ(symbols_.Quotient(a_, 2), symbols_.Quotient(a_, 2));
  EXPECT_NE(symbols_.Quotient(a_, 2), symbols_.Quotient(b_, 2));
  EXPECT_FALSE(symbols_.Quotient(7, 0).Number());
}

TEST_F(SymbolsTest, NothingOverflows) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(symbols_.Sum(kMost, 1).Number());
  EXPECT_FALSE(symbols_.Product(kMost, 2).Number());
  EXPECT_FALSE(symbols_.Product(std::numeric_limits<int64_t>::min(), -1).Number());
  SymbolicInt large = symbols_.Sum(a_, b_);
  for (int i = 0; i < 40; ++i) large = symbols_.Product(large, symbols_.Sum(large, symbols_.New()));
  EXPECT_LT(large.Text().size(), 1000u);
}

TEST_F(SymbolsTest, SizesAreNotNegativeAndDifferencesMayBe) {
  EXPECT_TRUE(symbols_.IsNotNegative(symbols_.Sum(symbols_.Product(a_, b_), 1)));
  EXPECT_TRUE(symbols_.IsNotNegative(symbols_.Size("of something")));
  EXPECT_FALSE(symbols_.IsNotNegative(symbols_.Difference(a_, b_)));
  EXPECT_FALSE(symbols_.IsNotNegative(-1));
}

}  // namespace
}  // namespace swizzle
