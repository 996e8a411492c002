#include "model_loader/regions/attention.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/cpu/tokens/view_attention.h"
#include "model_loader/regions/device_attention.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/strides.h"

namespace swizzle::regions {
namespace {

using fallback::Array;
using fallback::Results;

using Order = std::vector<size_t>;  // dimension i of a view is the tensor's order[i]

Shape Permuted(const Shape& shape, const Order& order) {
  Shape permuted;
  for (const size_t dimension : order) permuted.push_back(shape[dimension]);
  return permuted;
}

// Inputs of a part, in this order; the last may be missing.
enum Input : size_t { kQueries, kKeys, kValues, kBias };

// Where a product's operands and result are. Value type.
struct Views {
  Order queries, keys, values;  // as the products read them: keys are [..., channels, tokens]
  Order output;                 // of what the products make: dimension i of the output is theirs order[i]
  float scale = 1.0f;
};

// Of a dense tensor's dimensions, of which the two last are [tokens, channels]. Nothing unless channels are neighbours.
template <typename Float>
std::optional<cpu::TokenView<Float>> ViewOf(const Shape& shape, const Shape& strides) {
  const size_t rank = shape.size();
  if (shape[rank - 1] > 1 && strides[rank - 1] != 1) return std::nullopt;
  cpu::TokenView<Float> view;
  view.token_stride = strides[rank - 2];
  if (rank > 2) view.head_stride = strides[rank - 3];
  if (rank > 3) view.sequence_stride = strides[rank - 4];
  return view;
}

struct Placement {
  cpu::ViewAttention call;  // without data
  Shape output;
};

// Nothing where the shapes are not such as the call takes.
std::optional<Placement> PlacementOf(const Views& views, const std::vector<Shape>& shapes) {
  const size_t rank = views.queries.size();
  for (size_t i = kQueries; i <= kValues; ++i) {
    const auto is_positive = [](int64_t extent) { return extent > 0; };
    if (shapes[i].size() != rank || !std::ranges::all_of(shapes[i], is_positive)) return std::nullopt;
  }
  const Shape queries = Permuted(shapes[kQueries], views.queries), values = Permuted(shapes[kValues], views.values);
  Shape keys = Permuted(shapes[kKeys], views.keys), key_strides = Permuted(DenseStrides(shapes[kKeys]), views.keys);
  std::swap(keys[rank - 2], keys[rank - 1]);
  std::swap(key_strides[rank - 2], key_strides[rank - 1]);
  if (!std::equal(queries.begin(), queries.end() - 2, keys.begin()) || queries.back() != keys.back()) return {};
  if (!std::equal(keys.begin(), keys.end() - 1, values.begin())) return std::nullopt;
  Shape made = queries;
  made.back() = values.back();
  Placement placement{{}, Permuted(made, views.output)};
  Shape made_strides(rank);
  const Shape output_strides = DenseStrides(placement.output);
  for (size_t i = 0; i < rank; ++i) made_strides[views.output[i]] = output_strides[i];
  const auto of_queries = ViewOf<const float>(queries, Permuted(DenseStrides(shapes[kQueries]), views.queries));
  const auto of_keys = ViewOf<const float>(keys, key_strides);
  const auto of_values = ViewOf<const float>(values, Permuted(DenseStrides(shapes[kValues]), views.values));
  const auto of_output = ViewOf<float>(made, made_strides);
  if (!of_queries || !of_keys || !of_values || !of_output) return std::nullopt;
  placement.call = {.sequences = rank > 3 ? queries[rank - 4] : 1,
                    .heads = rank > 2 ? queries[rank - 3] : 1,
                    .query_count = queries[rank - 2],
                    .key_count = keys[rank - 2],
                    .channels = queries.back(),
                    .value_channels = values.back(),
                    .scale = views.scale,
                    .queries = *of_queries,
                    .keys = *of_keys,
                    .values = *of_values,
                    .output = *of_output,
                    .bias = {}};
  if (shapes.size() <= kBias) return placement;
  Shape scores = queries;
  scores.back() = keys[rank - 2];
  const Shape both[] = {scores, shapes[kBias]};
  const auto broadcast = BroadcastShape(both);
  if (!broadcast.ok() || *broadcast != scores || shapes[kBias].empty()) return std::nullopt;
  if (shapes[kBias].back() != scores.back()) return std::nullopt;
  const auto of_bias = ViewOf<const float>(scores, BroadcastStrides(shapes[kBias], scores));
  if (!of_bias) return std::nullopt;
  placement.call.bias = *of_bias;
  return placement;
}

class Attention final : public fallback::Part {
 public:
  explicit Attention(Views views) : views_(std::move(views)) {}

