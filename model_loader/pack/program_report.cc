#include "model_loader/pack/program_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <vector>

#include "model_loader/pack/text_table.h"
#include "model_loader/regions/schedule.h"

namespace swizzle::pack {

namespace {

double Microseconds(absl::Duration time) { return absl::ToDoubleMicroseconds(time); }

std::string MillisecondsText(absl::Duration time) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << absl::ToDoubleMilliseconds(time) << " ms";
  return text.str();
}

nlohmann::ordered_json RegionsArray(const ProgramReport& report) {
  const regions::RegionalProgram& regional = report.regional;
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (size_t i = 0; i < regional.regions.size(); ++i) {
    const auto& region = regional.regions[i];
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    const std::shared_ptr<const Plan> plan = region->plan();
    for (const LayerReport& layer : plan->report().layers) {
      layers.push_back({{"name", layer.name},
                        {"op", layer.op},
                        {"sparsity", layer.sparsity()},
                        {"format", FormatName(layer.format)},
                        {"kernels", layer.kernels}});
    }
    array.push_back({{"layers", std::move(layers)}});
    if (report.times) array.back()["microseconds"] = Microseconds(report.times->regions[i]);
  }
  return array;
}

nlohmann::ordered_json InterpretedArray(const Graph& graph, const regions::RegionTimes& times) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const auto& [index, time] : times.interpreted) {
    const Node& node = graph.nodes[static_cast<size_t>(index)];
    array.push_back({{"name", node.name}, {"op", node.op}, {"microseconds", Microseconds(time)}});
  }
  return array;
}

// What regions and what lies between them took, and the operators of the latter, the longest first.
std::string TimesText(const Graph& graph, const regions::RegionTimes& times) {
  std::map<std::string, std::pair<int, absl::Duration>> operators;
  for (const auto& [index, time] : times.interpreted) {
    auto& [count, sum] = operators[graph.nodes[static_cast<size_t>(index)].op];
    ++count;
    sum += time;
  }
  std::vector<std::pair<std::string, std::pair<int, absl::Duration>>> longest(operators.begin(), operators.end());
  std::ranges::stable_sort(longest, std::greater<>(), [](const auto& row) { return row.second.second; });
  std::string shapes;
  for (const Shape& shape : times.inputs) shapes += Concat(shapes.empty() ? "" : " ", ShapeText(shape));
  const absl::Duration interpreted = times.Interpreted(), all = times.All();
  const double share = all > absl::ZeroDuration() ? absl::FDivDuration(interpreted, all) : 0.0;
  const absl::Duration regions = all - interpreted - times.attention - times.recurrent;
  const bool recurs = times.recurrent > absl::ZeroDuration();
  std::string text =
      Concat("\na run of ", shapes, " takes ", MillisecondsText(all), ": regions ", MillisecondsText(regions),
             ", attention between them ", MillisecondsText(times.attention),
             recurs ? Concat(", recurrent nodes ", MillisecondsText(times.recurrent)) : "", ", interpreted nodes ",
             MillisecondsText(interpreted), " (", std::lround(100 * share), " %)");
  for (const auto& [op, row] : longest)
    text += Concat("\n  ", op, " x ", row.first, ": ", MillisecondsText(row.second));
  return text;
}

std::string_view KindName(regions::StepKind kind) {
  switch (kind) {
    case regions::StepKind::kNode:
      return "node";
    case regions::StepKind::kRegion:
      return "region";
    case regions::StepKind::kAttention:
      return "attention";
    case regions::StepKind::kRecurrence:
      return "recurrence";
  }
  return "";
}

std::string PlaceOf(const regions::RegionalProgram& regional, const regions::ScheduledStep& step) {
  return step.on_device ? std::string(regional.on_device->device().name()) : "cpu";
}

// The end of a name, which tells nodes of one module from another.
std::string EndOf(const std::string& name) {
  constexpr size_t kMost = 48;
  return name.size() <= kMost ? name : Concat("...", name.substr(name.size() - kMost + 3));
}

// What a step reads: inputs of the graph by name, all else by the step that makes it.
std::string SourcesOf(const Graph& graph, const std::vector<int>& values, const std::map<int, size_t>& makers) {
  constexpr size_t kMost = 6;
  std::string text;
  for (size_t i = 0; i < values.size() && i < kMost; ++i) {
    const auto maker = makers.find(values[i]);
    text += i == 0 ? "" : " ";
    text +=
        maker == makers.end() ? EndOf(graph.values[static_cast<size_t>(values[i])].name) : Concat("#", maker->second);
  }
  return values.size() > kMost ? Concat(text, " and ", values.size() - kMost, " more") : text;
}

