#include "model_loader/regions/token_stem.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/network/join_planes.h"
#include "model_loader/regions/run_shapes.h"
#include "model_loader/semantics/evaluate.h"

namespace swizzle::regions {
namespace {

// What each token of a value [batch, length, channels] is: a position of planes, or none, and what is added to it.
struct TokenRows {
  int planes = kNoValue;
  std::vector<int64_t> positions;  // by token; kNone: it has none
  DenseMatrix added;               // [length, channels]
  static constexpr int64_t kNone = -1;

  // Whether the last tokens are all positions in their order, and the others none.
  bool EndInPositions() const {
    const auto first = std::ranges::find_if(positions, [](int64_t position) { return position != kNone; });
    int64_t next = 0;
    return std::all_of(first, positions.end(), [&](int64_t position) { return position == next++; });
  }
};

class StemFinder {
 public:
  StemFinder(const Graph& graph, const Survey& survey, const std::set<int>& taken)
      : graph_(graph), survey_(survey), taken_(taken) {}

  // What the tokens of a value are; nothing where they are no plane's positions. Adds the nodes between planes and
  // tokens.
  std::optional<TokenRows> RowsOf(int tokens, std::set<int>& nodes) {
    std::optional<TokenRows> rows = RowsOf(tokens, kMostSteps, nodes);
    if (!rows || rows->planes == kNoValue || !rows->EndInPositions()) return std::nullopt;
    const Shape& planes = *survey_.shapes[static_cast<size_t>(rows->planes)];
    const int64_t plane = *ElementCount(Shape(planes.begin() + 2, planes.end()));
    const auto with_position = std::ranges::count_if(rows->positions, [](int64_t p) { return p != TokenRows::kNone; });
    return with_position == plane ? std::move(rows) : std::nullopt;
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
  static constexpr int kMostSteps = 8;  // from tokens back to planes

  // The shape of a value of tokens, [batch, length, channels]; where height and width are the length, their product is.
  std::optional<Shape> TokenShapeOf(int value) const {
    const auto& shape = survey_.shapes[static_cast<size_t>(value)];
    if (!shape || shape->size() < 3 || shape->size() > 4) return std::nullopt;
    const StatusOr<int64_t> length = ElementCount(Shape(shape->begin() + 1, shape->end() - 1));
    return length.ok() ? std::optional(Shape{shape->front(), *length, shape->back()}) : std::nullopt;
  }

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

  std::optional<TokenRows> RowsOf(int tokens, int steps, std::set<int>& nodes) {
    const auto [rows, is_new] = rows_.try_emplace(tokens);
    if (is_new) rows->second = MadeRowsOf(tokens, steps, nodes);
    return rows->second;
  }

  std::optional<TokenRows> MadeRowsOf(int tokens, int steps, std::set<int>& nodes) {
    const auto shape = TokenShapeOf(tokens);
    if (!shape || steps == 0) return std::nullopt;
    if (auto vectors = VectorsOf(tokens, (*shape)[1], (*shape)[2], nodes)) {
      std::vector<int64_t> none(static_cast<size_t>((*shape)[1]), TokenRows::kNone);
      return TokenRows{kNoValue, std::move(none), *std::move(vectors)};
    }
    std::optional<TokenRows> rows;
    if (const Node* const joins = MakerIf(tokens, "Concat")) {
      rows = Joined(*joins, steps, nodes);
    } else if (const Node* const adds = MakerIf(tokens, "Add")) {
      rows = Added(*adds, steps, nodes);
    } else if (const Node* const takes = MakerIf(tokens, "Slice")) {
      rows = Taken(*takes, steps, nodes);
    } else {
      return PositionsOf(tokens, *shape, nodes);
    }
    if (!rows || std::ssize(rows->positions) != (*shape)[1] || rows->added.cols != (*shape)[2]) return std::nullopt;
    nodes.insert(survey_.MakerOf(tokens));
    return rows;
  }

  std::optional<TokenRows> PositionsOf(int tokens, const Shape& shape, std::set<int>& nodes) const {
    TokenRows rows;
    rows.planes = PlanesOf(tokens, nodes);
    if (rows.planes == kNoValue) return std::nullopt;
    rows.positions.resize(static_cast<size_t>(shape[1]));
    std::iota(rows.positions.begin(), rows.positions.end(), 0);
    rows.added = {shape[1], shape[2], std::vector<float>(static_cast<size_t>(shape[1] * shape[2]))};
    return rows;
  }

  // Tokens of one value behind those of another.
  std::optional<TokenRows> Joined(const Node& node, int steps, std::set<int>& nodes) {
    const auto axis = IntAttribute(node, "axis", 0);
    if (!axis.ok() || (*axis != 1 && *axis != -2) || ShapeOf(node.outputs[0], 3) == nullptr) return std::nullopt;
    TokenRows all;
    for (const int input : node.inputs) {
      const auto part = RowsOf(input, steps - 1, nodes);
      if (!part) return std::nullopt;
      const bool is_of_others = all.planes != kNoValue && part->planes != kNoValue && all.planes != part->planes;
      if (is_of_others || (all.added.rows > 0 && all.added.cols != part->added.cols)) return std::nullopt;
      if (part->planes != kNoValue) all.planes = part->planes;
      all.positions.insert(all.positions.end(), part->positions.begin(), part->positions.end());
      all.added.values.insert(all.added.values.end(), part->added.values.begin(), part->added.values.end());
      all.added.rows += part->added.rows;
      all.added.cols = part->added.cols;
    }
    return all;
  }

  // Vectors that are the same for every row, and tokens.
  std::optional<TokenRows> Added(const Node& node, int steps, std::set<int>& nodes) {
    const auto shape = TokenShapeOf(node.outputs[0]);
    for (const size_t at : {0, 1}) {
      const auto vectors = VectorsOf(node.inputs[at], (*shape)[1], (*shape)[2], nodes);
      if (!vectors) continue;
      auto rows = RowsOf(node.inputs[1 - at], steps - 1, nodes);
      if (!rows || rows->added.values.size() != vectors->values.size()) return std::nullopt;
      std::ranges::transform(rows->added.values, vectors->values, rows->added.values.begin(), std::plus());
      return rows;
    }
    return std::nullopt;
  }

  // Some of the tokens of a value, as the node takes them of numbers that count these.
  std::optional<TokenRows> Taken(const Node& node, int steps, std::set<int>& nodes) {
    const Shape* const shape = ShapeOf(node.inputs[0], 3);
    const Shape* const left = ShapeOf(node.outputs[0], 3);
    if (shape == nullptr || left == nullptr || (*shape)[2] != (*left)[2] || (*shape)[0] != (*left)[0]) {
      return std::nullopt;
    }
    // Two rows and two channels show whether only tokens are taken, and in the same order everywhere.
    std::vector<std::optional<Elements>> inputs = {Elements{DType::kInt64, {2, (*shape)[1], 2}, {}}};
    for (int64_t i = 0; i < 4 * (*shape)[1]; ++i) inputs[0]->scalars.push_back({.whole = i});
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const interpreter::Array* const known = node.inputs[i] == kNoValue ? nullptr : survey_.KnownOf(node.inputs[i]);
      if (known == nullptr && node.inputs[i] != kNoValue) return std::nullopt;
      inputs.push_back(known == nullptr ? std::nullopt : Elements::FromTensor(TensorOf(*known)));
    }
    std::vector<const Elements*> arguments;
    for (const auto& input : inputs) arguments.push_back(input ? &*input : nullptr);
    const auto taken = Evaluate(node, arguments);
    if (!taken.ok() || !*taken || (*taken)->shape != Shape{2, (*left)[1], 2}) return std::nullopt;
    const auto rows = RowsOf(node.inputs[0], steps - 1, nodes);
    if (!rows) return std::nullopt;
    TokenRows some{rows->planes, {}, {(*left)[1], rows->added.cols, {}}};
    const std::vector<Scalar>& scalars = (*taken)->scalars;
    for (int64_t place = 0; place < (*left)[1]; ++place) {
      const int64_t token = scalars[static_cast<size_t>(2 * place)].whole / 2;
      for (const int64_t i : {0, 1, 2, 3}) {  // row i / 2, channel i % 2
        const int64_t found = scalars[static_cast<size_t>((i / 2 * (*left)[1] + place) * 2 + i % 2)].whole;
        if (found != (i / 2 * (*shape)[1] + token) * 2 + i % 2) return std::nullopt;
      }
      some.positions.push_back(rows->positions[static_cast<size_t>(token)]);
      const auto vector = rows->added.values.begin() + token * rows->added.cols;
      some.added.values.insert(some.added.values.end(), vector, vector + rows->added.cols);
    }
    return some;
  }

