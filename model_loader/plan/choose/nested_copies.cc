#include "model_loader/plan/choose/nested_copies.h"

#include <algorithm>
#include <vector>

#include "kernels/base/layout.h"

namespace swizzle {
namespace {

// By value: who makes and reads it.
class Uses {
 public:
  Uses(const Network& network, const LayerCandidates& candidates)
      : network_(network), candidates_(candidates), values_(network.values.size()) {
    for (size_t i = 0; i < network.layers.size(); ++i) {
      values_[network.layers[i].output].maker = static_cast<int>(i);
      for (const int value : network.layers[i].inputs) values_[value].readers.push_back(i);
    }
    for (const auto* const ports : {&network.inputs, &network.outputs}) {
      for (const NetworkPort& port : *ports) {
        if (port.value != -1) values_[port.value].is_port = true;
      }
    }
  }

  // How much of a Concat, or a Slice, has to be copied between values that are stored so.
  double CopiedShare(size_t layer, Storage storage) const {
    const Layer& copy = network_.layers[layer];
    if (copy.op == Op::kSlice) return values_[copy.inputs[0]].is_port || !MayLieIn(copy.output, storage) ? 1.0 : 0.0;
    if (copy.parts().of_planes || values_[copy.output].is_port) return 1.0;
    int64_t copied = 0;
    for (size_t i = 0; i < copy.inputs.size(); ++i) {
      const bool again =
          std::find(copy.inputs.begin(), copy.inputs.begin() + i, copy.inputs[i]) != copy.inputs.begin() + i;
      if (again || InEarlierConcat(copy.inputs[i], layer) || !MayLieIn(copy.inputs[i], storage)) {
        copied += network_.values[copy.inputs[i]].channels;
      }
    }
    return static_cast<double>(copied) / static_cast<double>(network_.values[copy.output].channels);
  }

 private:
  struct Value {
    int maker = -1;
    std::vector<size_t> readers;
    bool is_port = false;
  };

  bool InEarlierConcat(int value, size_t layer) const {
    return std::ranges::any_of(values_[value].readers, [&](size_t reader) {
      return reader < layer && network_.layers[reader].op == Op::kConcat;
    });
  }

  // Whether one of the layer's kernels takes, or writes, the value with a pitch. Of convolutions that read windows
  // those which do are slow.
  bool HasPitched(size_t layer, Storage storage, bool writes) const {
    const Layer& at = network_.layers[layer];
    if (!writes && at.op == Op::kConv && !at.window().IsPointwise()) return false;
    return std::ranges::any_of(candidates_[layer], [&](const Candidate& candidate) {
      if (candidate.kernel == nullptr) return false;
      if ((writes ? candidate.output : candidate.input) != storage) return false;
      const Problem problem = AsRowSolves(*candidate.kernel, LayerProblem(network_, at, 1, 1));
      auto* const takes = writes ? candidate.kernel->writes_pitched : candidate.kernel->reads_pitched;
      return takes != nullptr && takes(problem);
    });
  }

  bool MayLieIn(int value, Storage storage) const {
    const Value& uses = values_[value];
    if (uses.is_port) return false;
    if (storage.layout != Layout::kNhwc) return true;
    if (network_.values[value].channels * ElementBytes(storage.dtype) % kPitchAlignment != 0) return false;
    return uses.maker != -1 && HasPitched(uses.maker, storage, true) &&
           std::ranges::all_of(uses.readers, [&](size_t reader) { return HasPitched(reader, storage, false); });
  }

  const Network& network_;
  const LayerCandidates& candidates_;
  std::vector<Value> values_;
};

bool IsOfDevices(Layout layout) {
  return layout == Layout::kRows || layout == Layout::kBatched || layout == Layout::kNhwc;
}

}  // namespace

void LeaveOutNestedCopies(const Network& network, LayerCandidates& candidates) {
  const Uses uses(network, candidates);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (network.layers[i].op != Op::kConcat && network.layers[i].op != Op::kSlice) continue;
    for (Candidate& candidate : candidates[i]) {
      if (candidate.input != candidate.output || !IsOfDevices(candidate.input.layout)) continue;
      candidate.copied = uses.CopiedShare(i, candidate.input);
      for (double& time : candidate.microseconds) time *= candidate.copied;
    }
  }
}

}  // namespace swizzle
