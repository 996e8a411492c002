#include "kernels/cpu/window/plane_masks.h"

#include <gtest/gtest.h>

namespace swizzle::cpu {
namespace {

TEST(PlaneMasks, FourByFourIsOneBlock) {
  const std::vector<BlockMasks> masks = PlaneMasks(4, 4);
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].left, 0b1110'1110'1110'1110);
  EXPECT_EQ(masks[0].right, 0b0111'0111'0111'0111);
  EXPECT_EQ(masks[0].above, 0b1111'1111'1111'0000);
  EXPECT_EQ(masks[0].below, 0b0000'1111'1111'1111);
}

TEST(PlaneMasks, OnePositionHasNoNeighbours) {
  const std::vector<BlockMasks> masks = PlaneMasks(1, 1);
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].left | masks[0].right | masks[0].above | masks[0].below, 0);
}

// 49 positions an image: blocks straddle images, and repeat after 49 of them.
TEST(PlaneMasks, PeriodCoversImagesThatStraddleBlocks) {
  const std::vector<BlockMasks> masks = PlaneMasks(7, 7);
  ASSERT_EQ(masks.size(), 49u);
  for (int position = 0; position < 49 * 16; ++position) {
    const BlockMasks& block = masks[position / 16];
    const int in_plane = position % 49;
    const auto bit = [&](uint16_t mask) { return (mask >> position % 16 & 1) != 0; };
    EXPECT_EQ(bit(block.left), in_plane % 7 != 0) << position;
    EXPECT_EQ(bit(block.right), in_plane % 7 != 6) << position;
    EXPECT_EQ(bit(block.above), in_plane / 7 != 0) << position;
    EXPECT_EQ(bit(block.below), in_plane / 7 != 6) << position;
  }
}

}  // namespace
}  // namespace swizzle::cpu
