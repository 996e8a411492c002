// Moves activations between plain NCHW and the layouts of kernels/layout.h, one element at a time.
#ifndef SWIZZLE_KERNELS_REFERENCE_LAYOUT_H_
#define SWIZZLE_KERNELS_REFERENCE_LAYOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/layout.h"

namespace swizzle::reference {

// Where (channel, position) lies in a buffer of `layout`, in floats; position = (image * height + y) * width + x.
int64_t ElementOffset(const Extent& extent, Layout layout, int64_t channel, int64_t position);

// Fills `buffer`, of LayoutElements() floats, with the values of `nchw`. Spare positions get `spare`; the padding
// channels of kBlocked16 get zero, as its contract says.
void ToLayout(std::span<const float> nchw, const Extent& extent, Layout layout, float spare, std::span<float> buffer);

// The values of `buffer` as plain NCHW; padding is dropped.
std::vector<float> FromLayout(std::span<const float> buffer, const Extent& extent, Layout layout);

}  // namespace swizzle::reference

#endif  // SWIZZLE_KERNELS_REFERENCE_LAYOUT_H_
