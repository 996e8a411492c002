// Which candidate each layer takes, so that kernels and the layout conversions between them together cost least.
//
// A layer's fastest kernel may want a layout that its neighbours don't: then the conversion counts against it. The
// choice is exact: a dynamic programme over the layers in order, whose states are the layouts of the values still to be
// read. Networks with few values alive at once (all CNNs) have few states; past kMaxStates the dearest are dropped.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LAYOUT_CHOICE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LAYOUT_CHOICE_H_

#include <functional>
#include <span>
#include <vector>

#include "kernels/base/layout.h"

namespace swizzle {

// One way to run a layer. Cost is in any unit, as long as it is the same everywhere.
struct LayerOption {
  Layout input = Layout::kNchw;   // of every input but the residual
  Layout output = Layout::kNchw;  // and of the residual
  double cost = 0.0;
};

struct LayerOptions {
  std::vector<int> inputs;  // values
  bool residual = false;    // inputs[1] is read in the output's layout
  int output = -1;          // value
  std::vector<LayerOption> options;

  Layout InputLayout(size_t input, const LayerOption& option) const {
    return residual && input == 1 ? option.output : option.input;
  }
};

// Cost of converting a value from one layout to another; 0 where they are equal.
using ConversionCost = std::function<double(int value, Layout from, Layout to)>;

// The index of the option that each layer takes. The network's inputs arrive, and its outputs leave, in kNchw.
// REQUIRES: every layer has an option; layers stand in execution order.
std::vector<int> ChooseOptions(std::span<const LayerOptions> layers, std::span<const int> network_inputs,
                               std::span<const int> network_outputs, const ConversionCost& conversion_cost);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LAYOUT_CHOICE_H_
