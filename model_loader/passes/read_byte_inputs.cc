#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/elements.h"

namespace swizzle {
namespace {

// What moves elements without looking at them.
constexpr std::string_view kMoves[] = {"Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"};

class ByteInputs {
 public:
  explicit ByteInputs(Graph& graph) : graph_(graph), rewriter_(graph) {}

  StatusOr<int> Run() {
    int count = 0;
    for (const int input : graph_.inputs) {
      if (graph_.values[input].dtype != DType::kUint8) continue;
      moved_.clear();
      casts_.clear();
      SWIZZLE_ASSIGN_OR_RETURN(const bool becomes_real, Follow(input));
      if (!becomes_real || casts_.empty()) continue;
      BecomeReal(input);
      ++count;
    }
    rewriter_.Finish();
    return count;
  }

 private:
  // Whether all that is done with the value's bytes ends in casts to FP32: collects these, and the values before them.
  StatusOr<bool> Follow(int value) {
    if (rewriter_.IsGraphOutput(value)) return false;
    moved_.push_back(value);
    for (const int reader : rewriter_.Readers(value)) {
      const Node& node = rewriter_.node(reader);
      if (!node.domain.empty() || node.outputs[0] == kNoValue) return false;
      if (node.op == "Shape") continue;
      if (node.op == "Cast") {
        if (FoldableCastType(node) != DType::kFloat32) return false;
        casts_.push_back(reader);
        continue;
      }
      const bool moves = std::ranges::find(kMoves, node.op) != std::end(kMoves);
      if (!moves || std::ranges::count(node.inputs, value) != 1 || node.inputs[0] != value) return false;
      SWIZZLE_ASSIGN_OR_RETURN(const bool becomes_real, Follow(node.outputs[0]));
      if (!becomes_real) return false;
    }
    return true;
  }

  void BecomeReal(int input) {
    for (const int value : moved_) graph_.values[value].dtype = DType::kFloat32;
    graph_.values[input].wholes = WholeNumbers{{DType::kUint8, {1.0f}, {}}};
    graph_.values[input].arrives_whole = true;
    for (const int cast : casts_) {
      const Node& node = rewriter_.node(cast);
      rewriter_.ReplaceReads(node.outputs[0], node.inputs[0]);
      rewriter_.Erase(cast);
    }
  }

  Graph& graph_;
  Rewriter rewriter_;
  std::vector<int> moved_, casts_;
};

}  // namespace

StatusOr<int> ReadByteInputs(Graph& graph) { return ByteInputs(graph).Run(); }

}  // namespace swizzle