  // Vectors [batch, length, channels] that are the same for every row: known ones that broadcast to these, or an Expand
  // of such.
  std::optional<DenseMatrix> VectorsOf(int value, int64_t length, int64_t channels, std::set<int>& nodes) const {
    const Node* const expands = MakerIf(value, "Expand");
    const interpreter::Array* const known = survey_.KnownOf(expands != nullptr ? expands->inputs[0] : value);
    if (known == nullptr || known->dtype != DType::kFloat32 || known->elements() == 0) return std::nullopt;
    Shape from = known->shape;
    while (from.size() < 3) from.insert(from.begin(), 1);
    const auto fits = [](int64_t size, int64_t wanted) { return size == 1 || size == wanted; };
    if (from.size() != 3 || from[0] != 1 || !fits(from[1], length) || !fits(from[2], channels)) return std::nullopt;
    DenseMatrix vectors{length, channels, {}};
    vectors.values.reserve(static_cast<size_t>(length * channels));
    const std::span<const float> numbers = known->As<float>();
    for (int64_t token = 0; token < length; ++token) {
      const int64_t row = from[1] == 1 ? 0 : token;
      for (int64_t c = 0; c < channels; ++c) {
        vectors.values.push_back(numbers[static_cast<size_t>(row * from[2] + (from[2] == 1 ? 0 : c))]);
      }
    }
    if (expands != nullptr) nodes.insert(survey_.MakerOf(value));
    return vectors;
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

  // Planes [batch, channels, ...] whose positions, in order, are the tokens of a value [batch, count, channels], or
  // [batch, height, width, channels].
  int PlanesOf(int tokens, std::set<int>& nodes) const {
    const auto shape = TokenShapeOf(tokens);
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
  std::map<int, std::optional<TokenRows>> rows_;  // by value: what was looked at
};

// Whether both values have as many rows in both runs of the survey.
bool HaveAsManyRows(int a, int b, const Survey& survey) {
  return std::ranges::all_of(std::array{&survey.shapes, &survey.other_shapes}, [&](const auto* shapes) {
    const std::optional<Shape>&of_a = (*shapes)[static_cast<size_t>(a)], &of_b = (*shapes)[static_cast<size_t>(b)];
    return of_a && of_b && !of_a->empty() && !of_b->empty() && of_a->front() == of_b->front();
  });
}

// Whether the stem reads one value, of as many rows as planes has, and of the same ones in both runs of the survey.
bool HasRowsOf(const Region& stem, int planes, const Survey& survey) {
  if (stem.inputs.size() != 1) return false;
  const auto input = static_cast<size_t>(stem.inputs.front());
  return HaveAsManyRows(stem.inputs.front(), planes, survey) &&
         RowShape(*survey.shapes[input], Form::kImages) == RowShape(*survey.other_shapes[input], Form::kImages);
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
  StemFinder finder(graph, survey, taken);
  std::set<int> between;
  std::optional<TokenRows> tokens = finder.RowsOf(region.region.inputs[port], between);
  if (!tokens || !HaveAsManyRows(tokens->planes, region.region.inputs[port], survey)) return false;
  const auto makers = finder.MakersOf(tokens->planes);
  if (!makers || makers->empty()) return false;
  Region stem = MakeRegion(graph, survey, Form::kImages, *makers);
  if (!HasRowsOf(stem, tokens->planes, survey)) return false;
  std::set<int> of_stem(makers->begin(), makers->end());
  of_stem.insert(between.begin(), between.end());
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
  stem.outputs = {tokens->planes};
  StatusOr<Network> planes = NetworkOf(graph, survey, stem);
  if (!planes.ok()) return false;
  Network joined = JoinPlanes(*std::move(planes), region.network, port, std::move(tokens->added));
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
