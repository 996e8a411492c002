#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <random>

#include "kernels/devices.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/network_runner.h"
#include "model_loader/pack/text_table.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

constexpr uint32_t kSeed = 1;

// How far one output of the two models is apart, over all samples.
struct Difference {
  std::string output;
  double largest_difference = 0.0;
  double largest_magnitude = 0.0;  // of the reference

  double relative() const {
    if (largest_difference == 0.0) return 0.0;
    return largest_magnitude == 0.0 ? std::numeric_limits<double>::infinity() : largest_difference / largest_magnitude;
  }
};

void Compare(std::span<const float> reference, std::span<const float> candidate, Difference& difference) {
  for (size_t i = 0; i < reference.size(); ++i) {
    // Equal infinities differ by nothing; whatever else is not finite differs without bound.
    const double distance = std::abs(double{reference[i]} - double{candidate[i]});
    const bool same = reference[i] == candidate[i] || (std::isnan(reference[i]) && std::isnan(candidate[i]));
    const double bounded = std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity();
    if (!same) difference.largest_difference = std::max(difference.largest_difference, bounded);
    if (std::isfinite(reference[i])) {
      difference.largest_magnitude = std::max(difference.largest_magnitude, std::abs(double{reference[i]}));
    }
  }
}

// Where each of `wanted` stands in `ports`. INVALID_ARGUMENT where one is missing or has other dimensions.
StatusOr<std::vector<size_t>> Match(const std::vector<NetworkPort>& wanted, const std::vector<NetworkPort>& ports) {
  std::vector<size_t> places;
  for (const NetworkPort& port : wanted) {
    const auto same =
        std::find_if(ports.begin(), ports.end(), [&](const NetworkPort& p) { return p.name == port.name; });
    if (same == ports.end()) return InvalidArgument("only one of the models has '", port.name, "'");
    if (same->dims != port.dims) {
      return InvalidArgument("'", port.name, "' is ", ShapeText(port.dims), " in one model and ", ShapeText(same->dims),
                             " in the other");
    }
    places.push_back(static_cast<size_t>(same - ports.begin()));
  }
  if (wanted.size() != ports.size()) return InvalidArgument("the models have other numbers of inputs or outputs");
  return places;
}

// Ids anywhere in their tables, bytes, masks of ones, and any other numbers.
void DrawInput(const NetworkRunner& runner, int i, std::mt19937& random, std::vector<float>& input) {
  constexpr int64_t kBytes = 256;
  const int64_t limit = runner.inputs()[i].dtype == DType::kUint8 ? kBytes : runner.IdLimit(i);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int64_t> id(0, std::max<int64_t>(limit, 1) - 1);
  std::generate(input.begin(), input.end(), [&] {
    if (runner.IsMask(i)) return 1.0f;
    return limit > 0 ? static_cast<float>(id(random)) : normal(random);
  });
}

StatusOr<std::vector<Difference>> CompareModels(NetworkRunner& reference, NetworkRunner& candidate, int samples) {
  if (reference.batch() != candidate.batch()) return InvalidArgument("the models have other batch sizes");
  SWIZZLE_ASSIGN_OR_RETURN(const auto input_places, Match(candidate.inputs(), reference.inputs()));
  SWIZZLE_ASSIGN_OR_RETURN(const auto output_places, Match(reference.outputs(), candidate.outputs()));
  std::vector<Difference> differences;
  for (const NetworkPort& port : reference.outputs()) differences.push_back({.output = port.name});

  std::mt19937 random(kSeed);
  std::vector<std::vector<float>> inputs(reference.inputs().size());
  std::vector<std::vector<float>> candidate_inputs(inputs.size());
  for (int sample = 0; sample < samples; ++sample) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].resize(reference.InputElements(static_cast<int>(i)));
      DrawInput(reference, static_cast<int>(i), random, inputs[i]);
    }
    for (size_t i = 0; i < inputs.size(); ++i) candidate_inputs[i] = inputs[input_places[i]];
    SWIZZLE_ASSIGN_OR_RETURN(const auto expected, reference.Run(inputs));
    SWIZZLE_ASSIGN_OR_RETURN(const auto actual, candidate.Run(candidate_inputs));
    for (size_t i = 0; i < expected.size(); ++i) Compare(expected[i], actual[output_places[i]], differences[i]);
  }
  return differences;
}

StatusOr<NetworkRunner> LoadRunner(const std::filesystem::path& file, Backend& backend) {
  SWIZZLE_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(file));
  StatusOr<NetworkRunner> runner = NetworkRunner::Make(std::move(model.network), backend, 1, 1);
  if (!runner.ok()) return Annotate(runner.status(), file.string());
  return runner;
}

std::string Scientific(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2e", number);
  return text;
}

std::string DifferencesText(const ValidateCommand& command, const std::vector<Difference>& differences, bool passed) {
  TextTable table({{"output"},
                   {"largest difference", Align::kRight},
                   {"largest magnitude", Align::kRight},
                   {"relative", Align::kRight}});
  for (const Difference& d : differences) {
    table.AddRow(
        {d.output, Scientific(d.largest_difference), Scientific(d.largest_magnitude), Scientific(d.relative())});
  }
  return Concat(table.Render(), "\n", passed ? "equal" : "NOT equal", " within ", command.tolerance, " on ",
                command.samples, command.samples == 1 ? " drawn input\n" : " drawn inputs\n");
}

// JSON has no infinity: it stands as null.
std::string DifferencesJson(const ValidateCommand& command, const std::vector<Difference>& differences, bool passed) {
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  for (const Difference& d : differences) {
    outputs.push_back({{"name", d.output},
                       {"largest_difference", d.largest_difference},
                       {"largest_magnitude", d.largest_magnitude},
                       {"relative_difference", d.relative()}});
  }
  const nlohmann::ordered_json json = {{"passed", passed},
                                       {"samples", command.samples},
                                       {"tolerance", command.tolerance},
                                       {"outputs", std::move(outputs)}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

StatusOr<Outcome> Execute(const ValidateCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  SWIZZLE_ASSIGN_OR_RETURN(NetworkRunner reference, LoadRunner(command.reference, devices.cpu()));
  SWIZZLE_ASSIGN_OR_RETURN(NetworkRunner candidate, LoadRunner(command.candidate, devices.main()));
  SWIZZLE_ASSIGN_OR_RETURN(const auto differences, CompareModels(reference, candidate, command.samples));
  const bool passed = std::all_of(differences.begin(), differences.end(),
                                  [&](const Difference& d) { return d.relative() <= command.tolerance; });
  terminal.out << (command.json ? DifferencesJson(command, differences, passed)
                                : DifferencesText(command, differences, passed));
  return passed ? Outcome::kOk : Outcome::kCheckFailed;
}

}  // namespace swizzle::pack
