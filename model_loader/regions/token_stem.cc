#include "model_loader/regions/token_stem.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/network/join_planes.h"

namespace swizzle::regions {
namespace {

// Where tokens come from.
struct TokenSource {
  int planes = kNoValue;
  DenseMatrix added;    // [length, channels]: vectors before the positions, then zeros
  std::set<int> nodes;  // between the planes and the tokens
};

class StemFinder {
 public:
  StemFinder(const Graph& graph, const Survey& survey, const std::set<int>& taken)
      : graph_(graph), survey_(survey), taken_(taken) {}

  // Where the tokens of a value [batch, length, channels] come from; nothing where they are no plane's positions.
  std::optional<TokenSource> SourceOf(int tokens) const {
    const Shape* const shape = ShapeOf(tokens, 3);
    if (shape == nullptr) return std::nullopt;
    TokenSource source;
    source.added.rows = (*shape)[1];
    source.added.cols = (*shape)[2];
    int positions = tokens;
    if (const Node* const joins = MakerIf(tokens, "Concat")) {
      const auto axis = IntAttribute(*joins, "axis", 0);
      if (!axis.ok() || (*axis != 1 && *axis != -2)) return std::nullopt;
      for (size_t i = 0; i + 1 < joins->inputs.size(); ++i) {
        if (!TakeVectors(joins->inputs[i], source)) return std::nullopt;
      }
      source.nodes.insert(survey_.MakerOf(tokens));
      positions = joins->inputs.back();
    }
    if (static_cast<int64_t>(source.added.values.size()) > source.added.rows * source.added.cols) return std::nullopt;
    source.added.values.resize(static_cast<size_t>(source.added.rows * source.added.cols));
    source.planes = PlanesOf(positions, source.nodes);
    return source.planes == kNoValue ? std::nullopt : std::optional(std::move(source));
  }

  // All nodes that the value is made by; nothing where one is of another region.
  std::optional<std::vector<int>> MakersOf(int value) const {
    std::set<int> makers;
    std::vector<int> open = {value};
    while (!open.empty()) {
      const int maker = survey_.IsKnown(open.back()) ? Survey::kOutside : survey_.MakerOf(open.back());
      open.pop_back();
      if (maker == Survey::kOutside || !makers.insert(maker).second) continue;
      if (taken_.contains(maker)) return std::nullopt;
      const auto& inputs = graph_.nodes[static_cast<size_t>(maker)].inputs;
      std::ranges::copy_if(inputs, std::back_inserter(open), [](int input) { return input != kNoValue; });
    }
    return std::vector(makers.begin(), makers.end());
  }

  // Adds nodes whose results only `nodes` read, but for makers of `inputs`: sizes that nobody asks for any more.
  void AddUnread(const std::vector<int>& inputs, std::set<int>& nodes) const {
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      const auto is_unread = [&](int value) {
        if (value == kNoValue) return true;
        const auto& readers = survey_.readers[static_cast<size_t>(value)];
        const auto is_in = [&](int reader) { return nodes.contains(reader); };
        return std::ranges::find(inputs, value) == inputs.end() && !readers.empty() &&
               std::ranges::all_of(readers, is_in);
      };
      const bool is_free = !taken_.contains(static_cast<int>(n));
      if (is_free && std::ranges::all_of(graph_.nodes[n].outputs, is_unread)) nodes.insert(static_cast<int>(n));
    }
  }

 private:
  const Shape* ShapeOf(int value, size_t rank) const {
    const auto& shape = survey_.shapes[static_cast<size_t>(value)];
    return shape && shape->size() == rank ? &*shape : nullptr;
  }

  const Node* MakerIf(int value, std::string_view op) const {
    const int maker = survey_.MakerOf(value);
    if (maker == Survey::kOutside) return nullptr;
    const Node& node = graph_.nodes[static_cast<size_t>(maker)];
    return node.op == op && node.domain.empty() ? &node : nullptr;
  }

  // Vectors [batch, count, channels] that are the same for every row: of one row, or an Expand of one.
  bool TakeVectors(int value, TokenSource& source) const {
    const Shape* const shape = ShapeOf(value, 3);
    const Node* const expands = MakerIf(value, "Expand");
    const interpreter::Array* const known = survey_.KnownOf(expands != nullptr ? expands->inputs[0] : value);
    if (shape == nullptr || known == nullptr || known->dtype != DType::kFloat32) return false;
    Shape of_row = known->shape;
    while (of_row.size() < 3) of_row.insert(of_row.begin(), 1);
    if (known->elements() == 0 || of_row != Shape{1, (*shape)[1], (*shape)[2]}) return false;
    const auto numbers = known->As<float>();
    source.added.values.insert(source.added.values.end(), numbers.begin(), numbers.end());
    if (expands != nullptr) source.nodes.insert(survey_.MakerOf(value));
    return true;
  }

  // The value that a Reshape of any spelling keeps the elements of.
  int ReshapedOf(int value, std::set<int>& nodes) const {
    for (const std::string_view op : {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}) {
      if (const Node* const node = MakerIf(value, op)) {
        nodes.insert(survey_.MakerOf(value));
        return node->inputs[0];
      }
    }
    return value;
  }

