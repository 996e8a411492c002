// Which of a backend's rows are candidates for a problem.
#ifndef SWIZZLE_KERNELS_BACKEND_SELECT_H_
#define SWIZZLE_KERNELS_BACKEND_SELECT_H_

#include <string_view>
#include <vector>

#include "kernels/backend/backend.h"

namespace swizzle {

// Candidates() for `problem`, and of each kernel that comes in several instruction sets (Kernel::family) only the
// widest; of equally wide ones only the first. So a row that does a family's work faster where it accepts the problem
// names that family, and stands before it in the table: the others are then not measured.
std::vector<const Kernel*> WidestCandidates(const Backend& backend, const Problem& problem, const Weight* weight,
                                            Precision precision);
// Returns the candidates for a kConvertLayout that read the one storage and write the other.
std::vector<const Kernel*> ConversionCandidates(const Backend& backend, const Problem& problem, Storage from,
                                                Storage to, Precision precision);
// The widest of them, or the first of several; null: there is none.
const Kernel* WidestConversion(const Backend& backend, const Problem& problem, Storage from, Storage to,
                               Precision precision);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_SELECT_H_
