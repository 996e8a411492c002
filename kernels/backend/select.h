// Which of a backend's rows are candidates for a problem.
#ifndef SWIZZLE_KERNELS_BACKEND_SELECT_H_
#define SWIZZLE_KERNELS_BACKEND_SELECT_H_

#include <string_view>
#include <vector>

#include "kernels/backend/backend.h"

namespace swizzle {

// Candidates() for `problem`, and of each kernel that comes in several instruction sets (Kernel::family) only the
// widest.
std::vector<const Kernel*> WidestCandidates(const Backend& backend, const Problem& problem, const Weight* weight,
                                            Precision precision);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_SELECT_H_
