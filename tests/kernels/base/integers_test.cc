#include "kernels/base/integers.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace swizzle {
namespace {

static_assert(CeilDiv(int64_t{49}, 16) == 4 && CeilDiv(int64_t{48}, 16) == 3 && CeilDiv(int64_t{0}, 16) == 0);
static_assert(std::is_same_v<decltype(RoundUp(int32_t{1}, int64_t{4})), int64_t>);
static_assert(std::is_same_v<decltype(RoundUp(size_t{1}, int{4})), size_t>);

TEST(IntegersTest, RoundUpIsTheLeastMultipleThatIsNotBelow) {
  for (int64_t unit = 1; unit < 20; ++unit) {
    for (int64_t value = 0; value < 100; ++value) {
      const int64_t rounded = RoundUp(value, unit);
      EXPECT_EQ(rounded % unit, 0);
      EXPECT_GE(rounded, value);
      EXPECT_LT(rounded - unit, value);
      EXPECT_EQ(CeilDiv(value, unit), rounded / unit);
    }
  }
}

}  // namespace
}  // namespace swizzle
