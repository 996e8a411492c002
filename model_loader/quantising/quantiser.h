// Quantises a trained network: weights to INT8 by rows, zeros staying zeros, and activations to UINT8 by what was seen
// of them. Free functions on value types.
//
// An activation is quantised where a layer that has whole numbers reads it, weights where a convolution reads such an
// activation. Softmax, functions and products stay in real numbers, and so do the outputs of the network.
#ifndef SWIZZLE_MODEL_LOADER_QUANTISING_QUANTISER_H_
#define SWIZZLE_MODEL_LOADER_QUANTISING_QUANTISER_H_

#include <span>
#include <string>
#include <vector>

#include "model_loader/network/network.h"
#include "model_loader/quantising/observer.h"

namespace swizzle {

struct QuantiseOptions {
  ObserverKind observer = ObserverKind::kMinMax;
  std::vector<std::string> skip;  // patterns of layers' names, with * ? and [ ] as in a shell; * also matches a slash
};

// What became of a layer with a weight.
struct QuantisedLayer {
  std::string name;
  int layer = -1;
  bool skipped = false;        // else in whole numbers
  double weight_decibels = 0;  // signal to noise of its weight's numbers, and of those of its input
  double input_decibels = 0;
};

// `observers`: what was seen of each value. Biases take up the mean of what the rounding of weights adds. UNIMPLEMENTED
// for networks of token sequences, INVALID_ARGUMENT if a pattern matches no layer. REQUIRES: a validated network
// without quantisation. The result is valid.
StatusOr<std::vector<QuantisedLayer>> QuantiseNetwork(Network& network, std::span<const Observer> observers,
                                                      const QuantiseOptions& options);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_QUANTISING_QUANTISER_H_