  StatusOr<std::optional<Results>> Run(std::span<const Array> inputs, fallback::Memory& memory, Stream& stream,
                                       StepGate*) const override {
    SWIZZLE_ASSIGN_OR_RETURN(std::optional<Task> task, TaskOf(inputs, memory));
    if (!task) return std::nullopt;
    const size_t bytes = cpu::ViewAttentionWorkspaceBytes(task->call, stream.threads());
    SWIZZLE_ASSIGN_OR_RETURN(Array workspace, memory.Allocate(DType::kUint8, {static_cast<int64_t>(bytes)}));
    cpu::AttendViews(task->call, {workspace.data.get(), bytes}, stream);
    return std::optional(Results{std::move(task->output)});
  }

  StatusOr<std::optional<Results>> RunOnDevice(std::span<const Array> inputs, fallback::Device& device) const override {
    SWIZZLE_ASSIGN_OR_RETURN(std::optional<Task> task, TaskOf(inputs, device.memory()));
    if (!task) return std::nullopt;
    SWIZZLE_RETURN_IF_ERROR(AttendOnDevice(task->call, device));
    return std::optional(Results{std::move(task->output)});
  }

 private:
  struct Task {
    cpu::ViewAttention call;
    Array output;
  };

  // Nothing where it does not take inputs of these types and shapes. They lie where `memory` is.
  StatusOr<std::optional<Task>> TaskOf(std::span<const Array> inputs, fallback::Memory& memory) const {
    std::vector<Shape> shapes;
    for (const Array& input : inputs) {
      if (input.dtype != DType::kFloat32) return std::nullopt;
      shapes.push_back(input.shape);
    }
    const std::optional<Placement> placement = PlacementOf(views_, shapes);
    if (!placement) return std::nullopt;
    Task task{placement->call, {}};
    SWIZZLE_ASSIGN_OR_RETURN(task.output, memory.Allocate(DType::kFloat32, placement->output));
    const auto data = [](const Array& array) { return reinterpret_cast<float*>(array.data.get()); };
    task.call.queries.data = data(inputs[kQueries]);
    task.call.keys.data = data(inputs[kKeys]);
    task.call.values.data = data(inputs[kValues]);
    if (inputs.size() > kBias) task.call.bias.data = data(inputs[kBias]);
    task.call.output.data = data(task.output);
    return std::optional(std::move(task));
  }

