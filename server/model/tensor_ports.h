// Which inputs and outputs of a model the tensors of a specification are: a configuration may have them in another
// order, leave outputs out, and leave dimensions open.
#ifndef SWIZZLE_SERVER_MODEL_TENSOR_PORTS_H_
#define SWIZZLE_SERVER_MODEL_TENSOR_PORTS_H_

#include <span>
#include <string>
#include <vector>

#include "server/model/model.h"

namespace swizzle {

// An input or output as the model itself has it.
struct ModelPort {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape dims;  // as a specification with this max_batch_size has them; -1: any
};

// For each tensor of a specification the index of its port.
struct PortMap {
  std::vector<int> inputs, outputs;
};

// Whether a configured tensor says of its dimensions what the model does; -1 says nothing.
bool DimsFit(const Shape& expected, const Shape& configured);

// Dimensions of the specification that are -1 become those of the model. INVALID_ARGUMENT, naming model and tensor, if
// the two do not fit, or an input is missing.
StatusOr<PortMap> ResolvePorts(ModelSpec& spec, std::span<const ModelPort> inputs, std::span<const ModelPort> outputs);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_TENSOR_PORTS_H_
