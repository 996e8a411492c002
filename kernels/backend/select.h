// Which of a backend's rows are candidates for a problem.
#ifndef SWIZZLE_KERNELS_BACKEND_SELECT_H_
#define SWIZZLE_KERNELS_BACKEND_SELECT_H_

#include <string_view>
#include <vector>

#include "kernels/backend/backend.h"

namespace swizzle {

// Candidates() for `problem`, and of each kernel that comes in several instruction sets only the widest. Rows that
// require the same features are different kernels, whatever their names: two libraries', say.
std::vector<const Kernel*> WidestCandidates(const Backend& backend, const Problem& problem, Format format,
                                            Precision precision);

// Whether the row rounds FP32 factors to TF32, which not every plan may do. Its types are FP32; its name tells.
inline bool RoundsToTf32(const Kernel& kernel) { return kernel.name.find("_tf32_") != std::string_view::npos; }

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_SELECT_H_
