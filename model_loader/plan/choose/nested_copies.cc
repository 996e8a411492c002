#include "model_loader/plan/choose/nested_copies.h"

#include <algorithm>
#include <vector>

#include "kernels/base/layout.h"

namespace swizzle {
namespace {

// By value: who reads it.
class Uses {
 public:
  explicit Uses(const Network& network) : network_(network), values_(network.values.size()) {
    for (size_t i = 0; i < network.layers.size(); ++i) {
      for (const int value : network.layers[i].inputs) values_[value].readers.push_back(i);
    }
    for (const auto* const ports : {&network.inputs, &network.outputs}) {
      for (const NetworkPort& port : *ports) {
        if (port.value != -1) values_[port.value].is_port = true;
      }
    }
  }

  // How much of a Concat, or a Slice, has to be copied where values may nest.
  double CopiedShare(size_t layer) const {
    const Layer& copy = network_.layers[layer];
    if (copy.op == Op::kSlice) return values_[copy.inputs[0]].is_port || values_[copy.output].is_port ? 1.0 : 0.0;
    if (copy.parts().of_planes || values_[copy.output].is_port) return 1.0;
    int64_t copied = 0;
    for (size_t i = 0; i < copy.inputs.size(); ++i) {
      const bool again =
          std::find(copy.inputs.begin(), copy.inputs.begin() + i, copy.inputs[i]) != copy.inputs.begin() + i;
      if (again || InEarlierConcat(copy.inputs[i], layer) || values_[copy.inputs[i]].is_port) {
        copied += network_.values[copy.inputs[i]].channels;
      }
    }
    return static_cast<double>(copied) / static_cast<double>(network_.values[copy.output].channels);
  }

 private:
  struct Value {
    std::vector<size_t> readers;
    bool is_port = false;
  };

  bool InEarlierConcat(int value, size_t layer) const {
    return std::ranges::any_of(values_[value].readers, [&](size_t reader) {
      return reader < layer && network_.layers[reader].op == Op::kConcat;
    });
  }

  const Network& network_;
  std::vector<Value> values_;
};

bool Nests(Layout layout) { return layout == Layout::kRows || layout == Layout::kBatched; }

}  // namespace

void LeaveOutNestedCopies(const Network& network, LayerCandidates& candidates) {
  const Uses uses(network);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (network.layers[i].op != Op::kConcat && network.layers[i].op != Op::kSlice) continue;
    for (Candidate& candidate : candidates[i]) {
      if (candidate.input != candidate.output || !Nests(candidate.input.layout)) continue;
      const double share = uses.CopiedShare(i);
      for (double& time : candidate.microseconds) time *= share;
    }
  }
}

}  // namespace swizzle
