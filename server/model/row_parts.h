// A request of more rows than a batch takes, in parts that batches take, and their results put together again.
#ifndef SWIZZLE_SERVER_MODEL_ROW_PARTS_H_
#define SWIZZLE_SERVER_MODEL_ROW_PARTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "server/model/model.h"
#include "server/model/request.h"

namespace swizzle {

// How many rows each part has, but for the last; all of them where the request is no more than a batch takes.
// REQUIRES: inputs are as the specification says, but for the number of rows.
int64_t RowsOfParts(const ModelSpec& spec, const Request& request);

// Rows [first, first + rows) of inputs that have `all`. INVALID_ARGUMENT where an input of BYTES, whose elements are of
// any length, would have to be cut.
Status TakeRows(const ModelSpec& spec, std::span<const TensorView> inputs, int64_t first, int64_t rows,
                std::vector<TensorView>& part);

struct RowResults {
  std::vector<std::string> outputs;
  std::vector<Shape> shapes;
};
// Puts the rows of the next part behind those that are there, of `all` rows in the end. INTERNAL where outputs of parts
// differ in more than rows.
Status AppendRows(const ModelSpec& spec, RowResults part, int64_t all, std::vector<std::string>& outputs,
                  std::vector<Shape>& shapes);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_ROW_PARTS_H_
