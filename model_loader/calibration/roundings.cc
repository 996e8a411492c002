#include "model_loader/calibration/roundings.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>

namespace swizzle {
namespace {

// What gives nothing but numbers that it reads.
constexpr std::array<std::string_view, 6> kMoves = {"Concat",  "DepthToSpace", "GlobalMaxPool",
                                                    "MaxPool", "Slice",        "Split"};
// What computes whole numbers of such; Sigmoid and HardSigmoid where they are not half of a SiLU or HardSwish.
constexpr std::array<std::string_view, 8> kComputes = {
    "Add", "AveragePool", "GlobalAveragePool", "HardSigmoid", "HardSwish", "LeakyRelu", "Mul", "Sigmoid"};
// What the layer before it does to its own result.
constexpr std::array<std::string_view, 2> kClamps = {"Clip", "Relu"};

template <size_t kCount>
bool IsOneOf(const Node& node, const std::array<std::string_view, kCount>& ops) {
  return node.domain.empty() && std::ranges::find(ops, node.op) != ops.end();
}

bool Moves(const Node& node) {
  if (IsOneOf(node, kMoves)) return true;
  if (node.op != "Resize" || !node.domain.empty()) return false;
  const auto mode = StringAttribute(node, "mode", "nearest");
  return mode.ok() && *mode == "nearest";
}

class Search {
 public:
  Search(const Graph& graph, const std::function<bool(const Node&)>& is_whole,
         const std::function<bool(int)>& is_constant, const std::function<bool(int)>& is_plane)
      : graph_(graph),
        is_whole_(is_whole),
        is_constant_(is_constant),
        is_plane_(is_plane),
        rounded_(graph.values.size()),
        wanted_(graph.values.size()),
        alike_(graph.values.size()) {
    std::iota(alike_.begin(), alike_.end(), 0);
    for (const Node& node : graph.nodes) {
      for (const int output : node.outputs) {
        if (output != kNoValue) makers_[output] = &node;
      }
    }
  }

  std::vector<int> Run() {
    for (size_t n = graph_.nodes.size(); n-- > 0;) Visit(graph_.nodes[n]);
    std::vector<int> found(graph_.values.size(), -1);
    for (int value = 0; value < std::ssize(found); ++value) {
      if (rounded_[static_cast<size_t>(value)]) found[static_cast<size_t>(value)] = OneOf(value);
    }
    return found;
  }

 private:
  void Visit(const Node& node) {
    if (is_whole_(node)) {
      rounded_[static_cast<size_t>(node.inputs[0])] = true;
      // Before a product with a matrix stand norms and functions that are written out.
      if (node.op == "Conv") Round(node.inputs[0]);
      return;
    }
    const bool wanted = std::ranges::any_of(
        node.outputs, [&](int output) { return output != kNoValue && wanted_[static_cast<size_t>(output)]; });
    if (!wanted) return;
    if (IsOneOf(node, kClamps)) {
      wanted_[static_cast<size_t>(node.inputs[0])] = true;
    } else if (Moves(node)) {
      Join(node);
    } else if (const int base = Gated(node); base != kNoValue) {
      RoundPlane(base);
    } else if (IsOneOf(node, kComputes) && !IsGate(node) && !IsOfAFunction(node)) {
      for (const int input : node.inputs) RoundPlane(input);
    }
  }

  void Round(int value) {
    rounded_[static_cast<size_t>(value)] = true;
    wanted_[static_cast<size_t>(value)] = true;
  }
  void RoundPlane(int value) {
    if (value != kNoValue && !is_constant_(value) && is_plane_(value)) Round(value);
  }

  // Its inputs and outputs are of one scale.
  void Join(const Node& node) {
    int first = kNoValue;
    for (const std::vector<int>* const list : {&node.inputs, &node.outputs}) {
      for (const int value : *list) {
        if (value == kNoValue || is_constant_(value) || !is_plane_(value)) continue;
        Round(value);
        if (first == kNoValue) first = value;
        alike_[static_cast<size_t>(OneOf(value))] = OneOf(first);
      }
    }
  }

  int OneOf(int value) {
    while (alike_[static_cast<size_t>(value)] != value) value = alike_[static_cast<size_t>(value)];
    return value;
  }

  // Of x * sigmoid(x) and x * hard_sigmoid(x), x; else kNoValue.
  int Gated(const Node& node) const {
    if (node.op != "Mul" || !node.domain.empty()) return kNoValue;
    for (const size_t gate : {0, 1}) {
      const auto maker = makers_.find(node.inputs[gate]);
      if (maker == makers_.end()) continue;
      const bool is_sigmoid = maker->second->op == "Sigmoid" || maker->second->op == "HardSigmoid";
      if (is_sigmoid && maker->second->inputs[0] == node.inputs[1 - gate]) return node.inputs[1 - gate];
    }
    return kNoValue;
  }

  // Whether the node is the sigmoid of such a product.
  bool IsGate(const Node& node) const {
    if (node.op != "Sigmoid" && node.op != "HardSigmoid") return false;
    return std::ranges::any_of(graph_.nodes, [&](const Node& other) {
      return Gated(other) == node.inputs[0] && std::ranges::find(other.inputs, node.outputs[0]) != other.inputs.end();
    });
  }

  // Whether it may be part of a function that is written out, which is one step to plans as long as nothing is rounded
  // within: a sum with a constant, or a product of anything but a factor by channel.
  bool IsOfAFunction(const Node& node) const {
    if (node.op != "Add" && node.op != "Mul") return false;
    if (std::ranges::any_of(node.inputs, is_constant_)) return true;
    if (node.op == "Add") return false;
    return std::ranges::none_of(node.inputs, [&](int input) {
      const auto maker = makers_.find(input);
      return maker != makers_.end() && (maker->second->op == "Sigmoid" || maker->second->op == "HardSigmoid");
    });
  }

  const Graph& graph_;
  const std::function<bool(const Node&)>& is_whole_;
  const std::function<bool(int)>& is_constant_;
  const std::function<bool(int)>& is_plane_;
  std::map<int, const Node*> makers_;
  // By value.
  std::vector<bool> rounded_;
  std::vector<bool> wanted_;  // what makes it reads whole numbers if it can
  std::vector<int> alike_;    // another of the same scale, or itself
};

}  // namespace

bool IsWeightedLayer(const Node& node, const std::function<bool(int)>& is_constant) {
  const bool multiplies = node.op == "Conv" || node.op == "Gemm" || node.op == "MatMul";
  return multiplies && node.domain.empty() && is_constant(node.inputs[1]) && !is_constant(node.inputs[0]);
}

std::vector<int> FindRoundings(const Graph& graph, const std::function<bool(const Node&)>& is_whole,
                               const std::function<bool(int)>& is_constant, const std::function<bool(int)>& is_plane) {
  return Search(graph, is_whole, is_constant, is_plane).Run();
}

}  // namespace swizzle
