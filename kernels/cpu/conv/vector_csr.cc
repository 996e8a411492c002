#include "kernels/cpu/conv/vector_csr.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/im2col.h"
#include "kernels/cpu/conv/panel_cell.h"

namespace swizzle::cpu {
namespace {

// Packed weights are nonzero to this part at least, or packing them so does not pay.
constexpr double kLeastFill = 0.75;
// A slice with fewer tiles is not worth a task.
constexpr int64_t kMinSliceTiles = 4;

std::span<const uint32_t> ColumnsOf(const CsrMatrix& matrix, uint32_t row) {
  const uint32_t* columns = matrix.col_indices.data();
  return {columns + matrix.row_offsets[row], columns + matrix.row_offsets[row + 1]};
}

// The rows of each tile, kRows a tile; the last row is repeated.
std::vector<uint32_t> PadToTiles(std::vector<uint32_t> order) {
  while (order.size() % VectorCsr::kRows != 0) order.push_back(order.back());
  return order;
}

// Rows with the same columns next to each other, by whole tiles; then what is left of each, by their columns.
std::vector<uint32_t> SortByColumns(const CsrMatrix& matrix, std::vector<uint32_t> order) {
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
    return std::ranges::lexicographical_compare(ColumnsOf(matrix, a), ColumnsOf(matrix, b));
  });
  std::vector<uint32_t> whole, left;
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    const auto columns = ColumnsOf(matrix, order[begin]);
    for (end = begin + 1; end < order.size() && std::ranges::equal(columns, ColumnsOf(matrix, order[end])); ++end) {
    }
    const auto alike = std::span(order).subspan(begin, end - begin);
    const size_t full = alike.size() / VectorCsr::kRows * VectorCsr::kRows;
    const auto tiles = alike.first(full), rest = alike.subspan(full);
    whole.insert(whole.end(), tiles.begin(), tiles.end());
    left.insert(left.end(), rest.begin(), rest.end());
  }
  whole.insert(whole.end(), left.begin(), left.end());
  return whole;
}

// The columns that any row of a tile has, in order.
std::vector<uint32_t> TileColumns(const CsrMatrix& matrix, const uint32_t* rows) {
  std::vector<uint32_t> columns;
  for (int r = 0; r < VectorCsr::kRows; ++r) {
    const auto row = ColumnsOf(matrix, rows[r]);
    columns.insert(columns.end(), row.begin(), row.end());
  }
  std::ranges::sort(columns);
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

int64_t CountEntries(const CsrMatrix& matrix, const std::vector<uint32_t>& tiles) {
  int64_t entries = 0;
  std::vector<uint32_t> last_tile(matrix.cols, ~uint32_t{0});
  for (size_t i = 0; i < tiles.size(); ++i) {
    const auto tile = static_cast<uint32_t>(i / VectorCsr::kRows);
    for (uint32_t column : ColumnsOf(matrix, tiles[i])) {
      entries += last_tile[column] != tile;
      last_tile[column] = tile;
    }
  }
  return entries;
}

struct Tiles {
  std::vector<uint32_t> rows;  // VectorCsr::kRows a tile
  int64_t entries;
};

// In their own order, or sorted, whichever has fewer entries.
Tiles CutTiles(const CsrMatrix& matrix) {
  std::vector<uint32_t> order(matrix.rows);
  std::iota(order.begin(), order.end(), 0);
  std::vector<uint32_t> own = PadToTiles(order), sorted = PadToTiles(SortByColumns(matrix, std::move(order)));
  const int64_t own_entries = CountEntries(matrix, own), sorted_entries = CountEntries(matrix, sorted);
  if (sorted_entries < own_entries) return {std::move(sorted), sorted_entries};
  return {std::move(own), own_entries};
}

int64_t BlocksOf(const Problem& problem, int64_t cols) { return CeilDiv(cols, VectorCsr::BlockColumns(problem, cols)); }

}  // namespace

int64_t VectorCsr::BlockColumns(const Problem& problem, int64_t cols) {
  const bool direct = problem.window().IsPointwise() && !IsBfloat16(problem.to);
  const int64_t most = direct ? kMaxDirectBlock : kMaxGatheredBlock;
  const int64_t blocks = std::max<int64_t>(1, CeilDiv(cols, most));
  return CeilDiv(cols, blocks);
}

bool VectorCsr::IsFull(const CsrMatrix& matrix) {
  if (matrix.rows < kRows || matrix.nnz() == 0) return false;
  const int64_t entries = CutTiles(matrix).entries;
  return static_cast<double>(matrix.nnz()) >= kLeastFill * static_cast<double>(entries * kRows);
}

VectorCsr::VectorCsr(const CsrMatrix& matrix, std::span<const float> bias, const Problem& problem,
                     const CacheSizes& caches)
    : cols_(matrix.cols), blocks_(BlocksOf(problem, matrix.cols)), rows_(CutTiles(matrix).rows), bias_(matrix.rows) {
  std::ranges::copy(bias, bias_.begin());
  for (size_t i = 0; i < rows_.size(); i += kRows) PackTile(matrix, rows_.data() + i);
  entry_begin_.push_back(static_cast<uint32_t>(offsets_.size()));
  offsets_.insert(offsets_.end(), kEntriesAhead, 0);
  weights_.shrink_to_fit();
  offsets_.shrink_to_fit();
  CutSlices(ThreadsPerPanel(problem), caches);
}

void VectorCsr::PackTile(const CsrMatrix& matrix, const uint32_t* rows) {
  int64_t block = 0;
  uint32_t next[kRows];
  for (int r = 0; r < kRows; ++r) next[r] = matrix.row_offsets[rows[r]];
  entry_begin_.push_back(static_cast<uint32_t>(offsets_.size()));
  for (uint32_t column : TileColumns(matrix, rows)) {
    for (; column >= BlockBegin(block + 1); ++block) entry_begin_.push_back(static_cast<uint32_t>(offsets_.size()));
    offsets_.push_back(static_cast<uint32_t>((column - BlockBegin(block)) * kOffsetUnit));
    for (int r = 0; r < kRows; ++r) {
      const bool is_entry = next[r] < matrix.row_offsets[rows[r] + 1] && matrix.col_indices[next[r]] == column;
      weights_.push_back(is_entry ? matrix.values[next[r]++] : 0.0f);
    }
  }
  for (++block; block < blocks_; ++block) entry_begin_.push_back(static_cast<uint32_t>(offsets_.size()));
}

void VectorCsr::CutSlices(int threads, const CacheSizes& caches) {
  const auto tiles = static_cast<int64_t>(rows_.size()) / kRows;
  const auto bytes = static_cast<int64_t>(weights_.size() * sizeof(float));
  const int64_t slices = std::clamp<int64_t>(tiles / kMinSliceTiles, 1, WeightSlices(bytes, threads, caches));
  // A tile counts one entry more than it has, for its store.
  const int64_t total = EntryBegin(tiles, 0) + tiles;
  slice_begin_ = {0};
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t done = EntryBegin(tile, 0) + tile;
    if (done * slices >= total * static_cast<int64_t>(slice_begin_.size())) slice_begin_.push_back(tile);
  }
  slice_begin_.resize(slices, tiles);
  slice_begin_.push_back(tiles);
}

size_t VectorCsr::bytes() const {
  const size_t indices = rows_.size() + entry_begin_.size() + offsets_.size();
  return slice_begin_.size() * sizeof(int64_t) + indices * sizeof(uint32_t) +
         (weights_.size() + bias_.size()) * sizeof(float);
}

}  // namespace swizzle::cpu
