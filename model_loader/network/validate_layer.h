// What Network::Validate asks of each layer, operator by operator: the table of traits and the attributes' types say
// what. Errors do not name the layer. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_NETWORK_VALIDATE_LAYER_H_
#define SWIZZLE_MODEL_LOADER_NETWORK_VALIDATE_LAYER_H_

#include <cstdint>
#include <string>

#include "kernels/base/status.h"
#include "model_loader/network/network.h"

namespace swizzle {

// Bounds that keep every later product of extents, taps, batch and element size within int64, and what a small file
// can make dense within reason.
inline constexpr int64_t kMaxExtent = int64_t{1} << 24;
inline constexpr int64_t kMaxWeightElements = int64_t{1} << 28;

bool SameExtent(const NetworkValue& a, const NetworkValue& b);

// "[3,14,14]"
std::string ExtentText(const NetworkValue& value);

// Whether networks have the operator, its attributes are its own and in range, and its epilogue is one it can have.
Status CheckOperator(const Operator& layer);

// Whether the values fit the operator and each other. REQUIRES: CheckOperator() was OK; inputs, as many as the operator
// takes, and output are values.
Status CheckLayerValues(const Network& network, const Layer& layer);

// REQUIRES: CheckLayerValues() was OK; the layer's operator has a weight.
Status CheckLayerWeight(const Network& network, const Layer& layer, const Weight& weight);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_NETWORK_VALIDATE_LAYER_H_
