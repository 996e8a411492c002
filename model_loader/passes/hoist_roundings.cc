#include <algorithm>
#include <string_view>
#include <utility>

#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/reshape.h"

namespace swizzle {
namespace {

// What picks elements of one or several.
constexpr std::string_view kPicks[] = {"Concat", "DepthToSpace", "Expand",       "Gather", "Pad",
                                       "Resize", "Slice",        "SpaceToDepth", "Split",  "Tile"};

class Hoisting {
 public:
  explicit Hoisting(Graph& graph) : graph_(graph), rewriter_(graph) {}

  int Run() {
    int count = 0;
    for (int i = 0; i < rewriter_.node_count(); ++i) {
      const int back = rewriter_.IsErased(i) ? -1 : BackOf(i);
      if (back < 0 || !IsOfConvolutions(At(back).outputs[0])) continue;
      const int first = FirstMoveBefore(At(i).inputs[0]);
      if (first < 0) continue;
      PutBefore(first, i, back);
      ++count;
    }
    if (count > 0) rewriter_.Finish();
    return count;
  }

 private:
  // The DequantizeLinear that undoes node `index`, a QuantizeLinear by one scale, and alone reads it; else -1.
  int BackOf(int index) {
    const Node& node = At(index);
    if (node.op != "QuantizeLinear" || !node.domain.empty() || !IsNumber(node.Input(1))) return -1;
    if (node.Input(2) != kNoValue && !IsNumber(node.Input(2))) return -1;
    const int reader = rewriter_.SoleReader(node.outputs[0]);
    if (reader < 0) return -1;
    const Node& back = At(reader);
    if (back.op != "DequantizeLinear" || !back.domain.empty() || back.inputs[0] != node.outputs[0]) return -1;
    return IsSame(node.Input(1), back.Input(1)) && IsSame(node.Input(2), back.Input(2)) ? reader : -1;
  }

  bool IsNumber(int value) const { return graph_.IsConstant(value) && graph_.values[value].constant->elements() == 1; }

  bool IsSame(int a, int b) const {
    if (a == b) return true;
    if (a == kNoValue || b == kNoValue || !graph_.IsConstant(b)) return false;
    const Tensor &first = *graph_.values[a].constant, &second = *graph_.values[b].constant;
    return first.dtype == second.dtype && std::ranges::equal(first.bytes, second.bytes);
  }

  // Whether it moves elements in every run as in the first: regions take no other moves.
  bool IsMovedAlike(const Node& move) {
    for (size_t i = 1; i < move.inputs.size(); ++i) {
      const int maker = rewriter_.Producer(move.inputs[i]);
      if (!graph_.IsConstant(move.inputs[i]) && (maker < 0 || At(maker).op != "Constant")) return false;
    }
    return true;
  }

  // Regions take moves together with convolutions alone.
  bool IsOfConvolutions(int value) {
    const std::vector<int>& readers = rewriter_.Readers(value);
    const auto is_convolution = [&](int reader) { return At(reader).op == "Conv" && At(reader).inputs[0] == value; };
    return !readers.empty() && std::ranges::all_of(readers, is_convolution);
  }

  // Whether what makes the value can end in bytes: it computes, and is no product of two computed values, as
  // attention's are.
  bool MayEndInBytes(int value) {
    const int maker = rewriter_.Producer(value);
    if (maker < 0 || std::ranges::find(kPicks, At(maker).op) != std::end(kPicks)) return false;
    if (At(maker).op != "MatMul") return true;
    const int weight = At(maker).Input(1), back = rewriter_.Producer(weight);
    return graph_.IsConstant(weight) || (back >= 0 && graph_.IsConstant(At(back).Input(0)));
  }

  // The first of the moves, one after the other, that alone make this value and whose values nothing else reads; -1:
  // none does, or it stays behind them.
  int FirstMoveBefore(int value) {
    int first = -1;
    while (rewriter_.SoleReader(value) >= 0) {
      const int maker = rewriter_.Producer(value);
      if (maker < 0 || !At(maker).domain.empty()) break;
      const Node& node = At(maker);
      if (std::ranges::find(kMoveOperators, node.op) == kMoveOperators.end() || !IsMovedAlike(node)) break;
      first = maker;
      value = node.inputs[0];
    }
    return MayEndInBytes(value) ? first : -1;
  }

  void PutBefore(int move, int rounding, int back) {
    Node there = At(rounding), again = At(back);
    const int moved = there.inputs[0], whole = there.outputs[0], real = again.outputs[0];
    rewriter_.ReplaceReads(real, moved);
    rewriter_.Erase(back);
    rewriter_.Erase(rounding);
    there.inputs[0] = At(move).inputs[0];
    there.outputs[0] = AddLike(whole);
    again.inputs[0] = there.outputs[0];
    again.outputs[0] = AddLike(real);
    std::vector<int> inputs = At(move).inputs;
    inputs[0] = again.outputs[0];
    rewriter_.InsertBefore(move, std::move(there));
    rewriter_.InsertBefore(move, std::move(again));
    rewriter_.SetInputs(move, std::move(inputs));
  }

  const Node& At(int index) { return rewriter_.node(index); }

  // A value of the same name and type, whose shape is not known yet.
  int AddLike(int value) {
    Value like;
    like.name = graph_.values[value].name;
    like.dtype = graph_.values[value].dtype;
    return graph_.AddValue(std::move(like));
  }

  Graph& graph_;
  Rewriter rewriter_;
};

}  // namespace

StatusOr<int> HoistRoundings(Graph& graph) { return Hoisting(graph).Run(); }

}  // namespace swizzle
