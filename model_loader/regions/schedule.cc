#include "model_loader/regions/schedule.h"

#include <algorithm>
#include <memory>
#include <set>

namespace swizzle::regions {
namespace {

void AddOnce(int value, const std::set<int>& left_out, std::vector<int>& values) {
  if (value == kNoValue || left_out.contains(value) || std::ranges::find(values, value) != values.end()) return;
  values.push_back(value);
}

bool RunsOnDevice(const RegionalProgram& regional, const interpreter::Program::Turn& turn) {
  if (regional.on_device == nullptr) return false;
  return turn.part != nullptr || !regional.on_device->placement().on_host.contains(turn.nodes.front());
}

}  // namespace

StepKind KindOf(const RegionalProgram& regional, const interpreter::Part* part, size_t* region) {
  if (part == nullptr) return StepKind::kNode;
  for (size_t i = 0; i < regional.regions.size(); ++i) {
    *region = i;
    if (regional.regions[i].get() == part) return StepKind::kRegion;
  }
  const bool recurs = std::ranges::any_of(regional.recurrences, [&](const auto& each) { return each.get() == part; });
  return recurs ? StepKind::kRecurrence : StepKind::kAttention;
}

std::vector<ScheduledStep> ScheduleOf(const RegionalProgram& regional) {
  const interpreter::Program& program = *regional.program;
  std::set<int> constants;
  for (const auto& [value, elements] : program.constants()) constants.insert(value);
  std::vector<ScheduledStep> steps;
  for (const interpreter::Program::Turn& turn : program.turns()) {
    ScheduledStep& step = steps.emplace_back();
    step.kind = KindOf(regional, turn.part == nullptr ? nullptr : turn.part->part.get(), &step.region);
    step.nodes = turn.nodes;
    step.is_steady = turn.is_steady;
    step.on_device = RunsOnDevice(regional, turn);
    if (turn.part != nullptr) {
      for (const int value : turn.part->inputs) AddOnce(value, constants, step.inputs);
      step.outputs = turn.part->outputs;
      continue;
    }
    const Node& node = program.graph().nodes[static_cast<size_t>(turn.nodes.front())];
    for (const int value : node.inputs) AddOnce(value, constants, step.inputs);
    for (const int value : node.outputs) AddOnce(value, {}, step.outputs);
  }
  return steps;
}

}  // namespace swizzle::regions
