// What the program knows of a format: one row of the list in kernels/format/format_list.h.
#ifndef SWIZZLE_KERNELS_FORMAT_FORMAT_ROW_H_
#define SWIZZLE_KERNELS_FORMAT_FORMAT_ROW_H_

#include <span>
#include <string_view>

#include "kernels/format/format.h"
#include "kernels/format/weight_matrix.h"

namespace swizzle {

// What its author says.
struct FormatTraits {
  std::string_view name;  // in files, reports and metrics: it never changes
  bool sparse;            // leaves zeros out
  bool has_values = true;
  bool in_blocks = false;       // nonzeros stand in blocks that matrix units multiply
  bool visits_zeros = false;    // kernels look at each place: zeros save memory, and no time
  std::string_view suits = "";  // which weights it is for, as the tool's help says it
};

struct FormatRow {
  FormatTraits traits;
  Format format;
  StatusOr<WeightMatrix> (*from_dense)(const DenseMatrix&);
  StatusOr<WeightMatrix> (*read)(MatrixSize, PartSource&);  // not validated
  bool (*holds)(const Structure&);
};

template <WeightFormat M>
constexpr FormatRow MakeFormatRow(const FormatTraits& traits) {
  return {.traits = traits,
          .format = M::kFormat,
          .from_dense = [](const DenseMatrix& dense) -> StatusOr<WeightMatrix> {
            StatusOr<M> matrix = M::FromDense(dense);
            if (!matrix.ok()) return matrix.status();
            return WeightMatrix(*std::move(matrix));
          },
          .read = [](MatrixSize size, PartSource& source) -> StatusOr<WeightMatrix> {
            M matrix;
            PartReader reader(size, source);
            M::VisitParts(matrix, reader);
            if (!reader.status().ok()) return reader.status();
            return WeightMatrix(std::move(matrix));
          },
          .holds = M::Holds};
}

// All formats; the row of a format stands at its number, from 1 on.
std::span<const FormatRow> FormatRows();
const FormatRow& RowOf(Format format);  // REQUIRES: not kNone

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_FORMAT_ROW_H_
