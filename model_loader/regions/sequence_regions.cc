#include "model_loader/regions/sequence_regions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/plan/run/plan_runner.h"
#include "model_loader/sequences/section.h"
#include "model_loader/shapes/symbolic_walk.h"

namespace swizzle::regions {
namespace {

Tensor TensorOf(const interpreter::Array& array) {
  const auto bytes = array.AsBytes();
  return {array.dtype, array.shape, std::vector<std::byte>(bytes.begin(), bytes.end())};
}

// The batch and the length of sequences.
struct Extents {
  SymbolicInt batch, length;

  bool operator==(const Extents&) const = default;
};

// As GraphSequences says it.
int64_t Declared(const SymbolicInt& extent) { return extent.Number().value_or(kFreeBatch); }

// What holds of values' shapes in every run.
class Shapes {
 public:
  Shapes(const Graph& graph, const Survey& survey) : graph_(WithLists(graph, survey)), walk_(graph_) {
    for (const auto& [value, array] : survey.known) {
      if (!array.HasStrings() && !array.IsSequence()) walk_.Suppose(value, array.dtype, array.shape);
    }
    for (const Node& node : graph_.nodes) {
      const auto is_known = [&](int output) { return output == kNoValue || survey.IsKnown(output); };
      if (!std::ranges::all_of(node.outputs, is_known)) walk_.Visit(node);
    }
  }

  const std::optional<SymbolicShape>& Of(int value) const { return walk_.Of(value).shape; }

 private:
  // With the elements of constants that shapes may be computed of.
  static Graph WithLists(const Graph& graph, const Survey& survey) {
    Graph made = graph;
    for (const auto& [value, array] : survey.known) {
      if (array.HasStrings() || array.IsSequence() || array.elements() > kMostSymbolicElements) continue;
      made.values[static_cast<size_t>(value)].constant = TensorOf(array);
    }
    return made;
  }

  const Graph graph_;
  SymbolicWalk walk_;
};

class Source final : public SectionSource {
 public:
  Source(const Graph& graph, const Survey& survey, const Shapes& shapes, const Extents& extents,
         const std::set<int>& taken)
      : graph_(graph), survey_(survey), shapes_(shapes), extents_(extents), taken_(taken) {}

  int MakerOf(int value) const override { return survey_.MakerOf(value); }
  std::span<const int> ReadersOf(int value) const override { return survey_.readers[static_cast<size_t>(value)]; }
  bool IsKnown(int value) const override {
    const auto known = survey_.known.find(value);
    return known != survey_.known.end() && !known->second.IsSequence() && !known->second.HasStrings();
  }
  bool IsReal(int value) const override { return survey_.dtypes[static_cast<size_t>(value)] == DType::kFloat32; }
  Tensor Elements(int value) const override { return TensorOf(survey_.known.at(value)); }
  int64_t ChannelsOf(int value) const override {
    return ExtentsOf(value) == std::optional(extents_) ? *shapes_.Of(value)->back().Number() : 0;
  }
  bool MayHold(size_t node) const override { return !taken_.contains(static_cast<int>(node)); }
  bool IsVital(size_t node) const override {
    return LengthOfScores(graph_.nodes[node]) == std::optional(extents_.length) && MayHold(node);
  }

  // The extents of an activation of tokens.
  std::optional<Extents> ExtentsOf(int value) const {
    const auto& shape = shapes_.Of(value);
    if (!shape || shape->size() != 3 || survey_.IsKnown(value)) return std::nullopt;
    if (survey_.dtypes[static_cast<size_t>(value)] != DType::kFloat32) return std::nullopt;
    const bool is_of_tokens = (*shape)[2].Number().value_or(0) > 0 && (*shape)[1].Number().value_or(2) > 1;
    return is_of_tokens ? std::optional(Extents{(*shape)[0], (*shape)[1]}) : std::nullopt;
  }

  // How many tokens a softmax is over that has the scores of each with each.
  std::optional<SymbolicInt> LengthOfScores(const Node& node) const {
    if (node.op != "Softmax" || !node.domain.empty()) return std::nullopt;
    const auto& shape = shapes_.Of(node.inputs[0]);
    const bool is_square = shape && shape->size() >= 3 && shape->back() == (*shape)[shape->size() - 2];
    return is_square ? std::optional(shape->back()) : std::nullopt;
  }

