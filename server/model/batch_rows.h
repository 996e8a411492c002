// The rows of a batch's requests, one after the other, of which some are computed at once.
#ifndef SWIZZLE_SERVER_MODEL_BATCH_ROWS_H_
#define SWIZZLE_SERVER_MODEL_BATCH_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/model/model.h"

namespace swizzle {

struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};

// Single-owner; the batch outlives it.
class BatchRows {
 public:
  // rows: of each request, at least one.
  BatchRows(std::span<BatchItem> batch, std::vector<int64_t> rows);

  int64_t total() const { return total_; }
  std::span<const int64_t> of_items() const { return rows_; }

  // Sets `pieces` to where these rows of an input lie: one for each request that has some of them.
  void PiecesOf(size_t input, RowRange range, std::vector<std::span<const std::byte>>& pieces) const;
  // Appends the bytes of these rows to what the requests have of an output.
  void Append(size_t output, RowRange range, std::span<const std::byte> bytes) const;

 private:
  // Calls each(item, its rows, those of the range) for each request that has some.
  template <typename Each>
  void ForEachPart(RowRange range, const Each& each) const;

  const std::span<BatchItem> batch_;
  const std::vector<int64_t> rows_;
  int64_t total_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_BATCH_ROWS_H_
