#include "model_loader/shapes/symbolic_int.h"

#include <array>
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
  EXPECT_EQ(symbols_.Quotient(symbols_.Product(product, 5), symbols_.Product(a_, 12)),
            symbols_.Quotient(symbols_.Product(b_, 5), 2));
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
  EXPECT_TRUE(symbols_.IsNotNegative(symbols_.Size("of something", {})));
  EXPECT_FALSE(symbols_.IsNotNegative(symbols_.Difference(a_, b_)));
  EXPECT_FALSE(symbols_.IsNotNegative(-1));
}

TEST_F(SymbolsTest, WhatIsMadeOfWhatVariesVaries) {
  const SymbolicInt batch = symbols_.NewVarying();
  const SymbolicInt merged = symbols_.Product(batch, a_);
  EXPECT_TRUE(symbols_.Varies(symbols_.Sum(merged, b_)));
  EXPECT_TRUE(symbols_.Varies(symbols_.Quotient(batch, b_)));
  EXPECT_TRUE(symbols_.Varies(symbols_.Size("of both", std::array{a_, batch})));
  EXPECT_FALSE(symbols_.Varies(symbols_.Quotient(merged, batch)));
  EXPECT_FALSE(symbols_.Varies(symbols_.Size("of both", std::array{a_, b_})));
  EXPECT_FALSE(symbols_.Varies(7));
}

TEST_F(SymbolsTest, WhatIsMadeOfAnyNumberMayWrap) {
  const SymbolicInt number = symbols_.NewNumber();
  EXPECT_TRUE(symbols_.MayWrap(symbols_.Sum(number, a_)));
  EXPECT_TRUE(symbols_.MayWrap(symbols_.Number("of it", std::array{number})));
  EXPECT_FALSE(symbols_.IsNotNegative(number));
  EXPECT_FALSE(symbols_.MayWrap(a_));
}

}  // namespace
}  // namespace swizzle
