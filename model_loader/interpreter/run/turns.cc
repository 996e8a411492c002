// The order in which a program's nodes and parts run, and what lives how long.
#include <algorithm>
#include <iterator>
#include <set>

#include "model_loader/graph/value_zeros.h"
#include "model_loader/interpreter/run/executor.h"

namespace swizzle::interpreter {
namespace {

// Turns in an order in which each finds its inputs made, as near to the graph's as can be; fewer where there is none.
template <typename Turn>
std::vector<Turn> Ordered(const Graph& graph, std::vector<Turn> turns) {
  std::map<int, size_t> maker;  // value -> turn
  for (size_t t = 0; t < turns.size(); ++t) {
    for (const int node : turns[t].nodes) {
      for (const int output : graph.nodes[static_cast<size_t>(node)].outputs) maker[output] = t;
    }
  }
  std::vector<std::set<size_t>> followers(turns.size());
  std::vector<size_t> awaited(turns.size());
  for (size_t t = 0; t < turns.size(); ++t) {
    for (const int node : turns[t].nodes) {
      for (const int input : graph.nodes[static_cast<size_t>(node)].inputs) {
        const auto found = input == kNoValue ? maker.end() : maker.find(input);
        if (found == maker.end() || found->second == t || !followers[found->second].insert(t).second) continue;
        ++awaited[t];
      }
    }
  }
  std::set<std::pair<int, size_t>> ready;  // by first node
  const auto make_ready = [&](size_t t) { ready.emplace(turns[t].nodes.front(), t); };
  for (size_t t = 0; t < turns.size(); ++t) {
    if (awaited[t] == 0) make_ready(t);
  }
  std::vector<Turn> ordered;
  while (!ready.empty()) {
    const size_t t = ready.begin()->second;
    ready.erase(ready.begin());
    for (const size_t follower : followers[t]) {
      if (--awaited[follower] == 0) make_ready(follower);
    }
    ordered.push_back(std::move(turns[t]));
  }
  return ordered;
}

// By node: all, but for those whose results are known, and those that only such read. Nodes of parts run with them.
std::vector<bool> RunningNodes(const Graph& graph, const std::map<int, Array>& known,
                               const std::vector<bool>& in_part) {
  std::vector<bool> runs(graph.nodes.size(), true);
  if (known.empty()) return runs;
  std::set<int> read, left;  // by nodes that run, and by those that don't
  for (const GraphOutput& output : graph.outputs) read.insert(output.value);
  const auto is_known = [&](int value) { return value == kNoValue || known.contains(value); };
  const auto is_wanted = [&](int value) { return read.contains(value) && !is_known(value); };
  const auto is_left = [&](int value) { return left.contains(value) && !is_known(value); };
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    const bool is_needless =
        std::ranges::any_of(node.outputs, is_left) && !std::ranges::any_of(node.outputs, is_wanted);
    runs[n] = in_part[n] || (!std::ranges::all_of(node.outputs, is_known) && !is_needless);
    (runs[n] ? read : left).insert(node.inputs.begin(), node.inputs.end());
  }
  return runs;
}

}  // namespace

bool Program::MakeTurns(const std::map<int, Array>& known) {
  std::vector<bool> in_part(graph_.nodes.size());
  std::vector<Turn> turns;
  for (const PartOfProgram& part : parts_) {
    for (const int node : part.nodes) in_part[static_cast<size_t>(node)] = true;
    turns.push_back({part.nodes, &part});
  }
  const std::vector<bool> runs = RunningNodes(graph_, known, in_part);
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!in_part[n] && runs[n]) turns.push_back({{static_cast<int>(n)}, nullptr});
  }
  const size_t count = turns.size();
  turns_ = Ordered(graph_, std::move(turns));
  return turns_.size() == count;
}

