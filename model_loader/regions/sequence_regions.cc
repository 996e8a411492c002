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
#include "model_loader/regions/run_shapes.h"
#include "model_loader/regions/token_stem.h"
#include "model_loader/sequences/section.h"

namespace swizzle::regions {
namespace {

// The batch and the length of sequences.
struct Extents {
  SymbolicInt batch, length;

  bool operator==(const Extents&) const = default;
};

// Sequences that there is attention in, of whole ones or of windows of their tokens.
struct Candidate {
  Extents extents;
  std::set<size_t> scores;  // the nodes of softmaxes over these
};

// As GraphSequences says it.
int64_t Declared(const SymbolicInt& extent) { return extent.Number().value_or(kFreeBatch); }

// What stands between the batch and the channels as one length; a product where that is several fixed dimensions.
std::optional<SymbolicInt> LengthOf(const SymbolicShape& shape) {
  if (shape.size() == 3) return shape[1];
  Shape places;
  for (size_t i = 1; i + 1 < shape.size(); ++i) places.push_back(shape[i].Number().value_or(-1));
  const StatusOr<int64_t> product = ElementCount(places);
  return shape.size() > 3 && product.ok() ? std::optional(SymbolicInt(*product)) : std::nullopt;
}

// Whether it is made with channels before height and width.
bool HasChannelsFirst(const Graph& graph, int value, const Survey& survey) {
  constexpr std::string_view kOps[] = {"AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "MaxPool"};
  const int maker = survey.MakerOf(value);
  return maker != Survey::kOutside &&
         std::ranges::find(kOps, graph.nodes[static_cast<size_t>(maker)].op) != std::end(kOps);
}

// The extents of an activation of tokens, [batch, length, channels] or [batch, height, width, channels].
std::optional<Extents> ExtentsOf(const Graph& graph, int value, const Survey& survey, const RunShapes& shapes) {
  const auto& shape = shapes.Of(value);
  if (!shape || shape->size() < 3 || survey.IsKnown(value)) return std::nullopt;
  if (shape->size() > 3 && HasChannelsFirst(graph, value, survey)) return std::nullopt;
  if (survey.dtypes[static_cast<size_t>(value)] != DType::kFloat32) return std::nullopt;
  const auto length = LengthOf(*shape);
  const bool is_of_tokens = length && shape->back().Number().value_or(0) > 0 && length->Number().value_or(2) > 1;
  return is_of_tokens ? std::optional(Extents{(*shape)[0], *length}) : std::nullopt;
}

// The scores that a softmax is over, of each token with each; null where it is of others.
const SymbolicShape* ScoresOf(const Node& node, const RunShapes& shapes) {
  if (node.op != "Softmax" || !node.domain.empty()) return nullptr;
  const auto& shape = shapes.Of(node.inputs[0]);
  const bool is_square = shape && shape->size() >= 3 && shape->back() == (*shape)[shape->size() - 2];
  return is_square ? &*shape : nullptr;
}

class Source final : public SectionSource {
 public:
  Source(const Graph& graph, const Survey& survey, const RunShapes& shapes, const Candidate& candidate,
         const std::set<int>& taken)
      : graph_(graph), survey_(survey), shapes_(shapes), candidate_(candidate), taken_(taken) {}

  int MakerOf(int value) const override { return survey_.MakerOf(value); }
  std::span<const int> ReadersOf(int value) const override { return survey_.readers[static_cast<size_t>(value)]; }
  bool IsKnown(int value) const override {
    const interpreter::Array* const known = survey_.KnownOf(value);
    return known != nullptr && !known->IsSequence() && !known->HasStrings();
  }
  bool IsReal(int value) const override { return survey_.dtypes[static_cast<size_t>(value)] == DType::kFloat32; }
  Tensor Elements(int value) const override { return TensorOf(*survey_.KnownOf(value)); }
  int64_t ChannelsOf(int value) const override {
    const bool fits = ExtentsOf(graph_, value, survey_, shapes_) == std::optional(candidate_.extents);
    return fits ? *shapes_.Of(value)->back().Number() : 0;
  }
  Shape PlacesOf(int value) const override {
    const SymbolicShape& shape = *shapes_.Of(value);
    Shape places;
    for (size_t i = 1; shape.size() > 3 && i + 1 < shape.size(); ++i) places.push_back(*shape[i].Number());
    return places;
  }
  std::optional<Wholes> SizesOf(int value) const override {
    const auto& shape = shapes_.Of(value);
    if (!shape) return std::nullopt;
    Wholes sizes;
    for (const SymbolicInt& size : *shape) {
      const auto number = size.Number();
      const bool is_batch = size == candidate_.extents.batch, is_length = size == candidate_.extents.length;
      if (!number && !is_batch && !is_length) return std::nullopt;
      sizes.push_back(number ? Whole{*number} : is_batch ? Whole{1, 1, 0} : Whole{1, 0, 1});
    }
    return sizes;
  }
  bool MayHold(size_t node) const override { return !taken_.contains(static_cast<int>(node)); }
  bool IsVital(size_t node) const override { return candidate_.scores.contains(node) && MayHold(node); }

 private:
  static_assert(Survey::kOutside == SectionSource::kOutside);
  const Graph& graph_;
  const Survey& survey_;
  const RunShapes& shapes_;
  const Candidate& candidate_;
  const std::set<int>& taken_;
};

// A copy of a program's graph, which has no elements of constants: the section's source has them.
Graph CopyFor(const Graph& graph, const Extents& extents) {
  Graph copy = graph;
  copy.sequences = GraphSequences{.batch = Declared(extents.batch), .length = Declared(extents.length)};
  return copy;
}

// Of each length the candidate whose batch most activations have that are made elsewhere than by nodes in `taken`.
// `attended` gives the nodes of scores of an activation's sequences.
template <typename Attended>
std::vector<Candidate> Likely(const Graph& graph, const Survey& survey, const RunShapes& shapes,
                              const std::set<int>& taken, const Attended& attended) {
  constexpr size_t kMostLengths = 4;
  struct Votes {
    Candidate candidate;
    int count = 0;
  };
  std::map<std::string, std::map<std::string, Votes>> votes;  // by length and batch
  for (size_t value = 0; value < graph.values.size(); ++value) {
    const auto extents = ExtentsOf(graph, static_cast<int>(value), survey, shapes);
    if (!extents || taken.contains(survey.MakerOf(static_cast<int>(value)))) continue;
    Votes& its = votes[extents->length.Text()][extents->batch.Text()];
    if (its.count++ == 0) its.candidate = {*extents, attended(*extents)};
  }
  std::vector<Candidate> likely;
  for (const auto& [length, by_batch] : votes) {
    const auto rank = [](const auto& of) { return of.second.candidate.scores.empty() ? 0 : of.second.count; };
    const Votes& most = std::ranges::max_element(by_batch, {}, rank)->second;
    if (!most.candidate.scores.empty() && likely.size() < kMostLengths) likely.push_back(most.candidate);
  }
  return likely;
}

// Whole sequences.
std::vector<Candidate> LikelySequences(const Graph& graph, const Survey& survey, const RunShapes& shapes,
                                       const std::set<int>& taken) {
  return Likely(graph, survey, shapes, taken, [&](const Extents& extents) {
    std::set<size_t> scores;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const SymbolicShape* const shape = ScoresOf(graph.nodes[n], shapes);
      if (shape != nullptr && shape->back() == extents.length) scores.insert(n);
    }
    return scores;
  });
}

// Sequences of a fixed length that are cut into windows: scores [.., windows, heads, length, length] are of as many
// tokens.
std::vector<Candidate> LikelyWindows(const Graph& graph, const Survey& survey, RunShapes& shapes) {
  return Likely(graph, survey, shapes, {}, [&](const Extents& extents) {
    std::set<size_t> scores;
    const auto length = extents.length.Number();
    for (size_t n = 0; length && n < graph.nodes.size(); ++n) {
      const SymbolicShape* const shape = ScoresOf(graph.nodes[n], shapes);
      if (shape == nullptr || shape->size() < 4 || shape->back().Number().value_or(*length) >= *length) continue;
      SymbolicInt tokens = shape->back();
      for (size_t i = 0; i + 3 < shape->size(); ++i) tokens = shapes.symbols().Product(tokens, (*shape)[i]);
      if (tokens == shapes.symbols().Product(extents.batch, extents.length)) scores.insert(n);
    }
    return scores;
  });
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

// Has the port say a fixed length as the value does: as one dimension or as several.
void TakePlaces(const Survey& survey, int value, const Network& network, NetworkPort& port) {
  const auto& shape = survey.shapes[static_cast<size_t>(value)];
  if (!shape || network.sequences->length == 0) return;
  if (port.value == -1 || !network.values[static_cast<size_t>(port.value)].per_token) return;
  Shape dims(shape->begin() + (network.batch_size == 0 ? 1 : 0), shape->end());
  if (dims.size() > port.dims.size() && *ElementCount(dims) == *ElementCount(port.dims)) port.dims = std::move(dims);
}

StatusOr<SequenceRegion> RegionOf(const Graph& graph, const Survey& survey, const RunShapes& shapes,
                                  const Candidate& candidate, const std::set<int>& taken) {
  Graph copy = CopyFor(graph, candidate.extents);
  SWIZZLE_ASSIGN_OR_RETURN(SequenceSection section,
                           RecogniseSection(copy, Source(graph, survey, shapes, candidate, taken)));
  SWIZZLE_RETURN_IF_ERROR(RunSectionPasses(section.graph));
  SWIZZLE_ASSIGN_OR_RETURN(Network network, Lower(std::move(section.graph)));
  if (section.inputs.empty()) return Unimplemented("a region of sequences reads nothing");
  for (size_t i = 0; i < section.inputs.size(); ++i) TakePlaces(survey, section.inputs[i], network, network.inputs[i]);
  for (size_t i = 0; i < section.outputs.size(); ++i) {
    TakePlaces(survey, section.outputs[i], network, network.outputs[i]);
  }
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
  std::vector<SequenceRegion> regions;
  if (HasQuantisedProducts(graph) || !HasAttention(graph)) return regions;
  RunShapes shapes(graph, survey.known);
  std::set<int> taken;
  const auto add = [&](const std::vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) {
      StatusOr<SequenceRegion> region = RegionOf(graph, survey, shapes, candidate, taken);
      if (!region.ok()) continue;  // its layers are of other regions
      AddStem(graph, survey, taken, *region);
      taken.insert(region->region.nodes.begin(), region->region.nodes.end());
      regions.push_back(*std::move(region));
    }
  };
  add(LikelyWindows(graph, survey, shapes));
  add(LikelySequences(graph, survey, shapes, taken));
  return regions;
}

}  // namespace swizzle::regions
