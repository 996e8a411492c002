#include "model_loader/graph/rewriter.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace swizzle {

Rewriter::Rewriter(Graph& graph) : graph_(graph), erased_(graph.nodes.size(), false), places_(graph.nodes.size()) {
  std::iota(places_.begin(), places_.end(), 0);
  GrowTables();
  for (int i = 0; i < node_count(); ++i) {
    for (int output : node(i).outputs) {
      if (output != kNoValue) producer_[output] = i;
    }
    for (int input : node(i).inputs) {
      if (input != kNoValue) readers_[input].push_back(i);
    }
  }
}

void Rewriter::GrowTables() {
  producer_.resize(graph_.values.size(), -1);
  readers_.resize(graph_.values.size());
}

bool Rewriter::IsGraphOutput(int value) const {
  return std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                     [&](const GraphOutput& output) { return output.value == value; });
}

int Rewriter::SoleReader(int value) const {
  if (!InTables(value) || readers_[value].size() != 1 || IsGraphOutput(value)) return -1;
  return readers_[value][0];
}

void Rewriter::RemoveReads(int index) {
  for (int input : node(index).inputs) {
    if (input == kNoValue) continue;
    std::vector<int>& readers = readers_[input];
    readers.erase(std::find(readers.begin(), readers.end(), index));
  }
}

void Rewriter::SetInputs(int index, std::vector<int> inputs) {
  GrowTables();
  RemoveReads(index);
  node(index).inputs = std::move(inputs);
  for (int input : node(index).inputs) {
    if (input != kNoValue) readers_[input].push_back(index);
  }
}

void Rewriter::ReplaceReads(int from, int to) {
  if (from == to) return;
  GrowTables();
  for (int reader : readers_[from]) {
    std::replace(node(reader).inputs.begin(), node(reader).inputs.end(), from, to);
    readers_[to].push_back(reader);
  }
  readers_[from].clear();
  for (GraphOutput& output : graph_.outputs) {
    if (output.value == from) output.value = to;
  }
}

int Rewriter::InsertBefore(int index, Node inserted) {
  GrowTables();
  const int own = node_count();
  graph_.nodes.push_back(std::move(inserted));
  erased_.push_back(false);
  places_.push_back(index);
  for (const int output : node(own).outputs) producer_[output] = own;
  for (const int input : node(own).inputs) {
    if (input != kNoValue) readers_[input].push_back(own);
  }
  return own;
}

void Rewriter::TakeOutput(int index, int other) {
  const int output = node(other).outputs[0];
  const int previous = node(index).outputs[0];
  node(other).outputs.clear();
  Erase(other);
  node(index).outputs[0] = output;
  producer_[output] = index;
  producer_[previous] = -1;
}

void Rewriter::Erase(int index) {
  for (int output : node(index).outputs) {
    if (output == kNoValue) continue;
    SWIZZLE_CHECK(readers_[output].empty() && !IsGraphOutput(output));
    producer_[output] = -1;
  }
  RemoveReads(index);
  node(index).inputs.clear();
  node(index).outputs.clear();
  erased_[index] = true;
}

// The nodes in the order in which they come to stand: those that were inserted before the one whose place it is.
std::vector<int> Rewriter::Order() const {
  std::vector<int> order(places_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [this](int i) { return std::pair(places_[i], places_[i] == i); });
  return order;
}

void Rewriter::EraseDeadNodes() {
  const std::vector<int> order = Order();
  for (auto last = order.rbegin(); last != order.rend(); ++last) {
    const int i = *last;
    const bool read = std::any_of(node(i).outputs.begin(), node(i).outputs.end(), [&](int output) {
      return output != kNoValue && (!readers_[output].empty() || IsGraphOutput(output));
    });
    if (!read && !erased_[i]) Erase(i);
  }
  std::vector<Node> kept;
  for (const int i : order) {
    if (!erased_[i]) kept.push_back(std::move(graph_.nodes[i]));
  }
  graph_.nodes = std::move(kept);
}

void Rewriter::DropUnusedValues() {
  std::vector<int> renumbered(graph_.values.size(), kNoValue);
  const auto keep = [&](int value) {
    if (value != kNoValue) renumbered[value] = 0;
  };
  for (int input : graph_.inputs) keep(input);
  for (const GraphOutput& output : graph_.outputs) keep(output.value);
  for (const Node& each : graph_.nodes) {
    std::for_each(each.inputs.begin(), each.inputs.end(), keep);
    std::for_each(each.outputs.begin(), each.outputs.end(), keep);
  }
  int kept = 0;
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    if (renumbered[i] == kNoValue) continue;
    if (kept != static_cast<int>(i)) graph_.values[kept] = std::move(graph_.values[i]);
    renumbered[i] = kept++;
  }
  graph_.values.resize(kept);
  const auto renumber = [&](int& value) {
    if (value != kNoValue) value = renumbered[value];
  };
  for (int& input : graph_.inputs) renumber(input);
  for (GraphOutput& output : graph_.outputs) renumber(output.value);
  for (Node& each : graph_.nodes) {
    std::for_each(each.inputs.begin(), each.inputs.end(), renumber);
    std::for_each(each.outputs.begin(), each.outputs.end(), renumber);
  }
}

void Rewriter::Finish() {
  GrowTables();
  EraseDeadNodes();
  DropUnusedValues();
}

}  // namespace swizzle
