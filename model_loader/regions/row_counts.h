// How many rows the inputs of a region have, which may differ where a dimension that counts them is 1: it is repeated
// then, as ONNX's operators do with what they read.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_ROW_COUNTS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_ROW_COUNTS_H_

#include <optional>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "model_loader/fallback/array.h"
#include "model_loader/fallback/device.h"
#include "model_loader/network/network.h"

namespace swizzle::regions {

// Value type.
class RowCounts {
 public:
  // `own`: the dimensions that count the rows of each input of the network, equally many of each. INVALID_ARGUMENT
  // where they don't broadcast.
  static StatusOr<RowCounts> Of(std::vector<Shape> own);

  // What all are repeated to, and how many rows that is.
  const Shape& all() const { return all_; }
  StatusOr<int64_t> rows() const { return ElementCount(all_); }
  bool AreAlike() const { return alike_; }
  // Those of each output: what the inputs that it is computed of are repeated to.
  std::vector<Shape> OfOutputs(const Network& network) const;

 private:
  std::vector<Shape> own_;
  Shape all_;
  bool alike_ = true;
};

// Where a region's rows lie, and what copies them.
struct RowPlace {
  fallback::Memory& memory;
  Stream& stream;
  fallback::Device* device;  // null: the host
};

// The array with its leading dimensions repeated to these, or cut down to their first elements; itself where they are
// so. Of an empty one any elements, on the host zeros. REQUIRES: the result is not empty, and one of the two broadcasts
// to the other.
StatusOr<fallback::Array> WithRows(const fallback::Array& array, const Shape& leading, const RowPlace& place);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_ROW_COUNTS_H_