 private:
  static_assert(Survey::kOutside == SectionSource::kOutside);
  const Graph& graph_;
  const Survey& survey_;
  const Shapes& shapes_;
  const Extents extents_;
  const std::set<int>& taken_;
};

// A copy of a program's graph, which has no elements of constants: the section's source has them.
Graph CopyFor(const Graph& graph, const Extents& extents) {
  Graph copy = graph;
  copy.sequences = GraphSequences{.batch = Declared(extents.batch), .length = Declared(extents.length)};
  return copy;
}

// The extents of most tokens between which there is attention, for each length.
std::vector<Extents> LikelyExtents(const Graph& graph, const Survey& survey, const Shapes& shapes) {
  const std::set<int> none;
  const Source source(graph, survey, shapes, {}, none);
  std::set<std::string> lengths;
  for (const Node& node : graph.nodes) {
    if (const auto length = source.LengthOfScores(node)) lengths.insert(length->Text());
  }
  struct Votes {
    Extents extents;
    int count = 0;
  };
  std::map<std::string, std::map<std::string, Votes>> votes;  // by length and batch
  for (size_t value = 0; value < graph.values.size(); ++value) {
    const auto extents = source.ExtentsOf(static_cast<int>(value));
    if (!extents || !lengths.contains(extents->length.Text())) continue;
    Votes& its = votes[extents->length.Text()][extents->batch.Text()];
    its = {*extents, its.count + 1};
  }
  std::vector<Extents> likely;
  for (const auto& [length, by_batch] : votes) {
    const auto most = std::ranges::max_element(by_batch, {}, [](const auto& of) { return of.second.count; });
    likely.push_back(most->second.extents);
  }
  return likely;
}

bool HasQuantisedProducts(const Graph& graph) {
  constexpr std::string_view kOps[] = {"DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearMatMul",
                                       "QuantizeLinear"};
  return std::ranges::any_of(graph.nodes,
                             [&](const Node& node) { return std::ranges::find(kOps, node.op) != std::end(kOps); });
}

bool HasAttention(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op == "Softmax"; });
}

StatusOr<SequenceRegion> RegionOf(const Graph& graph, const Survey& survey, const Shapes& shapes,
                                  const Extents& extents, const std::set<int>& taken) {
  Graph copy = CopyFor(graph, extents);
  SWIZZLE_ASSIGN_OR_RETURN(SequenceSection section,
                           RecogniseSection(copy, Source(graph, survey, shapes, extents, taken)));
  SWIZZLE_RETURN_IF_ERROR(RunSectionPasses(section.graph));
  SWIZZLE_ASSIGN_OR_RETURN(Network network, Lower(std::move(section.graph)));
  if (section.inputs.empty()) return Unimplemented("a region of sequences reads nothing");
  const auto& input = survey.shapes[static_cast<size_t>(section.inputs.front())];
  for (size_t i = 0; input && i < section.outputs.size(); ++i) {
    const auto& shape = survey.shapes[static_cast<size_t>(section.outputs[i])];
    const Shape made = DimsAt(network, network.outputs[i], (*input)[0], (*input)[1]);
    if (!shape || *shape == made) continue;
    return Unimplemented("a region of sequences makes ", ShapeText(made), " instead of ", ShapeText(*shape));
  }
  Region region{Form::kSequences, std::move(section.nodes), std::move(section.inputs), std::move(section.outputs)};
  return SequenceRegion{std::move(region), std::move(network)};
}

}  // namespace

std::vector<SequenceRegion> FindSequenceRegions(const Graph& graph, const Survey& survey) {
  constexpr size_t kMostLengths = 4;
  std::vector<SequenceRegion> regions;
  if (HasQuantisedProducts(graph) || !HasAttention(graph)) return regions;
  const Shapes shapes(graph, survey);
  std::vector<Extents> likely = LikelyExtents(graph, survey, shapes);
  likely.resize(std::min(likely.size(), kMostLengths));
  std::set<int> taken;
  for (const Extents& extents : likely) {
    StatusOr<SequenceRegion> region = RegionOf(graph, survey, shapes, extents, taken);
    if (!region.ok()) continue;  // its layers are of other regions
    taken.insert(region->region.nodes.begin(), region->region.nodes.end());
    regions.push_back(*std::move(region));
  }
  return regions;
}

}  // namespace swizzle::regions
