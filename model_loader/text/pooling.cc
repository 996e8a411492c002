#include "model_loader/text/pooling.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace swizzle::text {
namespace {

constexpr int64_t kOnnxFloat = 1;       // of TensorProto
constexpr int64_t kAxesAreInputs = 13;  // of Unsqueeze and ReduceSum, from this opset on
constexpr size_t kStatesRank = 3;       // [batch, tokens, hidden]
constexpr size_t kLogitsRank = 2;       // [batch, labels]

// Adds nodes that are called "pooling/OP", or "pooling/of/OP".
class PoolingNodes {
 public:
  explicit PoolingNodes(Graph& graph) : graph_(graph) {}

  // The mean of `states` where `mask` is 1.
  int Mean(int states, int mask) {
    const int column = Along("Unsqueeze", "mask", mask, 2, {}, DType::kInt64);
    const int ones = Add("Cast", "mask", {column}, {{"to", kOnnxFloat}});
    const int kept = Add("Mul", "", {states, ones});
    const int sum = Along("ReduceSum", "", kept, 1, {{"keepdims", int64_t{0}}});
    const int count = Along("ReduceSum", "mask", ones, 1, {{"keepdims", int64_t{0}}});
    const float least = 1e-9f;
    const int lowest = graph_.AddConstant("pooling.least", Tensor::Floats({}, std::span(&least, 1)));
    return Add("Div", "", {sum, Add("Max", "mask", {count, lowest})});
  }

  int First(int states) {
    const int64_t first = 0;
    const int index = graph_.AddConstant("pooling.first", Tensor::Int64s({}, std::span(&first, 1)));
    return Add("Gather", "", {states, index}, {{"axis", int64_t{1}}});
  }

 private:
  int Add(const std::string& op, const std::string& of, std::vector<int> inputs,
          std::map<std::string, Attribute> attributes = {}, DType dtype = DType::kFloat32) {
    const std::string name = Concat("pooling/", of, of.empty() ? "" : "/", op);
    const int output = graph_.AddValue({name + "_output", dtype, std::nullopt, std::nullopt});
    graph_.nodes.push_back({op, "", name, std::move(inputs), {output}, std::move(attributes)});
    return output;
  }

  // A node over one dimension.
  int Along(const std::string& op, const std::string& of, int value, int64_t axis,
            std::map<std::string, Attribute> attributes, DType dtype = DType::kFloat32) {
    if (graph_.opset < kAxesAreInputs) {
      attributes["axes"] = std::vector<int64_t>{axis};
      return Add(op, of, {value}, std::move(attributes), dtype);
    }
    const std::string name = Concat("pooling.axes.", op, ".", of);
    const int axes = graph_.AddConstant(name, Tensor::Int64s({1}, std::span(&axis, 1)));
    return Add(op, of, {value, axes}, std::move(attributes), dtype);
  }

  Graph& graph_;
};

const GraphOutput* FindOutput(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.outputs, name, &GraphOutput::name);
  return found == graph.outputs.end() ? nullptr : &*found;
}

std::string NamesOf(const Graph& graph) {
  std::string names;
  for (const GraphOutput& output : graph.outputs) names += Concat(names.empty() ? "'" : ", '", output.name, "'");
  return names;
}

}  // namespace

StatusOr<GraphOutput> StatesOf(const Graph& graph) {
  const auto named = [](GraphOutput states) {
    states.name = kStatesName;
    return states;
  };
  for (const std::string_view name : {std::string_view("last_hidden_state"), kStatesName}) {
    if (const GraphOutput* const states = FindOutput(graph, name)) return named(*states);
  }
  const auto may_be = [](const GraphOutput& output) {
    return output.name != kPooledName && (!output.shape || output.shape->size() == kStatesRank);
  };
  if (graph.outputs.size() == 1 && may_be(graph.outputs[0])) return named(graph.outputs[0]);
  return InvalidArgument("it has no states of tokens to pool (last_hidden_state, ", kStatesName, "); its outputs are ",
                         NamesOf(graph));
}

std::string_view PoolingName(Pooling pooling) {
  return pooling == Pooling::kMean ? "mean" : pooling == Pooling::kFirst ? "cls" : "last_token";
}

Status PoolTokens(Pooling pooling, Graph& graph) {
  if (const GraphOutput* const pooled = FindOutput(graph, kPooledName)) {
    graph.outputs = {GraphOutput(*pooled)};
    return absl::OkStatus();
  }
  SWIZZLE_ASSIGN_OR_RETURN(const GraphOutput states, StatesOf(graph));
  if (pooling == Pooling::kLast) {
    graph.outputs = {states};
    return absl::OkStatus();
  }
  PoolingNodes nodes(graph);
  int pooled = kNoValue;
  if (pooling == Pooling::kFirst) {
    pooled = nodes.First(states.value);
  } else {
    const auto is_mask = [&](int input) { return graph.values[static_cast<size_t>(input)].name == "attention_mask"; };
    const auto mask = std::ranges::find_if(graph.inputs, is_mask);
    if (mask == graph.inputs.end()) {
      return InvalidArgument("it has no input attention_mask, which says what tokens a text has");
    }
    pooled = nodes.Mean(states.value, *mask);
  }
  const int64_t hidden = states.shape && states.shape->size() == kStatesRank ? states.shape->back() : -1;
  graph.outputs = {{std::string(kPooledName), pooled, DType::kFloat32, Shape{-1, hidden}}};
  return absl::OkStatus();
}

Status KeepLogits(Graph& graph) {
  const GraphOutput* logits = FindOutput(graph, "logits");
  const bool is_vector = FindOutput(graph, kPooledName) != nullptr || FindOutput(graph, "pooler_output") != nullptr;
  const bool is_alone = graph.outputs.size() == 1 && !is_vector;
  if (logits == nullptr && is_alone && (!graph.outputs[0].shape || graph.outputs[0].shape->size() == kLogitsRank)) {
    logits = &graph.outputs[0];
  }
  if (logits == nullptr) {
    return InvalidArgument("it has no output 'logits', as a classifier of texts does, whose config.json says ",
                           "architectures [\"...ForSequenceClassification\"]; its outputs are ", NamesOf(graph));
  }
  graph.outputs = {GraphOutput(*logits)};
  return absl::OkStatus();
}

}  // namespace swizzle::text
