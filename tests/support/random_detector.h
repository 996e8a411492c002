// A small network with drawn weights that takes channels and planes apart and puts them together, as detectors do.
#ifndef SWIZZLE_TESTS_SUPPORT_RANDOM_DETECTOR_H_
#define SWIZZLE_TESTS_SUPPORT_RANDOM_DETECTOR_H_

#include "model_loader/network/network.h"

namespace swizzle::testing {

// Convolutions with 90 % zeros around Slices and a Concat of their channels, Resizes of both modes, a DepthToSpace, and
// a Concat of planes. Input "image", [3, image, image]; output "boxes". batch_size: 0 leaves it free.
Network MakeRandomDetector(int64_t image = 14, int64_t batch_size = 0);

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_RANDOM_DETECTOR_H_
