// The operators that the graph of a model of token sequences may have when it is read.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_OPERATORS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_OPERATORS_H_

#include <string_view>

#include "model_loader/graph/operators.h"

namespace swizzle {

// Of the ONNX standard and of com.microsoft, and the canonical ones. Null if there is no such operator.
const OperatorSpec* FindSequenceOperator(std::string_view domain, std::string_view op);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_OPERATORS_H_
