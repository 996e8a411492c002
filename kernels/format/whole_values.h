// Values of a quantised weight as the whole numbers that they stand for, a byte each: how files hold them.
//
// Pure functions.
#ifndef SWIZZLE_KERNELS_FORMAT_WHOLE_VALUES_H_
#define SWIZZLE_KERNELS_FORMAT_WHOLE_VALUES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/format/weight.h"

namespace swizzle {

// Whether a file can hold the values so: the format says their rows, and one zero point, which is what padding becomes,
// is that of all rows.
bool HasWholeValues(const Weight& weight);

// Of each value, as the matrix stores them, the whole number, of the type that the quantisation names. None where
// HasWholeValues is false, or a value is no whole number's.
std::optional<std::vector<std::byte>> WholeValues(const Weight& weight);

// The real numbers of a matrix whose values are whole ones less the zero point. REQUIRES: its format says the rows of
// values; the quantisation is valid for it.
WeightMatrix ScaledByRows(const WeightMatrix& wholes, const Quantisation& quantisation);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_WHOLE_VALUES_H_
