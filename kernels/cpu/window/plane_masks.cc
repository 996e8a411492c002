#include "kernels/cpu/window/plane_masks.h"

#include <numeric>

namespace swizzle::cpu {

std::vector<BlockMasks> PlaneMasks(int64_t height, int64_t width) {
  const int64_t plane = height * width;
  std::vector<BlockMasks> blocks(plane / std::gcd(plane, int64_t{16}), BlockMasks{});
  for (size_t i = 0; i < 16 * blocks.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) % plane / width;
    const int64_t column = static_cast<int64_t>(i) % width;
    const auto bit = [i](bool inside) { return static_cast<uint16_t>(inside ? 1u << i % 16 : 0u); };
    BlockMasks& block = blocks[i / 16];
    block.left |= bit(column > 0);
    block.right |= bit(column + 1 < width);
    block.above |= bit(row > 0);
    block.below |= bit(row + 1 < height);
  }
  return blocks;
}

}  // namespace swizzle::cpu
