#include "server/batching/batch.h"

#include <cstddef>

namespace swizzle {

void Batch::MakeItems() {
  rows = 0;
  items.clear();
  results.clear();
  results.resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i]->request;
    items.push_back({request.inputs, request.rows, &results[i].outputs, &results[i].shapes, request.answers});
    rows += request.rows;
  }
}

int64_t PositionsOf(const Request& request) {
  if (request.tokens > 0) return request.tokens;
  if (request.inputs.empty()) return request.rows;
  const Shape& shape = request.inputs.front().shape;
  int64_t positions = shape.empty() ? 1 : shape.front();
  for (size_t i = 2; i < shape.size(); ++i) {
    // Possible where another dimension is 0: there is nothing to compute.
    if (__builtin_mul_overflow(positions, shape[i], &positions)) return 0;
  }
  return positions;
}

}  // namespace swizzle
