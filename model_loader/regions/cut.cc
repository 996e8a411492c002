#include "model_loader/regions/cut.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "model_loader/passes/canonicalise.h"
#include "model_loader/regions/likeness.h"

namespace swizzle::regions {
namespace {

bool IsRearranging(std::string_view op) { return std::ranges::find(kRearranging, op) != kRearranging.end(); }

class Cutter {
 public:
  Cutter(const Graph& graph, const Survey& survey, std::vector<bool> is_candidate, const CutFor& backend)
      : graph_(graph),
        survey_(survey),
        backend_(backend),
        likeness_(graph, survey, Likeness::Weights::kShapes),
        is_candidate_(std::move(is_candidate)),
        forms_(graph.nodes.size()),
        levels_(graph.nodes.size()) {
    group_.resize(graph.nodes.size());
    std::iota(group_.begin(), group_.end(), size_t{0});
  }

  std::vector<Region> Run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Idiom* const idiom = survey_.IdiomOf(i);
      if (idiom == nullptr || i == static_cast<size_t>(idiom->nodes.back())) Place(i);
    }
    Join();
    std::map<size_t, std::vector<int>> members;  // by group
    std::map<size_t, bool> worth;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (forms_[i] == Form::kNone) continue;
      members[GroupOf(i)].push_back(static_cast<int>(i));
      worth[GroupOf(i)] |= IsWorthAPlan(i);
    }
    std::vector<Region> regions;
    for (auto& [group, nodes] : members) {
      if (worth[group]) regions.push_back(MakeRegion(graph_, survey_, forms_[group], std::move(nodes)));
    }
    return regions;
  }

 private:
  // Whether kernels compute it much faster than the interpreter.
  bool IsWorthAPlan(size_t index) const {
    const Node& node = graph_.nodes[index];
    if (HasKnownWeight(node, survey_) || survey_.IdiomOf(index) != nullptr) return true;
    if (IsRearranging(node.op)) return false;
    constexpr int64_t kManyElements = 4096;
    const auto elements = ElementCount(*survey_.shapes[static_cast<size_t>(node.outputs[0])]);
    return elements.ok() && *elements >= kManyElements;
  }

  // Activations of the node: none if its values cannot be a region's.
  std::optional<std::vector<int>> Activations(const Node& node, Form form) const {
    if (node.outputs.empty() || node.outputs[0] == kNoValue) return std::nullopt;
    const std::vector<int> made = MadeValues(node, survey_);
    const auto is_activation = [&](int value) { return IsActivation(survey_, value, form); };
    if (!std::ranges::all_of(made, is_activation)) return std::nullopt;
    if (made.size() > 1 && node.op != "Split") return std::nullopt;
    std::vector<int> activations;
    for (const int input : node.inputs) {
      if (input == kNoValue || survey_.IsKnown(input)) continue;
      if (!IsActivation(survey_, input, form)) return std::nullopt;
      activations.push_back(input);
    }
    if (activations.empty()) return std::nullopt;
    return activations;
  }

  // What counts the rows of a value.
  Shape Leading(int value, Form form) const {
    const Shape& shape = *survey_.shapes[static_cast<size_t>(value)];
    return form == Form::kImages ? Shape{shape[0]} : Shape(shape.begin(), shape.end() - 1);
  }

  bool FitsIdiom(const Idiom& idiom, Form form) {
    const bool is_plane = survey_.shapes[static_cast<size_t>(idiom.input)].has_value() &&
                          IsActivation(survey_, idiom.input, form) && IsActivation(survey_, idiom.output, form);
    return is_plane && IsComputed(MakeRegion(graph_, survey_, form, idiom.nodes));
  }

  // Regions that are alike are asked about once: to lower a layer takes as long as to look at all of its weights.
  bool IsComputed(const Region& region) {
    const auto [computed, is_new] = computed_.try_emplace(likeness_.Of(region), false);
    if (!is_new) return computed->second;
    const StatusOr<Network> network = NetworkOf(graph_, survey_, region);
    return computed->second = network.ok() && backend_.computes(*network);
  }

  bool Fits(size_t index, Form form) {
    const Node& node = graph_.nodes[index];
    if (!is_candidate_[index]) return false;
    if (const Idiom* const idiom = survey_.IdiomOf(index)) return FitsIdiom(*idiom, form);
    if (!node.domain.empty() || !IsCanonicalised(node.op) || node.op.ends_with("Linear")) return false;
    const auto activations = Activations(node, form);
    if (!activations) return false;
    const Shape leading = Leading(node.outputs[0], form);
    const auto same = [&](int value) { return Leading(value, form) == leading; };
    if (!std::ranges::all_of(*activations, same)) return false;
    const Region alone = MakeRegion(graph_, survey_, form, {static_cast<int>(index)});
    return !alone.outputs.empty() && IsComputed(alone);
  }

  std::vector<size_t> Makers(std::span<const int> values) const {
    std::vector<size_t> makers;
    for (const int input : values) {
      const int maker = survey_.MakerOf(input);
      if (maker != Survey::kOutside) makers.push_back(static_cast<size_t>(maker));
    }
    return makers;
  }

  int LevelAs(const std::vector<size_t>& makers, Form form) const {
    int level = 0;
    for (const size_t maker : makers) {
      const bool changes = forms_[maker] != form && forms_[maker] != Form::kNone;
      level = std::max(level, levels_[maker] + (changes ? 1 : 0));
    }
    return level;
  }

  // What is rounded is of the layer that multiplies it: apart from that, it would be rounded for nothing.
  Form FormOfReaders(const Idiom& rounding) const {
    const std::vector<int>& readers = survey_.readers[static_cast<size_t>(rounding.output)];
    const bool is_product = std::ranges::any_of(readers, [&](int reader) {
      return reader != Survey::kOutside && graph_.nodes[static_cast<size_t>(reader)].op == "MatMul";
    });
    return is_product ? Form::kVectors : Form::kImages;
  }

  // Gives the node its form: the one that its neighbours before have, where it may be of both.
  void Place(size_t index) {
    const Node& node = graph_.nodes[index];
    const Idiom* const idiom = survey_.IdiomOf(index);
    const std::vector<size_t> makers = idiom != nullptr ? Makers(std::span(&idiom->input, 1)) : Makers(node.inputs);
    const bool images = Fits(index, Form::kImages), vectors = Fits(index, Form::kVectors);
    Form form = images ? Form::kImages : vectors ? Form::kVectors : Form::kNone;
    if (images && vectors) {
      const int as_images = LevelAs(makers, Form::kImages), as_vectors = LevelAs(makers, Form::kVectors);
      const bool plane = survey_.shapes[static_cast<size_t>(node.outputs[0])]->size() == 4;
      const bool follows_vectors = std::ranges::any_of(makers, [&](size_t m) { return forms_[m] == Form::kVectors; });
      if (as_vectors < as_images || (as_vectors == as_images && (follows_vectors || !plane))) form = Form::kVectors;
    }
    if (images && vectors && idiom != nullptr && idiom->op == "QuantizeLinear") form = FormOfReaders(*idiom);
    forms_[index] = form;
    levels_[index] = LevelAs(makers, form);
    if (idiom == nullptr) return;
    for (const int inner : idiom->nodes) {
      forms_[static_cast<size_t>(inner)] = form;
      levels_[static_cast<size_t>(inner)] = levels_[index];
      group_[GroupOf(static_cast<size_t>(inner))] = GroupOf(index);
    }
  }

  size_t GroupOf(size_t index) {
    while (group_[index] != index) index = group_[index] = group_[group_[index]];
    return index;
  }

  void Join() {
    std::map<std::tuple<int, Form, int>, size_t> readers;  // of a value, by form and level
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (forms_[i] == Form::kNone) continue;
      const Node& node = graph_.nodes[i];
      for (const size_t maker : Makers(node.inputs)) {
        if (forms_[maker] == forms_[i] && levels_[maker] == levels_[i]) group_[GroupOf(i)] = GroupOf(maker);
      }
      for (const int input : node.inputs) {
        if (input == kNoValue || survey_.IsKnown(input)) continue;
        const auto [first, is_new] = readers.try_emplace({input, forms_[i], levels_[i]}, i);
        if (!is_new) group_[GroupOf(i)] = GroupOf(first->second);
      }
    }
  }

  const Graph& graph_;
  const Survey& survey_;
  const CutFor& backend_;
  Likeness likeness_;
  std::map<std::string, bool> computed_;  // by likeness
  const std::vector<bool> is_candidate_;  // by node: whether it may be of a region
  std::vector<Form> forms_;               // by node
  std::vector<int> levels_;               // by node
  std::vector<size_t> group_;             // by node: another of the same region, or itself
};

