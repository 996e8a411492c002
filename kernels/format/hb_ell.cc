#include "kernels/format/hb_ell.h"

#include <algorithm>
#include <limits>

#include "kernels/format/structure.h"

namespace swizzle {
namespace {

constexpr int64_t kBlock = HbEllMatrix::kBlock;
constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr int64_t kWidthStep = 4;

Status ValidateCounts(const HbEllMatrix& matrix) {
  if (matrix.rows < 0 || matrix.cols < 0 || matrix.rows > kMaxUint32 || matrix.cols > kMaxUint32) {
    return InvalidArgument("HB-ELL matrix has impossible dimensions ", matrix.rows, " x ", matrix.cols);
  }
  const auto pointers = static_cast<int64_t>(matrix.block_row_pointers.size());
  if (pointers != matrix.block_rows() + 1) {
    return InvalidArgument("HB-ELL matrix of ", matrix.block_rows(), " block rows has ", pointers,
                           " block row pointers, not one more");
  }
  if (matrix.widths.size() != matrix.block_cols.size()) {
    return InvalidArgument("HB-ELL matrix has ", matrix.widths.size(), " widths of ", matrix.block_cols.size(),
                           " blocks");
  }
  const bool falls = !std::ranges::is_sorted(matrix.block_row_pointers);
  if (falls || matrix.block_row_pointers.front() != 0 || matrix.block_row_pointers.back() != matrix.widths.size()) {
    return InvalidArgument("HB-ELL block row pointers do not rise from 0 to the ", matrix.widths.size(), " blocks");
  }
  return absl::OkStatus();
}

// REQUIRES: the counts are valid.
Status ValidateBlocks(const HbEllMatrix& matrix) {
  for (int64_t block_row = 0; block_row < matrix.block_rows(); ++block_row) {
    int64_t previous = -1;
    for (int64_t i = matrix.block_row_pointers[block_row]; i < matrix.block_row_pointers[block_row + 1]; ++i) {
      const int64_t col = matrix.block_cols[i];
      if (col <= previous || col >= CeilDiv(matrix.cols, kBlock)) {
        return InvalidArgument("HB-ELL block row ", block_row, ", block ", i, ": block column ", col,
                               " does not come after ", previous, " below ", CeilDiv(matrix.cols, kBlock));
      }
      if (matrix.widths[i] > kBlock || matrix.widths[i] % kWidthStep != 0) {
        return InvalidArgument("HB-ELL block ", i, " has a width of ", int{matrix.widths[i]},
                               "; 4, 8, 12, 16 and 0, of dense blocks, are possible");
      }
      previous = col;
    }
  }
  return absl::OkStatus();
}

Status ValidateRow(const HbEllMatrix& matrix, const HbEllMatrix::Block& block, int64_t row) {
  int64_t previous = -1;
  bool fills = false;
  for (int64_t entry = 0; entry < block.width; ++entry) {
    const int64_t col = matrix.ColumnOf(block, row, entry);
    const bool repeats = col == previous;
    if (col < previous || col >= block.first_col + block.cols || (fills && !repeats)) {
      return InvalidArgument("HB-ELL row ", block.first_row + row, ", entry ", entry, " of the block at column ",
                             block.first_col, ": column ", col, " does not come after ", previous, " below ",
                             block.first_col + block.cols);
    }
    fills = repeats;
    previous = col;
    if (repeats && matrix.values[block.first_value + row * block.width + entry] != 0) {
      return InvalidArgument("HB-ELL row ", block.first_row + row, ", entry ", entry, " of the block at column ",
                             block.first_col, ": what fills the row up is not zero");
    }
  }
  return absl::OkStatus();
}

// Adds the block of a dense matrix, if it has a nonzero.
void AddBlock(const DenseMatrix& dense, HbEllMatrix::Block block, HbEllMatrix& matrix) {
  int64_t nonzeros = 0, longest = 0;
  const auto row_of = [&](int64_t row) {
    return std::span(dense.values).subspan((block.first_row + row) * dense.cols + block.first_col, block.cols);
  };
  for (int64_t row = 0; row < block.rows; ++row) {
    const int64_t count = std::ranges::count_if(row_of(row), [](float value) { return value != 0; });
    nonzeros += count;
    longest = std::max(longest, count);
  }
  if (nonzeros == 0) return;
  const bool whole = 4 * nonzeros > 3 * block.rows * block.cols;
  const int64_t width = whole ? HbEllMatrix::kWhole : RoundUp(longest, kWidthStep);
  matrix.block_cols.push_back(static_cast<uint32_t>(block.first_col / kBlock));
  matrix.widths.push_back(static_cast<uint8_t>(width));
  for (int64_t row = 0; row < block.rows; ++row) {
    const auto entries = row_of(row);
    if (whole) {
      matrix.values.insert(matrix.values.end(), entries.begin(), entries.end());
      continue;
    }
    std::vector<uint8_t> columns;
    for (int64_t col = 0; col < block.cols; ++col) {
      if (entries[col] == 0) continue;
      columns.push_back(static_cast<uint8_t>(col));
      matrix.values.push_back(entries[col]);
    }
    matrix.values.resize(matrix.values.size() + width - columns.size());
    columns.resize(width, columns.empty() ? uint8_t{0} : columns.back());
    for (int64_t i = 0; i < width; i += 2) {
      matrix.columns.push_back(static_cast<uint8_t>(columns[i] | columns[i + 1] << 4));
    }
  }
}

// Calls visit for every entry of a block's row that is no filling.
void ForEachEntry(const HbEllMatrix& matrix, const HbEllMatrix::Block& block, int64_t row,
                  absl::FunctionRef<void(int64_t value, int64_t col)> visit) {
  int64_t previous = -1;
  for (int64_t entry = 0; entry < block.row_entries(); ++entry) {
    const int64_t col = matrix.ColumnOf(block, row, entry);
    if (col == previous) return;
    visit(block.first_value + row * block.row_entries() + entry, col);
    previous = col;
  }
}

}  // namespace

std::vector<HbEllMatrix::Block> HbEllMatrix::Blocks() const {
  std::vector<Block> blocks;
  blocks.reserve(widths.size());
  int64_t value = 0, column = 0;
  for (int64_t block_row = 0; block_row < block_rows(); ++block_row) {
    for (int64_t i = block_row_pointers[block_row]; i < block_row_pointers[block_row + 1]; ++i) {
      const int64_t first_row = block_row * kBlock, first_col = block_cols[i] * kBlock;
      const Block block{first_row, std::min(kBlock, rows - first_row),
                        first_col, std::min(kBlock, cols - first_col),
                        widths[i], value,
                        column};
      value += block.rows * block.row_entries();
      column += block.rows * block.width / 2;
      blocks.push_back(block);
    }
  }
  return blocks;
}

int64_t HbEllMatrix::ColumnOf(const Block& block, int64_t row, int64_t entry) const {
  if (block.whole()) return block.first_col + entry;
  const int64_t place = row * block.width + entry;
  return block.first_col + (columns[block.first_column + place / 2] >> place % 2 * 4 & 15);
}

int64_t HbEllMatrix::nnz() const {
  return std::ranges::count_if(values, [](float value) { return value != 0; });
}

Status HbEllMatrix::Validate() const {
  SWIZZLE_RETURN_IF_ERROR(ValidateCounts(*this));
  SWIZZLE_RETURN_IF_ERROR(ValidateBlocks(*this));
  const std::vector<Block> blocks = Blocks();
  int64_t value_count = 0, column_bytes = 0;
  for (const Block& block : blocks) {
    value_count += block.rows * block.row_entries();
    column_bytes += block.rows * block.width / 2;
  }
  if (std::ssize(values) != value_count || std::ssize(columns) != column_bytes) {
    return InvalidArgument("HB-ELL matrix has ", values.size(), " values and ", columns.size(),
                           " bytes of columns; its blocks have ", value_count, " and ", column_bytes);
  }
  for (const Block& block : blocks) {
    for (int64_t row = 0; row < block.rows; ++row) SWIZZLE_RETURN_IF_ERROR(ValidateRow(*this, block, row));
  }
  return absl::OkStatus();
}

HbEllMatrix HbEllMatrix::FromDense(const DenseMatrix& dense) {
  SWIZZLE_CHECK(dense.rows <= kMaxUint32 && dense.cols <= kMaxUint32);
  HbEllMatrix matrix{dense.rows, dense.cols, {0}, {}, {}, {}, {}};
  for (int64_t row = 0; row < dense.rows; row += kBlock) {
    for (int64_t col = 0; col < dense.cols; col += kBlock) {
      AddBlock(dense,
               {.first_row = row,
                .rows = std::min(kBlock, dense.rows - row),
                .first_col = col,
                .cols = std::min(kBlock, dense.cols - col)},
               matrix);
    }
    SWIZZLE_CHECK(std::ssize(matrix.block_cols) <= kMaxUint32);
    matrix.block_row_pointers.push_back(static_cast<uint32_t>(matrix.block_cols.size()));
  }
  return matrix;
}

DenseMatrix HbEllMatrix::ToDense() const {
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  for (const Block& block : Blocks()) {
    for (int64_t row = 0; row < block.rows; ++row) {
      float* const to = dense.values.data() + (block.first_row + row) * cols;
      ForEachEntry(*this, block, row, [&](int64_t value, int64_t col) { to[col] = values[value]; });
    }
  }
  return dense;
}

bool HbEllMatrix::Holds(const Structure& structure) {
  constexpr double kLeastInFullBlocks = 1.0 / 3;  // the hybrid pattern: full blocks, and strays beside them
  if (structure.in_full_blocks >= kLeastInFullBlocks) return true;
  return structure.pattern == SparsityPattern::kBlocks && structure.block_rows >= kBlock &&
         structure.block_cols >= kBlock;
}

std::optional<HbEllMatrix> HbEllMatrix::StackRows(std::span<const HbEllMatrix* const> matrices) {
  HbEllMatrix stacked{0, matrices[0]->cols, {0}, {}, {}, {}, {}};
  for (const HbEllMatrix* part : matrices) {
    if (stacked.rows % kBlock != 0) return std::nullopt;
    const auto blocks = static_cast<int64_t>(stacked.widths.size());
    if (blocks + std::ssize(part->widths) > kMaxUint32) return std::nullopt;
    for (size_t i = 1; i < part->block_row_pointers.size(); ++i) {
      stacked.block_row_pointers.push_back(static_cast<uint32_t>(blocks + part->block_row_pointers[i]));
    }
    stacked.rows += part->rows;
    stacked.block_cols.insert(stacked.block_cols.end(), part->block_cols.begin(), part->block_cols.end());
    stacked.widths.insert(stacked.widths.end(), part->widths.begin(), part->widths.end());
    stacked.columns.insert(stacked.columns.end(), part->columns.begin(), part->columns.end());
    stacked.values.insert(stacked.values.end(), part->values.begin(), part->values.end());
  }
  return stacked;
}

std::vector<uint32_t> HbEllMatrix::ValueRows() const {
  std::vector<uint32_t> value_rows;
  value_rows.reserve(values.size());
  for (const Block& block : Blocks()) {
    for (int64_t row = 0; row < block.rows; ++row) {
      value_rows.insert(value_rows.end(), block.row_entries(), static_cast<uint32_t>(block.first_row + row));
    }
  }
  return value_rows;
}

void HbEllMatrix::ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const {
  const std::vector<Block> blocks = Blocks();
  std::vector<uint32_t> nonzeros;
  for (int64_t row = 0; row < rows; ++row) {
    nonzeros.clear();
    const int64_t block_row = row / kBlock;
    for (int64_t i = block_row_pointers[block_row]; i < block_row_pointers[block_row + 1]; ++i) {
      ForEachEntry(*this, blocks[i], row % kBlock, [&](int64_t value, int64_t col) {
        if (values[value] != 0) nonzeros.push_back(static_cast<uint32_t>(col));
      });
    }
    visit(row, nonzeros);
  }
}

}  // namespace swizzle
