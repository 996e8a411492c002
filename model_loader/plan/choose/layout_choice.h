// Which candidate each layer takes, so that kernels and the conversions between them together cost least.
//
// A layer's fastest kernel may want a layout, or a type, that its neighbours don't: then the conversion counts against
// it. The choice is exact: a dynamic programme over the layers in order, whose states are how the values are stored
// that are still to be read. Networks with few values alive at once (all CNNs) have few states; past kMaxStates the
// dearest are dropped.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LAYOUT_CHOICE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LAYOUT_CHOICE_H_

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kernels/base/storage.h"

namespace swizzle {

// One way to run a layer. Cost is in any unit, as long as it is the same everywhere.
struct LayerOption {
  Storage input = {};   // of every input but the residual
  Storage output = {};  // and of the residual
  double cost = 0.0;
  std::optional<Storage> residual = {};  // where it is stored otherwise
};

struct LayerOptions {
  std::vector<int> inputs;  // values
  bool residual = false;    // inputs[1] is stored as the output
  int output = -1;          // value
  std::vector<LayerOption> options;

  Storage InputStorage(size_t input, const LayerOption& option) const {
    return residual && input == 1 ? option.residual.value_or(option.output) : option.input;
  }
};

// Cost of storing a value in another way; infinite where nothing does.
using ConversionCost = std::function<double(int value, Storage from, Storage to)>;

// A value, and how it is stored.
struct StoredValue {
  int value = -1;
  Storage storage = {};
};

// The index of the option that each layer takes. Inputs arrive, and outputs have to leave, as they are said to.
// REQUIRES: every layer has an option; layers stand in execution order.
std::vector<int> ChooseOptions(std::span<const LayerOptions> layers, std::span<const StoredValue> network_inputs,
                               std::span<const StoredValue> network_outputs, const ConversionCost& conversion_cost);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LAYOUT_CHOICE_H_