  const Views views_;
};

class Finder {
 public:
  Finder(const Graph& graph, const Survey& survey) : graph_(graph), survey_(survey) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const int output : graph.nodes[n].outputs) makers_[output] = static_cast<int>(n);
    }
  }

  std::vector<fallback::PartOfProgram> Run() {
    std::vector<fallback::PartOfProgram> parts;
    std::vector<bool> taken(graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].op != "Softmax") continue;
      auto part = Around(static_cast<int>(n));
      if (!part || std::ranges::any_of(part->nodes, [&](int node) { return taken[static_cast<size_t>(node)]; })) {
        continue;
      }
      for (const int node : part->nodes) taken[static_cast<size_t>(node)] = true;
      parts.push_back(*std::move(part));
    }
    return parts;
  }

 private:
  const Node& NodeAt(int index) const { return graph_.nodes[static_cast<size_t>(index)]; }

  // The node that makes the value for one reader alone, or -1.
  int OnlyMaker(int value) const {
    const auto found = makers_.find(value);
    if (found == makers_.end() || survey_.IsKnown(value)) return -1;
    if (survey_.readers[static_cast<size_t>(value)].size() != 1) return -1;
    if (survey_.IdiomOf(static_cast<size_t>(found->second)) != nullptr) return -1;
    return NodeAt(found->second).domain.empty() ? found->second : -1;
  }

  // The node that alone reads the node's result, if it is of this operator, or -1.
  int OnlyReader(int node, std::string_view op) const {
    const std::vector<int>& readers = survey_.readers[static_cast<size_t>(NodeAt(node).outputs[0])];
    if (readers.size() != 1 || readers[0] == Survey::kOutside) return -1;
    return NodeAt(readers[0]).op == op && NodeAt(readers[0]).domain.empty() ? readers[0] : -1;
  }

  std::optional<float> Number(int value) const {
    const auto found = survey_.known.find(value);
    if (found == survey_.known.end() || found->second.dtype != DType::kFloat32 || found->second.elements() != 1 ||
        found->second.rank() > 1) {
      return std::nullopt;
    }
    return found->second.As<float>()[0];
  }

  // The value that a node only multiplies with a number; the number goes into `scale`.
  std::optional<int> Unscaled(const Node& node, float& scale) const {
    if (node.op != "Mul" && node.op != "Div") return std::nullopt;
    if (const auto number = Number(node.inputs[1]); number && (node.op == "Mul" || *number != 0.0f)) {
      scale = node.op == "Mul" ? scale * *number : scale / *number;
      return node.inputs[0];
    }
    const auto number = Number(node.inputs[0]);
    if (!number || node.op == "Div") return std::nullopt;
    scale *= *number;
    return node.inputs[1];
  }

  std::optional<Order> OrderOf(const Node& node, size_t rank) const {
    if (node.op != "Transpose") return std::nullopt;
    const auto given = PermutationOf(node, rank);
    return given.ok() ? std::optional(Order(given->begin(), given->end())) : std::nullopt;
  }

  // The value that an operand is a view of, in what order, but for a factor.
  int Source(int value, Order& order, float* scale, std::vector<int>& nodes) const {
    for (int maker = OnlyMaker(value); maker >= 0; maker = OnlyMaker(value)) {
      const Node& node = NodeAt(maker);
      if (const auto inner = OrderOf(node, order.size())) {
        for (size_t& dimension : order) dimension = (*inner)[dimension];
        value = node.inputs[0];
      } else if (const auto unscaled = scale == nullptr ? std::nullopt : Unscaled(node, *scale)) {
        value = *unscaled;
      } else {
        break;
      }
      nodes.push_back(maker);
    }
    return value;
  }

  // The product that scores are, but for a factor, or -1.
  int Product(int scores, float& scale, std::vector<int>& nodes) const {
    for (int maker = OnlyMaker(scores); maker >= 0; maker = OnlyMaker(scores)) {
      nodes.push_back(maker);
      if (NodeAt(maker).op == "MatMul") return maker;
      const auto unscaled = Unscaled(NodeAt(maker), scale);
      if (!unscaled) return -1;
      scores = *unscaled;
    }
    return -1;
  }

  // The product in scores to which something may have been added; that is `bias`, or kNoValue.
  int ProductBelow(int scores, float& scale, int& bias, std::vector<int>& nodes) const {
    bias = kNoValue;
    const int sum = OnlyMaker(scores);
    if (sum < 0 || NodeAt(sum).op != "Add") return Product(scores, scale, nodes);
    for (size_t side = 0; side < 2; ++side) {
      std::vector<int> found = {sum};
      float factor = 1.0f;
      const int product = Product(NodeAt(sum).inputs[side], factor, found);
      if (product < 0) continue;
      nodes.insert(nodes.end(), found.begin(), found.end());
      scale *= factor;
      bias = NodeAt(sum).inputs[1 - side];
      return product;
    }
    return -1;
  }

  std::optional<fallback::PartOfProgram> Around(int softmax) const {
    const Node& node = NodeAt(softmax);
    const auto& shape = survey_.shapes[static_cast<size_t>(node.inputs[0])];
    if (!node.domain.empty() || !shape || shape->size() < 2 || shape->size() > 4) return std::nullopt;
    const auto axes = SoftmaxAxes(node, graph_.opset, static_cast<int64_t>(shape->size()));
    if (!axes.ok() || *axes != std::vector<int64_t>{static_cast<int64_t>(shape->size()) - 1}) return std::nullopt;
    int last = OnlyReader(softmax, "MatMul");
    if (last < 0 || NodeAt(last).inputs[0] != node.outputs[0]) return std::nullopt;
    fallback::PartOfProgram part;
    part.nodes = {softmax, last};
    Views views;
    int bias = kNoValue;
    const int scores = ProductBelow(node.inputs[0], views.scale, bias, part.nodes);
    if (scores < 0) return std::nullopt;
    Order as_it_is(shape->size());
    std::iota(as_it_is.begin(), as_it_is.end(), size_t{0});
    views.queries = views.keys = views.values = views.output = as_it_is;
    part.inputs = {Source(NodeAt(scores).inputs[0], views.queries, &views.scale, part.nodes),
                   Source(NodeAt(scores).inputs[1], views.keys, &views.scale, part.nodes),
                   Source(NodeAt(last).inputs[1], views.values, nullptr, part.nodes)};
    if (bias != kNoValue) part.inputs.push_back(bias);
    if (const int transpose = OnlyReader(last, "Transpose"); transpose >= 0) {
      if (const auto order = OrderOf(NodeAt(transpose), shape->size())) {
        views.output = *order;
        part.nodes.push_back(last = transpose);
      }
    }
    part.outputs = {NodeAt(last).outputs[0]};
    return Checked(std::move(part), std::move(views));
  }

  // Unless the survey's shapes are none that it takes.
  std::optional<fallback::PartOfProgram> Checked(fallback::PartOfProgram part, Views views) const {
    std::vector<Shape> shapes;
    for (const int input : part.inputs) {
      const auto& shape = survey_.shapes[static_cast<size_t>(input)];
      if (!shape || survey_.dtypes[static_cast<size_t>(input)] != DType::kFloat32) return std::nullopt;
      shapes.push_back(*shape);
    }
    if (!PlacementOf(views, shapes)) return std::nullopt;
    std::ranges::sort(part.nodes);
    part.part = std::make_shared<const Attention>(std::move(views));
    return part;
  }

  const Graph& graph_;
  const Survey& survey_;
  std::map<int, int> makers_;  // value -> node
};

}  // namespace

std::vector<fallback::PartOfProgram> FindAttention(const Graph& graph, const Survey& survey) {
  return Finder(graph, survey).Run();
}

}  // namespace swizzle::regions
