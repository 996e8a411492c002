// The CPU backend with a kernel for made-up weights, and no other for convolutions that skips zeros.
#ifndef SWIZZLE_TESTS_KERNELS_FORMAT_MADE_UP_MADE_UP_BACKEND_H_
#define SWIZZLE_TESTS_KERNELS_FORMAT_MADE_UP_MADE_UP_BACKEND_H_

#include <memory>

#include "kernels/backend/backend.h"

namespace swizzle::testing {

// Its row "conv_made_up_f32_base" takes 1x1 convolutions and linear layers whose weights have 8 columns at least.
std::unique_ptr<Backend> NewMadeUpBackend();

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_KERNELS_FORMAT_MADE_UP_MADE_UP_BACKEND_H_
