#include <algorithm>
#include <ostream>

#include "kernels/devices.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/comparison.h"
#include "model_loader/pack/model_pair.h"
#include "model_loader/pack/text_table.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

// With labels what counts is how often both are right, else how far their outputs are apart.
bool Passes(const ValidateCommand& command, const Comparison& comparison) {
  constexpr double kRounding = 1e-9;  // of a difference of percentages
  if (comparison.top1) return comparison.top1->lost() <= command.max_drop + kRounding;
  return std::ranges::all_of(comparison.differences,
                             [&](const Difference& d) { return d.relative() <= command.tolerance; });
}

std::string Points(double points) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", points);
  return text;
}

std::string Scientific(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2e", number);
  return text;
}

std::string VerdictText(const ValidateCommand& command, const Comparison& comparison, bool passed) {
  if (comparison.top1) {
    const Top1& top1 = *comparison.top1;
    return Concat("top-1 of ", top1.rows, " labelled inputs: ", Points(top1.points(top1.reference)), " % and ",
                  Points(top1.points(top1.candidate)), " %, ", passed ? "within " : "NOT within ", command.max_drop,
                  command.max_drop == 1.0 ? " point\n" : " points\n");
  }
  const bool drawn = command.inputs.empty();
  return Concat(passed ? "equal" : "NOT equal", " within ", command.tolerance, " on ",
                drawn ? Concat(command.samples, " drawn input", command.samples == 1 ? "" : "s")
                      : Concat("the inputs of ", command.inputs.filename().string()),
                "\n");
}

std::string ComparisonText(const ValidateCommand& command, const Comparison& comparison, bool passed) {
  TextTable table({{"output"},
                   {"largest difference", Align::kRight},
                   {"largest magnitude", Align::kRight},
                   {"relative", Align::kRight}});
  for (const Difference& d : comparison.differences) {
    table.AddRow(
        {d.output, Scientific(d.largest_difference), Scientific(d.largest_magnitude), Scientific(d.relative())});
  }
  return Concat(table.Render(), "\n", VerdictText(command, comparison, passed));
}

// JSON has no infinity: it stands as null.
std::string ComparisonJson(const ValidateCommand& command, const Comparison& comparison, bool passed) {
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  for (const Difference& d : comparison.differences) {
    outputs.push_back({{"name", d.output},
                       {"largest_difference", d.largest_difference},
                       {"largest_magnitude", d.largest_magnitude},
                       {"relative_difference", d.relative()}});
  }
  nlohmann::ordered_json json = {{"passed", passed},
                                 {"samples", comparison.samples},
                                 {"tolerance", command.tolerance},
                                 {"outputs", std::move(outputs)}};
  if (comparison.top1) {
    const Top1& top1 = *comparison.top1;
    json["top1"] = {{"rows", top1.rows},
                    {"reference", top1.points(top1.reference)},
                    {"candidate", top1.points(top1.candidate)},
                    {"max_drop", command.max_drop}};
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

StatusOr<Outcome> Execute(const ValidateCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  SWIZZLE_ASSIGN_OR_RETURN(const Comparison comparison, CompareModels(command, devices));
  const bool passed = Passes(command, comparison);
  terminal.out << (command.json ? ComparisonJson(command, comparison, passed)
                                : ComparisonText(command, comparison, passed));
  return passed ? Outcome::kOk : Outcome::kCheckFailed;
}

}  // namespace swizzle::pack