void Program::FindLastReaders() {
  constexpr size_t kNever = ~size_t{0};
  std::vector<size_t> last(graph_.values.size(), kNever);
  const auto is_used = [&](const std::vector<int>& values, size_t turn) {
    for (const int value : values) {
      if (value != kNoValue) last[static_cast<size_t>(value)] = turn;
    }
  };
  for (size_t t = 0; t < turns_.size(); ++t) {
    for (const int n : turns_[t].nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      is_used(node.inputs, t);
      is_used(node.outputs, t);  // what is made lives until it is read
    }
    if (turns_[t].part != nullptr) is_used(turns_[t].part->inputs, t);
  }
  for (const GraphOutput& output : graph_.outputs) last[static_cast<size_t>(output.value)] = kNever;
  released_.assign(turns_.size(), {});
  for (size_t value = 0; value < last.size(); ++value) {
    if (last[value] != kNever) released_[last[value]].push_back(static_cast<int>(value));
  }
}

void Program::FindSteady(const std::vector<int>& nodes) {
  const std::set<int> steady(nodes.begin(), nodes.end());
  std::set<int> read;  // by other turns, or outside
  for (const GraphOutput& output : graph_.outputs) read.insert(output.value);
  for (Turn& turn : turns_) {
    turn.is_steady = turn.part == nullptr && steady.contains(turn.nodes.front());
    if (turn.is_steady) continue;
    for (const int node : turn.nodes) {
      const std::vector<int>& inputs = graph_.nodes[static_cast<size_t>(node)].inputs;
      read.insert(inputs.begin(), inputs.end());
    }
    if (turn.part != nullptr) read.insert(turn.part->inputs.begin(), turn.part->inputs.end());
  }
  kept_.assign(turns_.size(), {});
  for (size_t t = 0; t < turns_.size(); ++t) {
    if (!turns_[t].is_steady) continue;
    if (steady_ == nullptr) steady_ = std::make_shared<SteadyValues>();
    std::ranges::copy_if(graph_.nodes[static_cast<size_t>(turns_[t].nodes.front())].outputs,
                         std::back_inserter(kept_[t]),
                         [&](int value) { return value != kNoValue && read.contains(value); });
  }
}

std::shared_ptr<const Program> Program::Divided(Division division) const {
  std::shared_ptr<Program> divided(new Program(*this));
  divided->parts_ = std::move(division.parts);
  if (!divided->MakeTurns(division.known)) return nullptr;
  divided->FindSteady(division.steady);
  divided->FindLastReaders();
  std::set<int> needed;
  for (const GraphOutput& output : graph_.outputs) needed.insert(output.value);
  for (const Turn& turn : divided->turns_) {
    // What a part reads may be known of sizes that the model fixes.
    if (turn.part != nullptr) needed.insert(turn.part->inputs.begin(), turn.part->inputs.end());
    if (turn.part != nullptr && turn.part->takes_all) continue;
    for (const int node : turn.nodes) {
      const std::vector<int>& inputs = graph_.nodes[static_cast<size_t>(node)].inputs;
      needed.insert(inputs.begin(), inputs.end());
    }
  }
  std::map<int, Array> constants = std::move(division.known);
  constants.insert(constants_.begin(), constants_.end());
  std::erase_if(constants, [&](const auto& constant) { return !needed.contains(constant.first); });
  divided->constants_.assign(constants.begin(), constants.end());
  return divided;
}

std::shared_ptr<const Program> Program::WithOutputs(std::vector<Port> outputs) const {
  SWIZZLE_CHECK(parts_.empty() && outputs.size() == outputs_.size());  // turns point to the parts of their own program
  std::shared_ptr<Program> declared(new Program(*this));
  declared->outputs_ = std::move(outputs);
  return declared;
}

std::shared_ptr<const Program> Program::WithInputs(std::vector<Port> inputs) const {
  SWIZZLE_CHECK(parts_.empty() && inputs.size() == inputs_.size());
  std::shared_ptr<Program> declared(new Program(*this));
  declared->inputs_ = std::move(inputs);
  return declared;
}

std::shared_ptr<const Program> Program::WithZeros(const std::map<std::string, InputZeros>& zeros) const {
  SWIZZLE_CHECK(parts_.empty());
  std::shared_ptr<Program> informed(new Program(*this));
  NoteZeros(zeros, informed->graph_);
  return informed;
}

size_t Program::interpreted_nodes() const {
  return static_cast<size_t>(
      std::ranges::count_if(turns_, [](const Turn& turn) { return turn.part == nullptr && !turn.is_steady; }));
}

}  // namespace swizzle::interpreter
