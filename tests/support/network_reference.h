// What a network computes, by the kernels' double-precision references: the truth for lowering, plans and packed files.
#ifndef SWIZZLE_TESTS_SUPPORT_NETWORK_REFERENCE_H_
#define SWIZZLE_TESTS_SUPPORT_NETWORK_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle::testing {

// Every output of `network` for `batch` rows. `inputs` are row-major, one per port. Activations are rounded to float
// between layers. REQUIRES: a validated network; inputs of the ports' sizes; the network's batch size where that is
// fixed.
std::vector<std::vector<float>> EvaluateNetwork(const Network& network, const std::vector<std::vector<float>>& inputs,
                                                int64_t batch);

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_NETWORK_REFERENCE_H_
