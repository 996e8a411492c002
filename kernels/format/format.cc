#include "kernels/format/format.h"

#include "kernels/base/status.h"
#include "kernels/format/format_row.h"

namespace swizzle {

const FormatRow& RowOf(Format format) {
  const auto rows = FormatRows();
  const auto index = static_cast<size_t>(format) - 1;
  SWIZZLE_CHECK(format != Format::kNone && index < rows.size());
  return rows[index];
}

std::string_view FormatName(Format format) { return format == Format::kNone ? "none" : RowOf(format).traits.name; }

std::optional<Format> FormatFromName(std::string_view name) {
  for (const FormatRow& row : FormatRows()) {
    if (row.traits.name == name) return row.format;
  }
  return std::nullopt;
}

bool IsSparse(Format format) { return format != Format::kNone && RowOf(format).traits.sparse; }

bool IsInBlocks(Format format) { return format != Format::kNone && RowOf(format).traits.in_blocks; }

bool VisitsZeros(Format format) { return format != Format::kNone && RowOf(format).traits.visits_zeros; }

bool HasValues(Format format) { return format != Format::kNone && RowOf(format).traits.has_values; }

std::vector<Format> FormatsThatHold(const Structure& structure) {
  std::vector<Format> formats;
  for (const FormatRow& row : FormatRows()) {
    if (row.holds(structure)) formats.push_back(row.format);
  }
  return formats;
}

}  // namespace swizzle
