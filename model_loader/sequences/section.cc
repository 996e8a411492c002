#include "model_loader/sequences/section.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "model_loader/sequences/outputs.h"
#include "model_loader/sequences/section_walk.h"

namespace swizzle::sequences {
namespace {

// Chooses the nodes of one level that are a section. Used once.
class SectionCut {
 public:
  SectionCut(const Graph& graph, const SectionSource& source, SectionWalk& walk, int level)
      : graph_(graph), source_(source), walk_(walk), level_(level), is_in_(graph.nodes.size()) {
    FindIdle();
  }

  StatusOr<SequenceSection> Run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      is_in_[n] = walk_.ReadingOf(n) == SectionWalk::Reading::kTokens && walk_.NodeLevel(n) == level_;
    }
    std::vector<std::pair<int, Tokens>> outputs;
    do {
      left_ = false;
      TakeShapes();
      LeaveOutReturns();
      if (!left_) outputs = LeavingValues();
    } while (left_);
    const auto is_in = [&](size_t node) { return is_in_[node]; };
    if (std::ranges::count_if(walk_.attention().at(level_), is_in) < kLeastAttention) {
      return Unimplemented("no section holds attention of ", kLeastAttention, " layers");
    }
    SequenceSection section;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (is_in_[n]) section.nodes.push_back(static_cast<int>(n));
    }
    for (const auto& [value, tokens] : outputs) {
      AddOutput(walk_.context(), tokens, NameOf(value));
      section.outputs.push_back(value);
    }
    SWIZZLE_RETURN_IF_ERROR(walk_.context().facts().Finish(walk_.context().out().graph()));
    TakeInputs(section);
    section.graph = TakeGraph(walk_.context(), graph_);
    return section;
  }

 private:
  // One layer alone gains nothing (a SegFormer's last stage on an H200, FP16, batch 16: 11.4 ms, in other
  // regions 11.0).
  static constexpr int kLeastAttention = 2;

  std::string NameOf(int value) const { return Concat(graph_.values[static_cast<size_t>(value)].name, "#", value); }

  bool IsIn(int node) const { return node != SectionSource::kOutside && is_in_[static_cast<size_t>(node)]; }

  // Nodes whose results are known need not run, nor do those that only such read.
  void FindIdle() {
    is_idle_.resize(graph_.nodes.size());
    const auto is_idle = [&](int reader) {
      return reader != SectionSource::kOutside && is_idle_[static_cast<size_t>(reader)];
    };
    const auto is_left = [&](int value) {
      return value == kNoValue || std::ranges::all_of(source_.ReadersOf(value), is_idle);
    };
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      is_idle_[n] = walk_.ReadingOf(n) == SectionWalk::Reading::kConstant ||
                    (walk_.ReadingOf(n) == SectionWalk::Reading::kShapes &&
                     std::ranges::all_of(graph_.nodes[n].outputs, is_left));
    }
  }

  // By nodes that run.
  bool IsRead(int value, bool inside) const {
    return std::ranges::any_of(source_.ReadersOf(value), [&](int reader) {
      return IsIn(reader) == inside && (reader == SectionSource::kOutside || !is_idle_[static_cast<size_t>(reader)]);
    });
  }

  // Shapes that only the section reads are computed for nothing, since its operators do without them.
  void TakeShapes() {
    const auto is_of_shapes = [&](size_t n) { return walk_.ReadingOf(n) == SectionWalk::Reading::kShapes; };
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      if (!is_of_shapes(n)) continue;
      const auto& outputs = graph_.nodes[n].outputs;
      is_in_[n] = std::ranges::none_of(outputs, [&](int v) { return v != kNoValue && IsRead(v, false); }) &&
                  std::ranges::any_of(outputs, [&](int v) { return v != kNoValue && IsRead(v, true); });
    }
    // What reads something from outside stays there, and so do those that make for it.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t n = 0; n < graph_.nodes.size(); ++n) {
        if (!is_in_[n] || !is_of_shapes(n)) continue;
        const auto is_inside = [&](int value) { return value == kNoValue || IsInside(value); };
        const auto is_read_outside = [&](int value) { return value != kNoValue && IsRead(value, false); };
        const Node& node = graph_.nodes[n];
        if (std::ranges::all_of(node.inputs, is_inside) && std::ranges::none_of(node.outputs, is_read_outside))
          continue;
        is_in_[n] = false;
        changed = true;
      }
    }
  }

  bool IsInside(int value) const {
    const int maker = source_.MakerOf(value);
    const bool is_made = maker != SectionSource::kOutside;
    if (IsIn(maker)) return true;
    if (is_made && walk_.ReadingOf(static_cast<size_t>(maker)) == SectionWalk::Reading::kConstant) return true;
    return graph_.IsConstant(value) || walk_.BeginOf(value, level_) != kNoValue;
  }

  // Leaves out what reads something that was made outside of something made inside: of a size that others read, too, or
  // of what is the same for all sequences of a length.
  void LeaveOutReturns() {
    std::vector<bool> is_after(graph_.nodes.size());  // by node: whether it is outside, and behind the section
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      bool returns = false, leaves = false;
      for (const int input : graph_.nodes[n].inputs) {
        const bool is_known = input == kNoValue || source_.IsKnown(input);
        const int maker = is_known ? SectionSource::kOutside : source_.MakerOf(input);
        if (maker == SectionSource::kOutside) continue;
        returns = returns || is_after[static_cast<size_t>(maker)];
        leaves = leaves || IsIn(maker);
      }
      if (is_in_[n] && returns) LeaveOut(n);
      is_after[n] = !is_in_[n] && (returns || leaves);
    }
  }

  // What is read outside, as outputs. What cannot be one is left out of the section, which sets left_.
  std::vector<std::pair<int, Tokens>> LeavingValues() {
    std::vector<std::pair<int, Tokens>> leaving;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!is_in_[n]) continue;
      for (const int output : graph_.nodes[n].outputs) {
        if (output == kNoValue || !IsRead(output, false)) continue;
        std::optional<Tokens> tokens = Leaving(output);
        if (!tokens) {
          LeaveOutBackTo(n);
          break;
        }
        leaving.emplace_back(output, *std::move(tokens));
      }
    }
    return leaving;
  }

  // The value as an output of the section, where it can be one.
  std::optional<Tokens> Leaving(int output) {
    walk_.context().out().SetName(NameOf(output));
    StatusOr<Tokens> tokens = AsOutput(walk_.context(), walk_.context().FormOf(output), NameOf(output), true);
    return tokens.ok() && source_.IsReal(output) ? std::optional(*std::move(tokens)) : std::nullopt;
  }

  // Within the section. What makes shapes is in it as others read them (TakeShapes).
  bool MakesTokens(int node) const {
    return IsIn(node) && walk_.ReadingOf(static_cast<size_t>(node)) == SectionWalk::Reading::kTokens;
  }

  // The node, and, before it, all that then had to leave what cannot be an output: a chain of such at once, since each
  // look at the whole section takes as long as the graph is large.
  void LeaveOutBackTo(size_t node) {
    std::vector<size_t> open = {node};
    while (!open.empty()) {
      const size_t n = open.back();
      open.pop_back();
      if (!is_in_[n]) continue;
      LeaveOut(n);
      for (const int input : graph_.nodes[n].inputs) {
        const int maker = input == kNoValue ? SectionSource::kOutside : source_.MakerOf(input);
        if (MakesTokens(maker) && !Leaving(input)) open.push_back(static_cast<size_t>(maker));
      }
    }
  }

  // The node, and what reads its results.
  void LeaveOut(size_t node) {
    left_ = true;
    std::vector<size_t> open = {node};
    while (!open.empty()) {
      const size_t n = open.back();
      open.pop_back();
      if (!is_in_[n]) continue;
      is_in_[n] = false;
      for (const int output : graph_.nodes[n].outputs) {
        if (output == kNoValue) continue;
        for (const int reader : source_.ReadersOf(output)) {
          if (IsIn(reader)) open.push_back(static_cast<size_t>(reader));
        }
      }
    }
  }

  // Inputs of the canonical graph that its outputs need, and the values that they stand for.
  void TakeInputs(SequenceSection& section) const {
    Graph& graph = walk_.context().out().graph();
    std::vector<bool> needed(graph.values.size());
    for (const GraphOutput& output : graph.outputs) needed[static_cast<size_t>(output.value)] = true;
    for (size_t n = graph.nodes.size(); n-- > 0;) {
      const Node& node = graph.nodes[n];
      const auto is_needed = [&](int value) { return value != kNoValue && needed[static_cast<size_t>(value)]; };
      if (std::ranges::none_of(node.outputs, is_needed)) continue;
      for (const int input : node.inputs) {
        if (input != kNoValue) needed[static_cast<size_t>(input)] = true;
      }
    }
    std::erase_if(graph.inputs, [&](int input) { return !needed[static_cast<size_t>(input)]; });
    const std::map<int, int> stands_for = walk_.BeginsOf(level_);
    for (const int input : graph.inputs) section.inputs.push_back(stands_for.at(input));
  }

  const Graph& graph_;
  const SectionSource& source_;
  SectionWalk& walk_;
  const int level_;
  std::vector<bool> is_in_;  // by node: whether it is of the section
  std::vector<bool> is_idle_;
  bool left_ = false;  // whether a node was left out
};

}  // namespace
}  // namespace swizzle::sequences

namespace swizzle {

StatusOr<SequenceSection> RecogniseSection(Graph& graph, const SectionSource& source) {
  sequences::SectionWalk walk(graph, source);
  SWIZZLE_RETURN_IF_ERROR(walk.Run());
  if (walk.attention().empty()) return Unimplemented("nothing of it is attention of tokens");
  const auto most = std::ranges::max_element(walk.attention(), {}, [](const auto& of) { return of.second.size(); });
  return sequences::SectionCut(graph, source, walk, most->first).Run();
}

}  // namespace swizzle
