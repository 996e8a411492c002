#include "kernels/base/half.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "kernels/base/half_bits.h"

namespace swizzle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Every half but the NaNs comes back, and what lies between two neighbours goes to the nearer one or to the even one.
TEST(HalfTest, RoundsToNearest) {
  for (uint32_t half = 0; half < 0x7C00u; ++half) {
    const float value = FloatOfHalf(static_cast<uint16_t>(half));
    ASSERT_EQ(HalfOfFloat(value), half);
    ASSERT_EQ(HalfOfFloat(-value), half | 0x8000u);
    const float next = half + 1 == 0x7C00u ? 65536.0f : FloatOfHalf(static_cast<uint16_t>(half + 1));
    const float middle = value + (next - value) / 2;
    ASSERT_EQ(HalfOfFloat(middle), half + half % 2) << half;
    ASSERT_EQ(HalfOfFloat(std::nextafter(middle, 0.0f)), half) << half;
    ASSERT_EQ(HalfOfFloat(std::nextafter(middle, kInfinity)), half + 1) << half;
  }
  EXPECT_EQ(HalfOfFloat(kInfinity), 0x7C00u);
  EXPECT_EQ(HalfOfFloat(-1e30f), 0xFC00u);
  EXPECT_TRUE(std::isnan(FloatOfHalf(HalfOfFloat(kNan))));
}

TEST(Bfloat16Test, RoundsToNearest) {
  for (uint32_t bfloat = 0; bfloat < 0x7F80u; ++bfloat) {
    const float value = FloatOfBfloat16(static_cast<uint16_t>(bfloat));
    ASSERT_EQ(Bfloat16OfFloat(value), bfloat);
    ASSERT_EQ(Bfloat16OfFloat(-value), bfloat | 0x8000u);
    const float middle = std::bit_cast<float>(bfloat << 16 | 0x8000u);
    ASSERT_EQ(Bfloat16OfFloat(middle), bfloat + bfloat % 2) << bfloat;
    ASSERT_EQ(Bfloat16OfFloat(std::nextafter(middle, 0.0f)), bfloat) << bfloat;
    ASSERT_EQ(Bfloat16OfFloat(std::nextafter(middle, kInfinity)), bfloat + 1) << bfloat;
  }
  EXPECT_EQ(Bfloat16OfFloat(kInfinity), 0x7F80u);
  EXPECT_TRUE(std::isnan(FloatOfBfloat16(Bfloat16OfFloat(kNan))));
}

// Numbers of every size, halfway between halves and beyond them, at any count and from any byte on.
TEST(HalfBitsTest, ManyAreStoredAsEachIs) {
  std::vector<float> values = {0.0f, -0.0f, kInfinity, -kInfinity, 65504.0f, 65519.0f, 65520.0f, 1e30f, 0x1p-25f};
  for (uint32_t bits = 0x32000000u; bits < 0x48000000u; bits += 0x1F0FFu) values.push_back(std::bit_cast<float>(bits));
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const size_t count : {size_t{0}, size_t{7}, size_t{8}, values.size()}) {
      std::vector<std::byte> stored(1 + 2 * count);
      StoreHalves(std::span(values).first(count), dtype, stored.data() + 1);
      for (size_t i = 0; i < count; ++i) {
        uint16_t half = 0;
        std::memcpy(&half, stored.data() + 1 + 2 * i, sizeof(half));
        ASSERT_EQ(half, HalfBits(values[i], dtype)) << values[i];
      }
    }
  }
  std::vector<uint16_t> stored(8);
  StoreHalves(std::vector<float>(8, kNan), DType::kFloat16, std::as_writable_bytes(std::span(stored)).data());
  for (const uint16_t half : stored) EXPECT_TRUE(std::isnan(FloatOfHalf(half)));
}

}  // namespace
}  // namespace swizzle
