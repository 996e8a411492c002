// Which format a weight is in. What follows from it stands in one row of kernels/format/format_list.h.
//
// Pure functions.
#ifndef SWIZZLE_KERNELS_FORMAT_FORMAT_H_
#define SWIZZLE_KERNELS_FORMAT_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace swizzle {

struct Structure;

// In the order of the list.
enum class Format : uint8_t { kNone, kDense, kCsr, kPattern, kShflBw, kNOfM, kSrBcrs, kHbEll, kBitmap };

std::string_view FormatName(Format format);  // "csr"; as in files, reports and metrics
std::optional<Format> FormatFromName(std::string_view name);
// Whether it leaves zeros out, so that kernels that take it skip them. Not kNone.
bool IsSparse(Format format);
// Whether its nonzeros stand in blocks that matrix units multiply.
bool IsInBlocks(Format format);
// Whether kernels that take it look at zeros, too: these save memory, and no time.
bool VisitsZeros(Format format);
// Whether its matrices have values, as opposed to places alone. Not kNone.
bool HasValues(Format format);
// Those that can hold a weight of this structure, in the order of the list.
std::vector<Format> FormatsThatHold(const Structure& structure);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_FORMAT_H_
