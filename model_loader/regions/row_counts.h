// How many rows the inputs of a region have, which may differ where a dimension that counts them is 1: it is repeated
// then, as ONNX's operators do with what they read.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_ROW_COUNTS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_ROW_COUNTS_H_

#include <optional>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "model_loader/interpreter/values/array.h"
#include "model_loader/interpreter/values/device.h"
#include "model_loader/network/network.h"

namespace swizzle::regions {

// Value type.
class RowCounts {
 public:
  // `own`: the dimensions that count the rows of each input of the network, equally many of each. INVALID_ARGUMENT
  // where those that an output is computed of don't broadcast.
  static StatusOr<RowCounts> Of(std::vector<Shape> own, const Network& network);

  // Those of each output: what the inputs that it is computed of are repeated to.
  const std::vector<Shape>& of_outputs() const { return of_outputs_; }
  // What the network is run on, so that each output has its rows in one of the runs, or more of them that repeat. One,
  // but where outputs have nothing in common but rows of 1. None has an extent of 0, and outputs that do, need none.
  const std::vector<Shape>& runs() const { return runs_; }
  // The run that makes an output. REQUIRES: it has rows.
  size_t RunOf(size_t output) const;
  // Of the largest run; 0 where there is none.
  StatusOr<int64_t> most_rows() const;

 private:
  std::vector<Shape> of_outputs_, runs_;
};

// Where a region's rows lie, and what copies them.
struct RowPlace {
  interpreter::Memory& memory;
  Stream& stream;
  interpreter::Device* device;  // null: the host
};

// The array with its leading dimensions repeated to these, or cut down to their first elements; itself where they are
// so. Of an empty one any elements, on the host zeros, and where neither broadcasts to the other, of some of its rows.
// REQUIRES: the result is not empty.
StatusOr<interpreter::Array> WithRows(const interpreter::Array& array, const Shape& leading, const RowPlace& place);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_ROW_COUNTS_H_
