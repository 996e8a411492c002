#include "tests/support/network_reference.h"

#include "kernels/reference/reference.h"

namespace swizzle::testing {

std::vector<std::vector<float>> EvaluateNetwork(const Network& network, const std::vector<std::vector<float>>& inputs,
                                                int64_t batch) {
  std::vector<std::vector<float>> values(network.values.size());
  for (size_t i = 0; i < network.inputs.size(); ++i) values[network.inputs[i].value] = inputs[i];
  for (const Layer& layer : network.layers) {
    const std::vector<float>& input = values[layer.inputs[0]];
    if (layer.op == Op::kReshape) {
      values[layer.output] = input;
      continue;
    }
    const Weight* weight = layer.weight < 0 ? nullptr : &network.weights[layer.weight];
    std::vector<std::vector<float>> operands;
    for (const int operand : layer.inputs) operands.push_back(values[operand]);
    const auto result = reference::Solve(LayerProblem(network, layer, batch, 1), weight, operands);
    values[layer.output].assign(result.begin(), result.end());
  }
  std::vector<std::vector<float>> outputs;
  for (const NetworkPort& port : network.outputs) outputs.push_back(values[port.value]);
  return outputs;
}

}  // namespace swizzle::testing
