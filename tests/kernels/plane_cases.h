// Cases of what moves channels and resizes planes; kernel_cases.h has the rest.
#ifndef SWIZZLE_TESTS_KERNELS_PLANE_CASES_H_
#define SWIZZLE_TESTS_KERNELS_PLANE_CASES_H_

#include <vector>

#include "tests/kernels/kernel_cases.h"

namespace swizzle {

// Of kConcat, kSlice, kResize and kDepthToSpace; none of any other.
std::vector<KernelCase> PlaneCases(Op op);

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_PLANE_CASES_H_
