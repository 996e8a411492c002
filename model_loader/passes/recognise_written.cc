#include <algorithm>
#include <optional>

#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/written_functions.h"

namespace swizzle {
namespace {

class GraphUses final : public ValueUses {
 public:
  explicit GraphUses(const Rewriter& rewriter, const Graph& graph) : rewriter_(rewriter), graph_(graph) {}

  int MakerOf(int value) const override { return rewriter_.Producer(value); }
  std::span<const int> ReadersOf(int value) const override { return rewriter_.Readers(value); }
  bool IsKnown(int value) const override { return graph_.IsConstant(value); }
  std::optional<float> Number(int value) const override {
    if (!graph_.IsConstant(value)) return std::nullopt;
    const Tensor& tensor = *graph_.values[static_cast<size_t>(value)].constant;
    if (tensor.dtype != DType::kFloat32 || tensor.elements() != 1 || tensor.shape.size() > 1) return std::nullopt;
    return tensor.floats()[0];
  }

 private:
  const Rewriter& rewriter_;
  const Graph& graph_;
};

// Whether nothing but the function's nodes reads what they make on the way.
bool IsAlone(const Rewriter& rewriter, const Graph& graph, const WrittenFunction& written) {
  return std::ranges::all_of(written.nodes, [&](int node) {
    return std::ranges::all_of(graph.nodes[static_cast<size_t>(node)].outputs, [&](int output) {
      if (output == written.output || output == kNoValue) return true;
      return !rewriter.IsGraphOutput(output) && std::ranges::all_of(rewriter.Readers(output), [&](int reader) {
        return std::ranges::find(written.nodes, reader) != written.nodes.end();
      });
    });
  });
}

}  // namespace

StatusOr<int> RecogniseWritten(Graph& graph) {
  Rewriter rewriter(graph);
  const GraphUses uses(rewriter, graph);
  WrittenFunctions functions(graph, uses);
  int count = 0;
  for (int index = 0; index < rewriter.node_count(); ++index) {
    const Node& node = rewriter.node(index);
    if (!node.domain.empty() || (node.op != "Erf" && node.op != "Tanh")) continue;
    const std::optional<WrittenFunction> written = functions.Around(index);
    if (!written || !IsAlone(rewriter, graph, *written)) continue;
    const int last = rewriter.Producer(written->output);
    Node& made = rewriter.node(last);
    made.op = "Function";
    made.domain = kSwizzleDomain;
    made.attributes = FunctionAttributes(written->function);
    rewriter.SetInputs(last, {written->input});
    ++count;
  }
  rewriter.Finish();
  return count;
}

}  // namespace swizzle
