// Makes whole numbers of a drawn network, as if its activations were normal: for times, and for plans that are held
// against each other. What it computes is not near what the network did.
#ifndef SWIZZLE_TESTS_SUPPORT_DRAWN_QUANTISATION_H_
#define SWIZZLE_TESTS_SUPPORT_DRAWN_QUANTISATION_H_

#include "model_loader/network/network.h"

namespace swizzle::testing {

// Over tokens, the weights of linear layers alone.
Status QuantiseDrawn(Network& network);

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_DRAWN_QUANTISATION_H_
