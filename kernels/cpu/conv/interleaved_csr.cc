#include "kernels/cpu/conv/interleaved_csr.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/panel_cell.h"

namespace swizzle::cpu {

// The entries [begin, end) of a row that lie in one block.
struct RowPart {
  uint32_t row;
  uint32_t begin;
  uint32_t end;
  uint32_t length() const { return end - begin; }
};

namespace {

// A slice with fewer rows is not worth a task.
constexpr int64_t kMinSliceRows = 16;

// Bytes of a column in a whole panel.
constexpr int64_t kColumnBytes = kMaxPanelWidth * static_cast<int64_t>(sizeof(float));
// Where weights are few, so many entries a row and block matter more than the first cache.
constexpr double kFewestEntries = 12;
// So many save another 2 to 5 % of the time (90 % zeros, Zen 4) where a block then takes twice that cache at most;
// larger ones, at 95 %, cost 3 to 8 %.
constexpr double kBestEntries = 16;

int64_t ChooseSlices(const CsrMatrix& matrix, int threads, const CacheSizes& caches) {
  const int64_t bytes = matrix.nnz() * static_cast<int64_t>(sizeof(float) + sizeof(uint16_t));
  return std::clamp<int64_t>(matrix.rows / kMinSliceRows, 1, WeightSlices(bytes, threads, caches));
}

// Rows where slices of about equal nonzeros begin, and the end. A row counts one entry more than it has, for its store.
std::vector<int64_t> SliceBounds(const CsrMatrix& matrix, int64_t slices) {
  const int64_t total = matrix.nnz() + matrix.rows;
  std::vector<int64_t> bounds = {0};
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const int64_t done = matrix.row_offsets[row] + row;
    if (done * slices >= total * static_cast<int64_t>(bounds.size())) bounds.push_back(row);
  }
  bounds.resize(slices, matrix.rows);
  bounds.push_back(matrix.rows);
  return bounds;
}

std::vector<RowPart> PartsOfBlock(const CsrMatrix& matrix, int64_t first_row, int64_t last_row, int64_t begin,
                                  int64_t end) {
  std::vector<RowPart> parts;
  parts.reserve(last_row - first_row);
  const uint32_t* columns = matrix.col_indices.data();
  for (int64_t row = first_row; row < last_row; ++row) {
    const uint32_t* row_begin = columns + matrix.row_offsets[row];
    const uint32_t* row_end = columns + matrix.row_offsets[row + 1];
    const uint32_t* part_begin = std::lower_bound(row_begin, row_end, begin);
    const uint32_t* part_end = std::lower_bound(part_begin, row_end, end);
    parts.push_back({static_cast<uint32_t>(row), static_cast<uint32_t>(part_begin - columns),
                     static_cast<uint32_t>(part_end - columns)});
  }
  return parts;
}

template <typename T>
size_t VectorBytes(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

}  // namespace

int64_t InterleavedCsr::ChooseBlocks(const CsrMatrix& matrix, const CacheSizes& caches, double scale) {
  const double density = static_cast<double>(matrix.nnz() + 1) / static_cast<double>(matrix.rows * matrix.cols + 1);
  // A block that leaves an eighth of the first cache free. One of fewer columns would store too often.
  const auto smallest = static_cast<double>(std::min(caches.first / 8 * 7 / kColumnBytes, kMaxBlock));
  const int64_t largest = 2 * caches.first / kColumnBytes;
  const double best = std::min(kBestEntries / density, static_cast<double>(largest));
  const double wanted = std::clamp<double>(std::max(best, kFewestEntries / density), smallest, kMaxBlock);
  const int64_t nearest = std::llround(static_cast<double>(matrix.cols) / (wanted * scale));
  const int64_t fewest = CeilDiv(matrix.cols, kMaxBlock);
  return std::max<int64_t>({1, fewest, nearest});
}

InterleavedCsr::InterleavedCsr(const CsrMatrix& matrix, std::span<const float> bias, int threads, int64_t blocks,
                               const CacheSizes& caches)
    : cols_(matrix.cols),
      blocks_(blocks),
      slices_(ChooseSlices(matrix, threads, caches)),
      slice_begin_(SliceBounds(matrix, slices_)),
      bias_(matrix.rows) {
  static_assert(kMaxBlock * kOffsetUnit <= 1 << 16);
  std::copy(bias.begin(), bias.end(), bias_.begin());
  weights_.reserve(matrix.nnz() + matrix.nnz() / 32);
  offsets_.reserve(weights_.capacity());
  for (int64_t slice = 0; slice < slices_; ++slice) {
    for (int64_t block = 0; block < blocks_; ++block) {
      first_segment_.push_back(static_cast<uint32_t>(segments_.size()));
      PackCell(matrix, slice_begin_[slice], slice_begin_[slice + 1], block);
    }
  }
  first_segment_.push_back(static_cast<uint32_t>(segments_.size()));
  offsets_.insert(offsets_.end(), kRows, 0);
  weights_.insert(weights_.end(), kRows, 0.0f);  // where rows begin that have none, too
  weights_.shrink_to_fit();
  offsets_.shrink_to_fit();
}

void InterleavedCsr::PackCell(const CsrMatrix& matrix, int64_t first_row, int64_t last_row, int64_t block) {
  // Groups that add nothing are there only where they start or end a sum.
  const bool keeps_empty = block == 0 || block + 1 == blocks_;
  std::vector<RowPart> parts = PartsOfBlock(matrix, first_row, last_row, BlockBegin(block), BlockBegin(block + 1));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const RowPart& a, const RowPart& b) { return a.length() < b.length(); });
  const size_t first_segment = segments_.size();
  for (size_t i = 0; i < parts.size(); i += kRows) {
    RowPart group[kRows];
    for (size_t r = 0; r < kRows; ++r) group[r] = parts[std::min(i + r, parts.size() - 1)];
    const uint32_t length = group[kRows - 1].length();
    if (length == 0 && !keeps_empty) continue;
    if (segments_.size() == first_segment || segments_.back().length != length) {
      segments_.push_back(
          {0, length, static_cast<uint32_t>(rows_.size() / kRows), static_cast<uint32_t>(weights_.size() / kRows)});
    }
    ++segments_.back().groups;
    PackGroup(matrix, block, group);
  }
}

void InterleavedCsr::PackGroup(const CsrMatrix& matrix, int64_t block, const RowPart (&group)[kRows]) {
  const auto offset_of = [&](uint32_t entry) {
    return static_cast<uint16_t>((matrix.col_indices[entry] - BlockBegin(block)) * kOffsetUnit);
  };
  for (const RowPart& part : group) rows_.push_back(part.row);
  for (uint32_t i = 0; i < group[kRows - 1].length(); ++i) {
    for (const RowPart& part : group) {
      const bool is_entry = i < part.length();
      weights_.push_back(is_entry ? matrix.values[part.begin + i] : 0.0f);
      // A padding entry reads what the row read last.
      const uint32_t read = std::min(part.begin + i, part.end - 1);
      offsets_.push_back(part.length() == 0 ? 0 : offset_of(read));
    }
  }
}

size_t InterleavedCsr::bytes() const {
  return VectorBytes(slice_begin_) + VectorBytes(first_segment_) + VectorBytes(segments_) + VectorBytes(rows_) +
         VectorBytes(weights_) + VectorBytes(offsets_) + VectorBytes(bias_);
}

}  // namespace swizzle::cpu