// Puts the border between two regions where whole numbers are bytes: between the halves of what rounds them.
class ByteBorders {
 public:
  ByteBorders(const Graph& graph, const Survey& survey, std::vector<Region> regions)
      : graph_(graph), survey_(survey), regions_(std::move(regions)), region_of_(graph.nodes.size(), kNone) {
    for (size_t i = 0; i < regions_.size(); ++i) {
      for (const int node : regions_[i].nodes) region_of_[static_cast<size_t>(node)] = static_cast<int>(i);
    }
  }

  std::vector<Region> Run() {
    for (const Idiom& idiom : survey_.idioms) {
      if (idiom.op != "QuantizeLinear" || !IsOfBytes(idiom)) continue;
      const int in = RegionOf(idiom.nodes.back()), reads = OnlyReader(idiom.output);
      if (in == kNone || reads == kNone) continue;
      const int makes = RegionThatMakes(idiom.input);
      if (in != reads) {
        Move(idiom.nodes.back(), in, reads);
      } else if (makes != kNone && makes != in && !ReadsElse(in, idiom)) {
        Move(idiom.nodes.front(), in, makes);
      }
    }
    return std::move(regions_);
  }

 private:
  static constexpr int kNone = -1;

  int RegionOf(int node) const { return region_of_[static_cast<size_t>(node)]; }
  Region& RegionAt(int index) { return regions_[static_cast<size_t>(index)]; }