  // The value that is transposed so, or none.
  int TransposedOf(int value, const std::vector<int64_t>& order, std::set<int>& nodes) const {
    const Node* const node = MakerIf(value, "Transpose");
    if (node == nullptr) return kNoValue;
    const auto perm = IntsAttribute(*node, "perm", {});
    if (!perm.ok() || *perm != order) return kNoValue;
    nodes.insert(survey_.MakerOf(value));
    return node->inputs[0];
  }

  // Planes [batch, channels, ...] whose positions, in order, are the tokens of a value [batch, count, channels].
  int PlanesOf(int tokens, std::set<int>& nodes) const {
    const Shape* const shape = ShapeOf(tokens, 3);
    if (shape == nullptr) return kNoValue;
    const auto has_planes = [&](int value, size_t rank) {
      const Shape* const of_value = value == kNoValue ? nullptr : ShapeOf(value, rank);
      if (of_value == nullptr || survey_.IsKnown(value)) return false;
      const int64_t plane = rank == 3 ? (*of_value)[2] : (*of_value)[2] * (*of_value)[3];
      return (*of_value)[0] == (*shape)[0] && (*of_value)[1] == (*shape)[2] && plane == (*shape)[1];
    };
    std::set<int> moved;
    if (const int rows = TransposedOf(tokens, {0, 2, 1}, moved); has_planes(rows, 3)) {
      nodes.insert(moved.begin(), moved.end());
      const int planes = ReshapedOf(rows, moved);
      if (!has_planes(planes, 4)) return rows;
      nodes.insert(moved.begin(), moved.end());
      return planes;
    }
    const int planes = TransposedOf(ReshapedOf(tokens, moved), {0, 2, 3, 1}, moved);
    if (!has_planes(planes, 4)) return kNoValue;
    nodes.insert(moved.begin(), moved.end());
    return planes;
  }

  const Graph& graph_;
  const Survey& survey_;
  const std::set<int>& taken_;
};

// Whether the stem reads one value, of as many rows as planes has, and of the same ones in both runs of the survey.
bool HasRowsOf(const Region& stem, int planes, const Survey& survey) {
  if (stem.inputs.size() != 1) return false;
  const auto input = static_cast<size_t>(stem.inputs.front()), made = static_cast<size_t>(planes);
  for (const auto* const shapes : {&survey.shapes, &survey.other_shapes}) {
    const std::optional<Shape>&from = (*shapes)[input], &to = (*shapes)[made];
    if (!from || !to || from->empty() || to->empty() || from->front() != to->front()) return false;
  }
  return RowShape(*survey.shapes[input], Form::kImages) == RowShape(*survey.other_shapes[input], Form::kImages);
}

// Whether nothing outside of the nodes reads what the stem makes.
bool IsReadInside(const Graph& graph, const Survey& survey, const std::set<int>& stem, const std::set<int>& all) {
  const auto is_inside = [&](int reader) { return all.contains(reader); };
  return std::ranges::all_of(stem, [&](int node) {
    return std::ranges::all_of(graph.nodes[static_cast<size_t>(node)].outputs, [&](int value) {
      return value == kNoValue || std::ranges::all_of(survey.readers[static_cast<size_t>(value)], is_inside);
    });
  });
}

bool AddStemTo(size_t port, const Graph& graph, const Survey& survey, const std::set<int>& taken,
               SequenceRegion& region) {
  const StemFinder finder(graph, survey, taken);
  std::optional<TokenSource> source = finder.SourceOf(region.region.inputs[port]);
  if (!source) return false;
  const auto makers = finder.MakersOf(source->planes);
  if (!makers || makers->empty()) return false;
  Region stem = MakeRegion(graph, survey, Form::kImages, *makers);
  if (!HasRowsOf(stem, source->planes, survey)) return false;
  std::set<int> of_stem(makers->begin(), makers->end());
  of_stem.insert(source->nodes.begin(), source->nodes.end());
  std::vector<int> inputs = stem.inputs;
  for (size_t i = 0; i < region.region.inputs.size(); ++i) {
    if (i == port) continue;
    if (of_stem.contains(survey.MakerOf(region.region.inputs[i]))) return false;
    inputs.push_back(region.region.inputs[i]);
  }
  std::set<int> all = of_stem;
  all.insert(region.region.nodes.begin(), region.region.nodes.end());
  finder.AddUnread(inputs, all);
  if (!IsReadInside(graph, survey, of_stem, all)) return false;
  stem.outputs = {source->planes};
  StatusOr<Network> planes = NetworkOf(graph, survey, stem);
  if (!planes.ok()) return false;
  Network joined = JoinPlanes(*std::move(planes), region.network, port, std::move(source->added));
  if (!joined.Validate().ok()) return false;
  region.network = std::move(joined);
  region.region.nodes.assign(all.begin(), all.end());
  region.region.inputs = std::move(inputs);
  return true;
}

}  // namespace

void AddStem(const Graph& graph, const Survey& survey, const std::set<int>& taken, SequenceRegion& region) {
  const SequenceInputs& sequences = *region.network.sequences;
  if (sequences.length == 0 || sequences.mask != -1 || sequences.counted != -1) return;
  for (size_t port = 0; port < region.region.inputs.size(); ++port) {
    if (region.network.inputs[port].dtype != DType::kFloat32) continue;
    if (AddStemTo(port, graph, survey, taken, region)) return;
  }
}

}  // namespace swizzle::regions
