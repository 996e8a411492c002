#include "kernels/format/format_list.h"

namespace swizzle {

std::span<const FormatRow> FormatRows() { return kFormatList; }

}  // namespace swizzle
