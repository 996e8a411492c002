#include "model_loader/sequences/section.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "model_loader/sequences/context.h"
#include "model_loader/sequences/interpret.h"
#include "model_loader/sequences/outputs.h"

namespace swizzle::sequences {
namespace {

// Reads all nodes, whether they are understood or not. Used once.
class SectionWalk {
 public:
  // What is made of a node.
  enum class Reading : uint8_t {
    kUnknown,   // it is not understood
    kConstant,  // its results are the same in every run
    kShapes,    // its results go by the batch and the length alone
    kTokens
  };

  SectionWalk(Graph& graph, const SectionSource& source)
      : graph_(graph),
        source_(source),
        context_(graph),
        reads_(graph.values.size()),
        levels_(graph.values.size(), kNoLevel),
        readings_(graph.nodes.size(), Reading::kUnknown),
        node_levels_(graph.nodes.size(), kNoLevel) {}

  Status Run() {
    for (const Node& node : graph_.nodes) {
      for (const int input : node.inputs) {
        if (input != kNoValue) ++reads_[static_cast<size_t>(input)];
      }
    }
    for (const int input : graph_.inputs) {
      LevelOf(input) = 0;
      if (source_.ChannelsOf(input) > 0) Begin(input);
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) SWIZZLE_RETURN_IF_ERROR(Read(n));
    return {};
  }

  Context& context() { return context_; }
  Reading ReadingOf(size_t node) const { return readings_[node]; }
  int NodeLevel(size_t node) const { return node_levels_[node]; }
  // The input of the canonical graph that stands for a value where sections of this level begin with it, or kNoValue.
  int BeginOf(int value, int level) const {
    const auto found = begins_.find({value, level});
    return found == begins_.end() ? kNoValue : found->second;
  }
  // What sections of this level may begin with, by the inputs of the canonical graph that stand for it.
  std::map<int, int> BeginsOf(int level) const {
    std::map<int, int> begins;
    for (const auto& [at, input] : begins_) {
      if (at.second == level) begins[input] = at.first;
    }
    return begins;
  }
  // The nodes of each level that make attention.
  const std::map<int, std::set<size_t>>& attention() const { return attention_; }

 private:
  static constexpr int kNoLevel = -1;

  int& LevelOf(int value) { return levels_[static_cast<size_t>(value)]; }

  // From now on the value is read as what a section begins with.
  void Begin(int value) {
    const int64_t channels = source_.ChannelsOf(value);
    const auto [begin, is_new] = begins_.try_emplace({value, LevelOf(value)}, kNoValue);
    if (is_new) begin->second = context_.out().AddTokens(Concat(graph_.values[value].name, "#", value), channels);
    Tokens tokens;
    tokens.value = begin->second;
    tokens.view.dims = {context_.BatchAxis(), context_.LengthAxis(), ChannelAxis(channels)};
    context_.SetForm(value, std::move(tokens));
  }

  Status Read(size_t index) {
    const Node& node = graph_.nodes[index];
    const auto is_known = [&](int value) { return value == kNoValue || source_.IsKnown(value); };
    if (std::ranges::all_of(node.outputs, is_known)) {
      readings_[index] = Reading::kConstant;
      FreeConstants(node);
      return {};
    }
    TakeConstants(node);
    const int level = LevelOfInputs(node);
    std::vector<Lent> lent = LendToLevel(node, level);
    context_.Enter(node);
    const size_t made = context_.out().graph().nodes.size();
    StatusOr<Form> form = Interpreted(index, level);
    FreeConstants(node);
    TakeBack(std::move(lent));
    if (!form.ok()) {
      if (source_.IsVital(index)) return form.status();
      Leave(node, level, form.status());
      return {};
    }
    const bool of_shapes = std::holds_alternative<Known>(*form);
    readings_[index] = of_shapes ? Reading::kShapes : Reading::kTokens;
    context_.SetOther(0, *std::move(form));
    if (of_shapes) return {};
    node_levels_[index] = level;
    for (const int output : node.outputs) {
      if (output != kNoValue) LevelOf(output) = level;
    }
    NoteAttention(index, level, made);
    return CheckSpent(context_, held_);
  }

