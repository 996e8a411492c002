// Operators as reports and tests show them. A type of attributes or a field of one that is new does not compile before
// it is printed.
#ifndef SWIZZLE_KERNELS_OPERATOR_PRINT_H_
#define SWIZZLE_KERNELS_OPERATOR_PRINT_H_

#include <string>
#include <string_view>

#include "kernels/operator/operator.h"

namespace swizzle {

// "Conv"; of a function which: "HardSwish".
std::string_view ReportName(const Operator& layer);

// All of them, each after a space: " window 3x3 stride 2x2 dilation 1x1 pad 1,1,1,1"; empty where there are none.
std::string AttributesText(const Attributes& attributes);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_PRINT_H_
