// A planned network's inputs from arrays of files: names, types, shapes and ranges are checked, so that what comes out
// can be run. Free functions; errors name the input.
#ifndef SWIZZLE_MODEL_LOADER_PACK_INPUT_ARRAYS_H_
#define SWIZZLE_MODEL_LOADER_PACK_INPUT_ARRAYS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "model_loader/files/npz.h"
#include "model_loader/pack/network_runner.h"

namespace swizzle::pack {

// INVALID_ARGUMENT where an array is of no port, or a port has no array.
template <typename Port>
Status CheckNames(const NpyArrays& arrays, const std::vector<Port>& ports) {
  std::string names;
  for (const Port& port : ports) names += Concat(names.empty() ? "'" : ", '", port.name, "'");
  for (const auto& array : arrays) {
    const std::string& name = array.first;
    const bool known = std::any_of(ports.begin(), ports.end(), [&](const Port& p) { return p.name == name; });
    if (!known) return InvalidArgument("the model has no input '", name, "'; it has ", names);
  }
  for (const Port& port : ports) {
    if (!arrays.contains(port.name)) return InvalidArgument("input '", port.name, "' is missing");
  }
  return {};
}

// The number of rows: the network's own batch where that is fixed, else the first dimension of its first input.
// REQUIRES, here and below: arrays that CheckNames took.
StatusOr<int64_t> BatchOf(const NpyArrays& arrays, const Network& network);

// The length of the sequences, from the second dimension of the first input; 0 where there are none, or it is fixed.
StatusOr<int64_t> LengthOf(const NpyArrays& arrays, const Network& network);

// The elements of an array that has the port's type and this shape, in its order.
StatusOr<std::vector<float>> Floats(const NpyArray& array, const NetworkPort& port, const Shape& shape);

// That ids of input i are in their tables, and masks 0 or 1.
Status CheckRange(const NetworkRunner& runner, int i, const std::vector<float>& elements);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_INPUT_ARRAYS_H_
