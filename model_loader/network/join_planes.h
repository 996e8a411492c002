// A network of images and one of token sequences as one: a stem whose positions are the other's tokens.
#ifndef SWIZZLE_MODEL_LOADER_NETWORK_JOIN_PLANES_H_
#define SWIZZLE_MODEL_LOADER_NETWORK_JOIN_PLANES_H_

#include <cstddef>

#include "kernels/format/dense.h"
#include "model_loader/network/network.h"

namespace swizzle {

// The network of `stem`'s layers and then `encoder`'s, whose input `port` is made of the positions of the stem's only
// output (Op::kPlaneTokens) and `added`, [length, channels]. Vectors that the encoder adds to it by position go into
// these. Its inputs are the stem's and then the encoder's others, its outputs and its batch size the encoder's.
// REQUIRES: both are valid; the stem's batch is free; the encoder's sequences have a fixed length and neither a mask
// nor counted positions, and its input `port` is FP32. The result is to be validated.
Network JoinPlanes(Network stem, Network encoder, size_t port, DenseMatrix added);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_NETWORK_JOIN_PLANES_H_