nlohmann::ordered_json ScheduleArray(const regions::RegionalProgram& regional) {
  const Graph& graph = regional.program->graph();
  const auto names = [&](const std::vector<int>& values) {
    std::vector<std::string> all;
    for (const int value : values) all.push_back(graph.values[static_cast<size_t>(value)].name);
    return all;
  };
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const regions::ScheduledStep& step : regions::ScheduleOf(regional)) {
    array.push_back({{"kind", KindName(step.kind)},
                     {"nodes", step.nodes},
                     {"place", PlaceOf(regional, step)},
                     {"inputs", names(step.inputs)},
                     {"outputs", names(step.outputs)},
                     {"once_for_shapes", step.is_steady}});
    if (step.kind == regions::StepKind::kRegion) array.back()["region"] = step.region + 1;
  }
  return array;
}

std::string BatchingText(const interpreter::Program& program) {
  if (program.batch_obstacle()) return Concat("requests run one by one: ", *program.batch_obstacle(), "\n");
  return "requests of the same shapes share a batch\n";
}

std::string ZerosLine(const regions::RegionalProgram& regional) {
  const std::string zeros = regional.ZerosText();
  return zeros.empty() ? "" : zeros + "\n";
}

}  // namespace

std::string ProgramText(const ProgramReport& report) {
  const regions::RegionalProgram& regional = report.regional;
  const interpreter::Program& program = *regional.program;
  const std::string why =
      Concat("\nthe optimised plan does not take the model whole: ", report.reason, "\n", BatchingText(program));
  if (!regional.regions.empty()) {
    return Concat(regional.Text(), ", which the interpreter runs one by one: ", regional.OperatorCounts(),
                  regional.PlaceText(), report.times ? TimesText(program.graph(), *report.times) : "", why,
                  ZerosLine(regional));
  }
  return Concat("all ", program.graph().nodes.size(),
                " nodes run on the interpreter, one by one and dense: ", program.OperatorCounts(), why,
                "no region of it is planned, so that zeros in its weights bring nothing: ", regional.unplanned, "\n");
}

std::string ScheduleText(const regions::RegionalProgram& regional) {
  const Graph& graph = regional.program->graph();
  TextTable table({{"step", Align::kRight}, {"what"}, {"place"}, {"reads"}, {"last node"}});
  std::map<int, size_t> makers;  // by value: the step
  size_t count = 0, steady = 0;
  for (const regions::ScheduledStep& step : regions::ScheduleOf(regional)) {
    const Node& last = graph.nodes[static_cast<size_t>(step.nodes.back())];
    std::string what = step.kind == regions::StepKind::kNode ? last.op : std::string(KindName(step.kind));
    if (step.kind == regions::StepKind::kRegion) what += Concat(" ", step.region + 1);
    if (step.nodes.size() > 1) what += Concat(", ", step.nodes.size(), " nodes");
    if (step.is_steady) what += " *";
    steady += step.is_steady ? 1 : 0;
    table.AddRow({std::to_string(++count), std::move(what), PlaceOf(regional, step),
                  SourcesOf(graph, step.inputs, makers), EndOf(last.name)});
    for (const int value : step.outputs) makers[value] = count;
  }
  std::string outputs;
  for (const GraphOutput& output : graph.outputs) {
    const auto maker = makers.find(output.value);
    outputs +=
        Concat(outputs.empty() ? "" : ", ", output.name, maker == makers.end() ? "" : Concat(" of #", maker->second));
  }
  return Concat("\n", table.Render(), "outputs: ", outputs, "\n",
                steady > 0 ? "* once for all requests of the same shapes\n" : "");
}

void AddProgram(const ProgramReport& report, nlohmann::ordered_json& object) {
  const regions::RegionalProgram& regional = report.regional;
  const interpreter::Program& program = *regional.program;
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const Node& node : program.graph().nodes) nodes.push_back({{"name", node.name}, {"op", node.op}});
  object.update({{"opset", program.graph().opset},
                 {"fallback", true},
                 {"fallback_reason", report.reason},
                 {"weight_bytes", report.constant_bytes},
                 {"fallback_nodes", std::move(nodes)},
                 {"regions", RegionsArray(report)},
                 {"schedule", ScheduleArray(regional)},
                 {"refusals", regional.refusals},
                 {"planned_layers", regional.layers()},
                 {"zeros", regional.ZerosText()},
                 {"interpreted_nodes", regional.interpreted_nodes()},
                 {"device_nodes", regional.device_nodes()},
                 {"not_on_device", regional.not_on_device},
                 {"batch_obstacle", nullptr}});
  if (program.batch_obstacle()) object["batch_obstacle"] = *program.batch_obstacle();
  object["device"] = regional.on_device == nullptr ? "cpu" : std::string(regional.on_device->device().name());
  if (!report.times) return;
  object["timed_inputs"] = report.times->inputs;
  object["attention_microseconds"] = Microseconds(report.times->attention);
  object["recurrent_microseconds"] = Microseconds(report.times->recurrent);
  object["interpreted"] = InterpretedArray(program.graph(), *report.times);
}

}  // namespace swizzle::pack
