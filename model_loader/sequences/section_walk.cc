#include "model_loader/sequences/section_walk.h"

#include <algorithm>
#include <utility>

#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/interpret.h"
#include "model_loader/sequences/outputs.h"

namespace swizzle::sequences {

SectionWalk::SectionWalk(Graph& graph, const SectionSource& source)
    : graph_(graph),
      source_(source),
      context_(graph),
      reads_(graph.values.size()),
      levels_(graph.values.size(), kNoLevel),
      readings_(graph.nodes.size(), Reading::kUnknown),
      node_levels_(graph.nodes.size(), kNoLevel) {}

Status SectionWalk::Run() {
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

int SectionWalk::BeginOf(int value, int level) const {
  const auto found = begins_.find({value, level});
  return found == begins_.end() ? kNoValue : found->second;
}

std::map<int, int> SectionWalk::BeginsOf(int level) const {
  std::map<int, int> begins;
  for (const auto& [at, input] : begins_) {
    if (at.second == level) begins[input] = at.first;
  }
  return begins;
}

void SectionWalk::Begin(int value) {
  const int64_t channels = source_.ChannelsOf(value);
  const auto [begin, is_new] = begins_.try_emplace({value, LevelOf(value)}, kNoValue);
  if (is_new) begin->second = context_.out().AddTokens(Concat(graph_.values[value].name, "#", value), channels);
  Tokens tokens;
  tokens.value = begin->second;
  tokens.view = ViewOfActivation(context_, source_.PlacesOf(value), channels);
  context_.SetForm(value, std::move(tokens));
}

Status SectionWalk::Read(size_t index) {
  const Node& node = graph_.nodes[index];
  const auto is_known = [&](int value) { return value == kNoValue || source_.IsKnown(value); };
  if (std::ranges::all_of(node.outputs, is_known)) {
    readings_[index] = Reading::kConstant;
    FreeConstants(node);
    return {};
  }
  TakeConstants(node);
  const int level = LevelOfInputs(node);
  std::vector<Lent> lent = LendToLevel(node, level), sizes = LendSizes(node);
  context_.Enter(node);
  const size_t made = context_.out().graph().nodes.size();
  StatusOr<Form> form = Interpreted(index, level);
  FreeConstants(node);
  TakeBack(std::move(sizes));
  TakeBack(std::move(lent));
  if (!form.ok()) {
    if (source_.IsVital(index)) return form.status();
    Leave(node, level, form.status());
    return {};
  }
  // What reads nothing that a section begins with goes by sizes, too, whatever it is.
  const bool of_shapes = std::holds_alternative<Known>(*form) || level == kNoLevel;
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

StatusOr<Form> SectionWalk::Interpreted(size_t index, int level) {
  if (!source_.MayHold(index) || !HasOneLevel(context_.node(), level)) {
    return context_.Refuse("it is not of one section");
  }
  SWIZZLE_ASSIGN_OR_RETURN(Form form, Interpret(context_));
  if (const auto* unknown = std::get_if<Unknown>(&form)) return unknown->why;
  return form;
}

int SectionWalk::LevelOfInputs(const Node& node) {
  int level = kNoLevel;
  for (const int input : node.inputs) {
    if (input != kNoValue) level = std::max(level, LevelOf(input));
  }
  return level;
}

std::vector<SectionWalk::Lent> SectionWalk::LendToLevel(const Node& node, int level) {
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

std::vector<SectionWalk::Lent> SectionWalk::LendSizes(const Node& node) {
  if (node.op != "Shape" || !node.domain.empty()) return {};
  const int input = node.Input(0);
  if (input == kNoValue) return {};
  const auto sizes = source_.SizesOf(input);
  if (!sizes || !std::holds_alternative<Unknown>(context_.FormOf(input))) return {};
  std::vector<Lent> lent = {{input, LevelOf(input), context_.FormOf(input)}};
  context_.SetForm(input, Known{DType::kFloat32, *sizes, {Number()}});
  return lent;
}

void SectionWalk::TakeBack(std::vector<Lent> lent) {
  for (Lent& value : lent) {
    LevelOf(value.value) = value.level;
    context_.SetForm(value.value, std::move(value.form));
  }
}

bool SectionWalk::HasOneLevel(const Node& node, int level) {
  return std::ranges::all_of(node.inputs, [&](int input) {
    return input == kNoValue || LevelOf(input) == kNoLevel || LevelOf(input) == level;
  });
}

void SectionWalk::Leave(const Node& node, int level, const Status& why) {
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

void SectionWalk::NoteAttention(size_t index, int level, size_t made) {
  const std::vector<Node>& nodes = context_.out().graph().nodes;
  for (size_t n = made; n < nodes.size(); ++n) {
    if (nodes[n].op.ends_with("Attention")) attention_[level].insert(index);
  }
}

void SectionWalk::TakeConstants(const Node& node) {
  for (const int input : node.inputs) {
    if (input == kNoValue || graph_.IsConstant(input) || !source_.IsKnown(input)) continue;
    Value& value = graph_.values[input];
    value.constant = source_.Elements(input);
    value.dtype = value.constant->dtype;
    value.shape = value.constant->shape;
    held_ += value.constant->elements();
  }
}

void SectionWalk::FreeConstants(const Node& node) {
  for (const int input : node.inputs) {
    if (input == kNoValue || static_cast<size_t>(input) >= reads_.size()) continue;
    if (--reads_[static_cast<size_t>(input)] == 0 && graph_.IsConstant(input)) {
      graph_.values[input].constant->bytes = std::vector<std::byte>();
    }
  }
}

}  // namespace swizzle::sequences
