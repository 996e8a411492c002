// How close a row's results must be to the reference's, by what the row computes in.
#ifndef SWIZZLE_TESTS_KERNELS_CLOSENESS_H_
#define SWIZZLE_TESTS_KERNELS_CLOSENESS_H_

#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/real_types.h"
#include "kernels/reference/reference.h"

namespace swizzle {

// The precision of a row: its activations' type where that is half, which kNchw hides.
DType PrecisionOf(const Kernel& kernel);

// The largest magnitude of finite values, at least 1.
double LargestOf(const reference::Result& values);

// largest: of what is rounded on the way to `expected`. Ends the test case at the first element that is too far off.
void ExpectClose(const Kernel& kernel, const std::vector<float>& actual, const reference::Result& expected,
                 double largest);

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_CLOSENESS_H_
