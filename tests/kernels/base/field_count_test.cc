#include "kernels/base/field_count.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace swizzle {
namespace {

struct Base {
  int a = 0;
  float b = 0;
};
struct Derived : Base {
  std::string c;
  std::vector<int> d;
};
struct None {};

TEST(FieldCountTest, CountsFieldsAndABaseAsOne) {
  EXPECT_EQ(FieldCount<None>(), 0u);
  EXPECT_EQ(FieldCount<Base>(), 2u);
  EXPECT_EQ(FieldCount<Derived>(), 3u);
}

}  // namespace
}  // namespace swizzle
