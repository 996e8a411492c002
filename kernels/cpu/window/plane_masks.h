// Which neighbours of a position are inside its plane, for positions that are simply counted through.
//
// For a depthwise 3x3 convolution that keeps the plane's size, the neighbours of position p are p +- 1 and p +- width,
// except across the plane's borders. Planes of several images follow each other, so 16 positions from a multiple of 16
// on look like those one period, plane / gcd(plane, 16) blocks of 16, later.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_PLANE_MASKS_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_PLANE_MASKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace swizzle::cpu {

// Bit i: the block's position i has a neighbour on that side.
struct BlockMasks {
  uint16_t left, right, above, below;
};

// One period of a plane's masks. REQUIRES: height and width are positive.
std::vector<BlockMasks> PlaneMasks(int64_t height, int64_t width);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_PLANE_MASKS_H_
