// Writes .npz files as numpy.savez does: a zip archive of .npy files that are not compressed.
#ifndef SWIZZLE_TESTS_SUPPORT_NPZ_WRITER_H_
#define SWIZZLE_TESTS_SUPPORT_NPZ_WRITER_H_

#include <map>
#include <string>

#include "kernels/base/tensor.h"

namespace swizzle::testing {

// REQUIRES: NumPy has types for the arrays.
std::string MakeNpz(const std::map<std::string, TensorView>& arrays);

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_NPZ_WRITER_H_