  bool IsOfBytes(const Idiom& rounding) const {
    const int wholes = graph_.nodes[static_cast<size_t>(rounding.nodes.front())].outputs[0];
    return survey_.dtypes[static_cast<size_t>(wholes)] == DType::kUint8;
  }

  // The region of a node that computes the value; kNone where it is only moved there, or made elsewhere.
  int RegionThatMakes(int value) const {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (std::ranges::find(node.outputs, value) == node.outputs.end()) continue;
      return IsRearranging(node.op) ? kNone : region_of_[i];
    }
    return kNone;
  }

  // Whether the region reads what is rounded as real numbers, too.
  bool ReadsElse(int region, const Idiom& rounding) const {
    return std::ranges::any_of(survey_.readers[static_cast<size_t>(rounding.input)], [&](int reader) {
      return reader != Survey::kOutside && reader != rounding.nodes.front() && RegionOf(reader) == region;
    });
  }

  void Move(int node, int from, int to) {
    std::vector<int> without = RegionAt(from).nodes, with = RegionAt(to).nodes;
    std::erase(without, node);
    with.insert(std::ranges::upper_bound(with, node), node);
    region_of_[static_cast<size_t>(node)] = to;
    RegionAt(from) = MakeRegion(graph_, survey_, RegionAt(from).form, std::move(without));
    RegionAt(to) = MakeRegion(graph_, survey_, RegionAt(to).form, std::move(with));
  }

  // The region of all that reads the value; kNone where that is not one.
  int OnlyReader(int value) const {
    const std::vector<int>& readers = survey_.readers[static_cast<size_t>(value)];
    const auto region_of = [&](int reader) { return reader == Survey::kOutside ? kNone : RegionOf(reader); };
    if (readers.empty()) return kNone;
    const int first = region_of(readers.front());
    return std::ranges::all_of(readers, [&](int reader) { return region_of(reader) == first; }) ? first : kNone;
  }

  const Graph& graph_;
  const Survey& survey_;
  std::vector<Region> regions_;
  std::vector<int> region_of_;  // by node
};

}  // namespace

std::vector<Region> CutRegions(const Graph& graph, const Survey& survey, const std::vector<int>& nodes,
                               const CutFor& backend) {
  std::vector<bool> is_candidate(graph.nodes.size());
  for (const int node : nodes) is_candidate[static_cast<size_t>(node)] = true;
  std::vector<Region> regions = Cutter(graph, survey, std::move(is_candidate), backend).Run();
  return backend.ports_of_bytes ? ByteBorders(graph, survey, std::move(regions)).Run() : regions;
}

}  // namespace swizzle::regions
