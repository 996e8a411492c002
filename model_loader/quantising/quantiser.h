// Quantises a trained network: weights to INT8 by rows, zeros staying zeros, and activations to UINT8 by what was seen
// of them, or, over tokens, each token when the network runs. Free functions on value types.
//
// An activation is quantised where a layer that has whole numbers reads it, weights where a convolution reads such an
// activation. Values of which one has nothing but numbers of the other (Concat, Slice, MaxPool, the nearest of a
// Resize) share a scale. Functions and products are of whole numbers where what reads them is. Softmax stays in real
// numbers, and so do the outputs of the network.
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

// `observers`: what was seen of each value. Biases take up the mean of what the rounding of weights adds.
// INVALID_ARGUMENT if a pattern matches no layer. REQUIRES: a validated network without quantisation and token
// sequences. The result is valid.
StatusOr<std::vector<QuantisedLayer>> QuantiseNetwork(Network& network, std::span<const Observer> observers,
                                                      const QuantiseOptions& options);

// The same of a network of token sequences: the weights of linear layers alone, whose input is then quantised when they
// run, each token by a scale of its own. That asks for no calibration, and is at least as near to real numbers as one
// scale for all tokens. Such layers' input_decibels are 0.
StatusOr<std::vector<QuantisedLayer>> QuantiseSequenceNetwork(Network& network, const QuantiseOptions& options);

// Rounds to multiples of a scale, which it returns: 127 of them reach the greatest magnitude. Zeros stay zeros.
float RoundToSteps(std::span<float> values);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_QUANTISING_QUANTISER_H_
