#include "tests/support/random_network.h"

namespace swizzle::testing {
namespace {

// Squeeze-and-excite without its convolutions: every channel times the hard sigmoid of its mean.
int Excite(NetworkBuilder& b, int input) {
  const int factors = b.Function(b.MeanOfPlane(input), {FunctionKind::kHardSigmoid, 0.2f, 0.5f});
  return b.Pointwise(Op::kScale, {input, factors});
}

}  // namespace

Network MakeRandomNetwork(const RandomNetworkOptions& options) {
  NetworkBuilder b(options.seed, options.batch_size);
  const int image = b.Value("image", options.input_channels, options.image, options.image);
  const int stem = b.Conv(image, 16, SquareWindow(3, 2, 1), 0.0, kRelu6);
  int x = b.Conv(stem, 48, SquareWindow(1, 1, 0), options.sparsity, kRelu6);
  x = b.Depthwise(x, SquareWindow(3, 1, 1), kRelu6);
  x = b.Conv(x, 16, SquareWindow(1, 1, 0), options.sparsity, kNoEpilogue, stem);
  x = b.Pointwise(Op::kAdd, {x, stem});
  x = b.Pointwise(Op::kActivation, {x}, kRelu);
  x = b.Pool(Op::kMaxPool, x, SquareWindow(3, 1, 1));
  x = b.Depthwise(x, SquareWindow(3, 2, 1), kRelu6);
  x = b.Function(x, {FunctionKind::kHardSwish, 1.0f / 6, 0.5f});
  x = Excite(b, x);
  x = b.Pointwise(Op::kMultiply, {x, b.Function(x, {FunctionKind::kSigmoid, 0, 0})});
  x = b.Pool(Op::kAveragePool, x, SquareWindow(2, 1, 0));
  x = b.Flatten(b.Transpose(x));
  x = b.Linear(x, 10, 0.0);
  x = b.Pointwise(Op::kSoftmax, {x});
  const NetworkPort input = b.Port(image, "image"), output = b.Port(x, "probabilities");
  Network network = b.Finish();
  network.inputs = {input};
  network.outputs = {output};
  return network;
}

}  // namespace swizzle::testing
