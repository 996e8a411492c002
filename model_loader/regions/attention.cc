#include "model_loader/regions/attention.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "model_loader/regions/attention_call.h"
#include "model_loader/semantics/axes.h"

namespace swizzle::regions {
namespace {

class Finder {
 public:
  Finder(const Graph& graph, const Survey& survey, interpreter::Place place)
      : graph_(graph), survey_(survey), place_(place) {}

  std::vector<interpreter::PartOfProgram> Run() {
    std::vector<interpreter::PartOfProgram> parts;
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

  const std::optional<Shape>& ShapeOf(int value) const { return survey_.shapes[static_cast<size_t>(value)]; }

  // The node that makes the value for one reader alone, or -1.
  int OnlyMaker(int value) const {
    const int maker = survey_.MakerOf(value);
    if (maker == Survey::kOutside || survey_.IsKnown(value)) return -1;
    if (survey_.readers[static_cast<size_t>(value)].size() != 1) return -1;
    if (survey_.IdiomOf(static_cast<size_t>(maker)) != nullptr) return -1;
    return NodeAt(maker).domain.empty() ? maker : -1;
  }

  // The node that alone reads the node's result, if it is of this operator, or -1.
  int OnlyReader(int node, std::string_view op) const {
    const int reader = survey_.OnlyReaderOf(NodeAt(node).outputs[0]);
    if (reader == Survey::kOutside) return -1;
    return NodeAt(reader).op == op && NodeAt(reader).domain.empty() ? reader : -1;
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

  // The node that makes the value, if it is of this operator, or -1.
  int Maker(int value, std::string_view op) const {
    const int maker = survey_.MakerOf(value);
    if (maker == Survey::kOutside || survey_.IsKnown(value)) return -1;
    return NodeAt(maker).op == op && NodeAt(maker).domain.empty() ? maker : -1;
  }

  // What is found of a part: nodes that nothing else may read, and others, which are of the part if nothing else does.
  struct Found {
    Views views;
    int product = -1;  // of queries and keys
    std::vector<int> nodes, others;
    std::vector<int> inputs;  // of terms
  };

  // The value that an operand is a view of, but for a factor.
  int Source(int value, View& view, float* scale, std::vector<int>& nodes) const {
    for (size_t followed = 0; followed < kMostNodes && !survey_.IsKnown(value); ++followed) {
      const int maker = survey_.MakerOf(value);
      if (maker == Survey::kOutside || survey_.IdiomOf(static_cast<size_t>(maker)) != nullptr) break;
      const Node& node = NodeAt(maker);
      if (!node.domain.empty()) break;
      if (const auto inner = OrderOf(node, view.rank())) {
        for (size_t& dimension : view.order) dimension = (*inner)[dimension];
        for (View::Fixed& fixed : view.fixed) fixed.dimension = (*inner)[fixed.dimension];
        value = node.inputs[0];
      } else if (const auto slice = SliceOf(node, view.rank())) {
        for (size_t& dimension : view.order) dimension += dimension >= slice->dimension ? 1 : 0;
        for (View::Fixed& fixed : view.fixed) fixed.dimension += fixed.dimension >= slice->dimension ? 1 : 0;
        view.fixed.push_back(*slice);
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

  // Which slice of one more dimension the node takes, of whose result `rank` is, if any: of queries, keys and values in
  // one tensor.
  std::optional<View::Fixed> SliceOf(const Node& node, size_t rank) const {
    constexpr size_t kMostDimensions = 6;
    if (node.op != "Gather" || rank >= kMostDimensions) return std::nullopt;
    const auto index = survey_.known.find(node.inputs[1]);
    if (index == survey_.known.end() || index->second.rank() != 0 || index->second.dtype != DType::kInt64) return {};
    auto axis = IntAttribute(node, "axis", 0);
    if (axis.ok()) axis = NormalAxis(node, *axis, static_cast<int64_t>(rank) + 1);
    if (!axis.ok()) return std::nullopt;
    return View::Fixed{static_cast<size_t>(*axis), index->second.As<int64_t>()[0]};
  }

  // Of a part: more than attention has that is known here. A file may have any number, and each followed takes some of
  // the stack.
  static constexpr size_t kMostNodes = 64;

  // Finds the product that scores are, but for factors, and what is added to it.
  void Walk(int value, float factor, Found& found) const {
    const int maker = found.nodes.size() < kMostNodes ? OnlyMaker(value) : -1;
    if (maker >= 0) {
      const Node& node = NodeAt(maker);
      if (node.op == "MatMul" && found.product < 0) {
        found.product = maker;
        found.views.scale = factor;
        return found.nodes.push_back(maker);
      }
      if (const auto unscaled = Unscaled(node, factor)) {
        found.nodes.push_back(maker);
        return Walk(*unscaled, factor, found);
      }
      if (node.op == "Add" && WalkSum(maker, factor, found)) return;
      if (node.op == "Where" && WalkWhere(maker, factor, found)) return;
      if (AddsByTurns(maker, factor, found)) return;
      if (AddsPlaces(value, factor, found)) return;
    }
    found.views.terms.push_back({.number = factor, .order = {}});
    found.inputs.push_back(value);
  }

  // A sum, unless it is one of plain numbers, which is made once, not in each call.
  bool WalkSum(int index, float factor, Found& found) const {
    Found inner = found;
    inner.nodes.push_back(index);
    for (const int input : NodeAt(index).inputs) Walk(input, factor, inner);
    const auto is_plain = [](const ScoreTerm& term) { return term.kind == ScoreTerm::Kind::kNumbers; };
    const std::vector<ScoreTerm>& terms = inner.views.terms;
    const auto first = terms.begin() + std::ssize(found.views.terms);
    if (inner.product == found.product && std::all_of(first, terms.end(), is_plain)) return false;
    found = std::move(inner);
    return true;
  }

  // Scores that a condition leaves out.
  bool WalkWhere(int index, float factor, Found& found) const {
    constexpr float kOutOfReach = -1e30f;
    const Node& node = NodeAt(index);
    const auto first = Number(node.inputs[1]), second = Number(node.inputs[2]);
    if (first.has_value() == second.has_value()) return false;
    const float number = factor * (first ? *first : *second);
    if (!(number < kOutOfReach)) return false;
    found.nodes.push_back(index);
    found.views.terms.push_back(
        {.kind = ScoreTerm::Kind::kCondition, .number = number, .keeps = second.has_value(), .order = {}});
    found.inputs.push_back(node.inputs[0]);
    Walk(node.inputs[first ? 2 : 1], factor, found);
    return true;
  }

  // What is added once the sequences are split in two, [images, windows, heads, queries, keys], and put together again.
  bool AddsByTurns(int joins, float factor, Found& found) const {
    if (NodeAt(joins).op != "Reshape") return false;
    const int sum = OnlyMaker(NodeAt(joins).inputs[0]);
    if (sum < 0 || NodeAt(sum).op != "Add") return false;
    for (const size_t first : {0, 1}) {
      const int split = OnlyMaker(NodeAt(sum).inputs[first]), numbers = NodeAt(sum).inputs[1 - first];
      if (split < 0 || NodeAt(split).op != "Reshape") continue;
      const auto &scores = ShapeOf(NodeAt(split).inputs[0]), &all = ShapeOf(NodeAt(split).outputs[0]),
                 &again = ShapeOf(NodeAt(joins).outputs[0]), &given = ShapeOf(numbers);
      if (!scores || !all || !given || again != scores || scores->size() != 4 || all->size() != 5) continue;
      const bool keeps = std::equal(scores->begin() + 1, scores->end(), all->begin() + 2);
      if (!keeps || given->size() != 5 || (*given)[0] != 1 || (*given)[1] != (*all)[1]) continue;
      found.nodes.insert(found.nodes.end(), {joins, sum, split});
      ScoreTerm term{.number = factor, .by_turns = true, .order = {}};
      found.views.terms.push_back(std::move(term));
      found.inputs.push_back(numbers);
      Walk(NodeAt(split).inputs[0], factor, found);
      return true;
    }
    return false;
  }

  // A product with vectors of places, of which an index picks, and perhaps its transpose.
  bool AddsPlaces(int value, float factor, Found& found) const {
    std::vector<int> nodes = {OnlyMaker(value)};
    const auto& shape = survey_.shapes[static_cast<size_t>(value)];
    if (!shape || shape->size() < 2) return false;
    const size_t rank = shape->size();
    ScoreTerm term{.kind = ScoreTerm::Kind::kPlacesOfQueries, .number = factor, .order = {}};
    if (const auto order = OrderOf(NodeAt(nodes[0]), rank)) {
      Order swapped = AsItIs(rank);
      std::swap(swapped[rank - 2], swapped[rank - 1]);
      if (*order != swapped) return false;
      term.kind = ScoreTerm::Kind::kPlacesOfKeys;
      nodes.push_back(OnlyMaker(NodeAt(nodes[0]).inputs[0]));
    }
    while (nodes.back() >= 0 && NodeAt(nodes.back()).op != "GatherElements") {
      const auto unscaled = Unscaled(NodeAt(nodes.back()), term.number);
      if (!unscaled) return false;
      nodes.push_back(OnlyMaker(*unscaled));
    }
    const int gather = nodes.back();
    if (gather < 0) return false;
    const auto axis = IntAttribute(NodeAt(gather), "axis", 0);
    if (!axis.ok() || (*axis != -1 && *axis != static_cast<int64_t>(rank) - 1)) return false;
    const int product = Maker(NodeAt(gather).inputs[0], "MatMul");
    if (product < 0) return false;
    nodes.push_back(product);
    if (!GathersOfAll(gather, product)) return false;
    int index = NodeAt(gather).inputs[1];
    if (const int expand = Maker(index, "Expand"); expand >= 0 && OnlyMaker(index) == expand) {
      nodes.push_back(expand);
      term.expanded = true;
      index = NodeAt(expand).inputs[0];
      AddShapeNodes(NodeAt(expand).inputs[1], nodes);
    }
    const auto& readers = survey_.readers[static_cast<size_t>(NodeAt(product).outputs[0])];
    const auto is_inside = [&](int reader) { return std::ranges::find(nodes, reader) != nodes.end(); };
    if (!std::ranges::all_of(readers, is_inside)) return false;
    View view{AsItIs(rank), {}};
    const int tokens = Source(NodeAt(product).inputs[0], view, &term.number, found.others);
    if (!view.fixed.empty()) return false;
    term.order = std::move(view.order);
    found.inputs.insert(found.inputs.end(), {tokens, NodeAt(product).inputs[1], index});
    found.views.terms.push_back(std::move(term));
    found.nodes.insert(found.nodes.end(), nodes.begin(), nodes.end());
    return true;
  }

  // Whether a node that gathers along the last dimension does so in all others.
  bool GathersOfAll(int gather, int product) const {
    const auto& gathered = survey_.shapes[static_cast<size_t>(NodeAt(gather).outputs[0])];
    const auto& all = survey_.shapes[static_cast<size_t>(NodeAt(product).outputs[0])];
    return gathered && all && std::equal(gathered->begin(), gathered->end() - 1, all->begin(), all->end() - 1);
  }

  // What computes a shape that nothing outside of `nodes` reads.
  void AddShapeNodes(int value, std::vector<int>& nodes) const {
    const int maker = OnlyMaker(value);
    if (maker < 0 || nodes.size() >= kMostNodes) return;
    nodes.push_back(maker);
    if (NodeAt(maker).op == "Shape") return;
    for (const int input : NodeAt(maker).inputs) {
      if (input != kNoValue) AddShapeNodes(input, nodes);
    }
  }

  static Order AsItIs(size_t rank) {
    Order order(rank);
    std::iota(order.begin(), order.end(), size_t{0});
    return order;
  }

  // The nodes of `others` that only nodes of the part read, one by the other.
  void TakeOthers(std::vector<int>& nodes, std::vector<int> others) const {
    std::ranges::sort(others, std::greater());
    for (const int other : others) {
      const auto& readers = survey_.readers[static_cast<size_t>(NodeAt(other).outputs[0])];
      const auto is_inside = [&](int reader) { return std::ranges::find(nodes, reader) != nodes.end(); };
      if (std::ranges::all_of(readers, is_inside)) nodes.push_back(other);
    }
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }

  // Softmax, or what alone reads it and leaves out the same pairs again: what then has no key gets zeros.
  int LeftOutAgain(int softmax, Found& found) const {
    const int again = OnlyReader(softmax, "Where");
    if (again < 0) return softmax;
    const Node& node = NodeAt(again);
    const bool keeps = node.inputs[1] == NodeAt(softmax).outputs[0];
    if (Number(node.inputs[keeps ? 2 : 1]) != 0.0f) return softmax;
    size_t first = 0;
    for (ScoreTerm& term : found.views.terms) {
      const bool same =
          term.kind == ScoreTerm::Kind::kCondition && term.keeps == keeps && found.inputs[first] == node.inputs[0];
      if (same) {
        term.number = -std::numeric_limits<float>::infinity();
        found.nodes.push_back(again);
        return again;
      }
      first += term.inputs();
    }
    return softmax;
  }

  std::optional<interpreter::PartOfProgram> Around(int softmax) const {
    const Node& node = NodeAt(softmax);
    const auto& shape = survey_.shapes[static_cast<size_t>(node.inputs[0])];
    if (!node.domain.empty() || !shape || shape->size() < 2 || shape->size() > 4) return std::nullopt;
    const auto axes = SoftmaxAxes(node, graph_.opset, static_cast<int64_t>(shape->size()));
    if (!axes.ok() || *axes != std::vector<int64_t>{static_cast<int64_t>(shape->size()) - 1}) return std::nullopt;
    Found found;
    found.nodes = {softmax};
    Walk(node.inputs[0], 1.0f, found);
    if (found.product < 0) return std::nullopt;
    const int probabilities = LeftOutAgain(softmax, found);
    int last = OnlyReader(probabilities, "MatMul");
    if (last < 0 || NodeAt(last).inputs[0] != NodeAt(probabilities).outputs[0]) return std::nullopt;
    found.nodes.push_back(last);
    Views& views = found.views;
    views.queries.order = views.keys.order = views.values.order = views.output = AsItIs(shape->size());
    interpreter::PartOfProgram part;
    part.inputs = {Source(NodeAt(found.product).inputs[0], views.queries, &views.scale, found.others),
                   Source(NodeAt(found.product).inputs[1], views.keys, &views.scale, found.others),
                   Source(NodeAt(last).inputs[1], views.values, nullptr, found.others)};
    part.inputs.insert(part.inputs.end(), found.inputs.begin(), found.inputs.end());
    if (const int transpose = OnlyReader(last, "Transpose"); transpose >= 0) {
      if (const auto order = OrderOf(NodeAt(transpose), shape->size())) {
        views.output = *order;
        found.nodes.push_back(last = transpose);
      }
    }
    part.outputs = {NodeAt(last).outputs[0]};
    part.nodes = std::move(found.nodes);
    TakeOthers(part.nodes, std::move(found.others));
    return Checked(std::move(part), std::move(views));
  }

  // Unless the survey's shapes are none that it takes.
  std::optional<interpreter::PartOfProgram> Checked(interpreter::PartOfProgram part, Views views) const {
    if (place_ == interpreter::Place::kDevice && !views.AddsNumbers()) return std::nullopt;
    std::vector<DType> types;
    std::vector<Shape> shapes;
    for (const int input : part.inputs) {
      const auto& shape = survey_.shapes[static_cast<size_t>(input)];
      if (!shape) return std::nullopt;
      types.push_back(survey_.dtypes[static_cast<size_t>(input)]);
      shapes.push_back(*shape);
    }
    if (!Takes(views, types, shapes)) return std::nullopt;
    part.part = MakeAttention(std::move(views));
    return part;
  }

  const Graph& graph_;
  const Survey& survey_;
  const interpreter::Place place_;
};

}  // namespace

std::vector<interpreter::PartOfProgram> FindAttention(const Graph& graph, const Survey& survey,
                                                      interpreter::Place place) {
  return Finder(graph, survey, place).Run();
}

std::vector<interpreter::PartOfProgram> AttentionBeside(const std::vector<interpreter::PartOfProgram>& parts,
                                                        std::vector<interpreter::PartOfProgram> attention) {
  std::set<int> taken;
  for (const interpreter::PartOfProgram& part : parts) taken.insert(part.nodes.begin(), part.nodes.end());
  std::erase_if(attention, [&](const interpreter::PartOfProgram& part) {
    return std::ranges::any_of(part.nodes, [&](int node) { return taken.contains(node); });
  });
  return attention;
}

}  // namespace swizzle::regions