  StatusOr<Form> Interpreted(size_t index, int level) {
    if (!source_.MayHold(index) || !HasOneLevel(context_.node(), level)) {
      return context_.Refuse("it is not of one section");
    }
    SWIZZLE_ASSIGN_OR_RETURN(Form form, Interpret(context_));
    if (const auto* unknown = std::get_if<Unknown>(&form)) return unknown->why;
    return form;
  }

  // The level of the node: the highest of what it reads.
  int LevelOfInputs(const Node& node) {
    int level = kNoLevel;
    for (const int input : node.inputs) {
      if (input != kNoValue) level = std::max(level, LevelOf(input));
    }
    return level;
  }

  // A value as its other readers know it.
  struct Lent {
    int value;
    int level;
    Form form;
  };

  // Has the node read values of lower levels as what a section of its level begins with, where it may.
  std::vector<Lent> LendToLevel(const Node& node, int level) {
    std::vector<Lent> lent;
    for (const int input : node.inputs) {
      if (input == kNoValue || LevelOf(input) == kNoLevel || LevelOf(input) == level) continue;
      if (source_.ChannelsOf(input) == 0) continue;
      lent.push_back({input, LevelOf(input), context_.FormOf(input)});
      LevelOf(input) = level;
      Begin(input);
    }
    return lent;
  }

  void TakeBack(std::vector<Lent> lent) {
    for (Lent& value : lent) {
      LevelOf(value.value) = value.level;
      context_.SetForm(value.value, std::move(value.form));
    }
  }

  bool HasOneLevel(const Node& node, int level) {
    return std::ranges::all_of(node.inputs, [&](int input) {
      return input == kNoValue || LevelOf(input) == kNoLevel || LevelOf(input) == level;
    });
  }

  // The node is outside of all sections: the next may begin with what it makes.
  void Leave(const Node& node, int level, const Status& why) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const int output = node.outputs[i];
      if (output == kNoValue) continue;
      context_.SetOther(i, Unknown{why});
      LevelOf(output) = std::max(level, 0);
      if (source_.IsKnown(output) || source_.ChannelsOf(output) == 0) continue;
      ++LevelOf(output);
      Begin(output);
    }
  }

  void NoteAttention(size_t index, int level, size_t made) {
    const std::vector<Node>& nodes = context_.out().graph().nodes;
    for (size_t n = made; n < nodes.size(); ++n) {
      if (nodes[n].op.ends_with("Attention")) attention_[level].insert(index);
    }
  }

  void TakeConstants(const Node& node) {
    for (const int input : node.inputs) {
      if (input == kNoValue || graph_.IsConstant(input) || !source_.IsKnown(input)) continue;
      Value& value = graph_.values[input];
      value.constant = source_.Elements(input);
      value.dtype = value.constant->dtype;
      value.shape = value.constant->shape;
      held_ += value.constant->elements();
    }
  }

  // Elements go once no node reads them any more, so that none is held twice for long.
  void FreeConstants(const Node& node) {
    for (const int input : node.inputs) {
      if (input == kNoValue || static_cast<size_t>(input) >= reads_.size()) continue;
      if (--reads_[static_cast<size_t>(input)] == 0 && graph_.IsConstant(input)) {
        graph_.values[input].constant->bytes = std::vector<std::byte>();
      }
    }
  }

  Graph& graph_;
  const SectionSource& source_;
  Context context_;
  std::vector<int> reads_;   // by value: still to come
  std::vector<int> levels_;  // by value
  std::vector<Reading> readings_;
  std::vector<int> node_levels_;
  std::map<std::pair<int, int>, int> begins_;  // by value and level
  std::map<int, std::set<size_t>> attention_;
  int64_t held_ = 0;  // elements of the constants that were read
};

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
    StatusOr<Tokens> tokens = AsOutput(walk_.context(), walk_.context().FormOf(output), NameOf(output));
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
