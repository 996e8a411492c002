// Small networks with drawn weights, for tests that need something whole to plan, pack or serve.
#ifndef SWIZZLE_TESTS_SUPPORT_RANDOM_NETWORK_H_
#define SWIZZLE_TESTS_SUPPORT_RANDOM_NETWORK_H_

#include <cstdint>

#include "model_loader/network/network.h"
#include "tests/support/network_builder.h"

namespace swizzle::testing {

struct RandomNetworkOptions {
  uint32_t seed = 1;
  double sparsity = 0.9;   // of the 1x1 convolutions, stored as CSR; 0: stored dense
  int64_t batch_size = 0;  // 0: free
  int64_t image = 14;      // height and width of the input "image"
  int64_t input_channels = 3;
};

// Every layer kind once or more, in MobileNetV2's order: a strided stem, an inverted residual block whose projection
// adds the residual in its epilogue, a standalone Add and Activation, both pools, a strided depthwise convolution, a
// flatten, a linear layer and a softmax. Output "probabilities", [10].
Network MakeRandomNetwork(const RandomNetworkOptions& options);

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_RANDOM_NETWORK_H_
