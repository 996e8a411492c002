#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

class ByteInputs {
 public:
  explicit ByteInputs(Graph& graph) : graph_(graph), rewriter_(graph) {}

  StatusOr<int> Run() {
    int count = 0;
    for (const int input : graph_.inputs) {
      if (graph_.values[input].dtype != DType::kUint8) continue;
      moved_.clear();
      casts_.clear();
      stands_for_.reset();
      SWIZZLE_ASSIGN_OR_RETURN(const bool becomes_real, Follow(input));
      if (!becomes_real || !stands_for_) continue;
      BecomeReal(input);
      ++count;
    }
    rewriter_.Finish();
    return count;
  }

 private:
  // Whether all that is done with the value's bytes ends in what makes them real numbers, all the same ones: collects
  // these nodes, and the values before them.
  StatusOr<bool> Follow(int value) {
    if (rewriter_.IsGraphOutput(value)) return false;
    moved_.push_back(value);
    for (const int reader : rewriter_.Readers(value)) {
      const Node& node = rewriter_.node(reader);
      if (!node.domain.empty() || node.outputs[0] == kNoValue) return false;
      if (node.op == "Shape") continue;
      if (node.op == "Cast" || node.op == "DequantizeLinear" || node.op == "QLinearConv") {
        const auto stands_for = StandsFor(node, value);
        if (!stands_for || stands_for_.value_or(*stands_for) != *stands_for) return false;
        stands_for_ = stands_for;
        if (node.op != "QLinearConv") casts_.push_back(reader);
        continue;
      }
      const bool moves = std::ranges::find(kMoveOperators, node.op) != kMoveOperators.end();
      if (!moves || std::ranges::count(node.inputs, value) != 1 || node.inputs[0] != value) return false;
      SWIZZLE_ASSIGN_OR_RETURN(const bool becomes_real, Follow(node.outputs[0]));
      if (!becomes_real) return false;
    }
    return true;
  }

  // What bytes stand for in the node, or behind it; nothing where that is not one scale.
  std::optional<Quantisation> StandsFor(const Node& node, int value) const {
    if (node.op == "Cast") {
      return FoldableCastType(node) == DType::kFloat32 ? std::optional(Quantisation{DType::kUint8, {1.0f}, {}})
                                                       : std::nullopt;
    }
    const int scale = node.Input(1), zero_point = node.Input(2);
    if (node.inputs[0] != value || !graph_.IsConstant(scale)) return std::nullopt;
    if (zero_point != kNoValue && !graph_.IsConstant(zero_point)) return std::nullopt;
    const Tensor* const zeros = zero_point == kNoValue ? nullptr : &*graph_.values[zero_point].constant;
    if (zeros != nullptr && zeros->dtype != DType::kUint8) return std::nullopt;
    auto quantisation = QuantisationOf(*graph_.values[scale].constant, zeros, DType::kUint8);
    return quantisation.ok() && quantisation->per_tensor() ? std::optional(*std::move(quantisation)) : std::nullopt;
  }

  void BecomeReal(int input) {
    for (const int value : moved_) graph_.values[value].dtype = DType::kFloat32;
    graph_.values[input].wholes = WholeNumbers{*stands_for_};
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
  std::optional<Quantisation> stands_for_;
};

}  // namespace

StatusOr<int> ReadByteInputs(Graph& graph) { return ByteInputs(graph).Run(); }

}  // namespace swizzle
