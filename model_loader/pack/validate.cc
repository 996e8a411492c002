#include <algorithm>
#include <optional>
#include <ostream>
#include <random>

#include "kernels/devices.h"
#include "model_loader/files/npz.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/comparison.h"
#include "model_loader/pack/input_arrays.h"
#include "model_loader/pack/network_runner.h"
#include "model_loader/pack/text_table.h"
#include "model_loader/pack/validate_programs.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

constexpr uint32_t kSeed = 1;

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

// What both models run on, a batch at a time: rows of files, or drawn ones.
struct Samples {
  std::vector<std::vector<float>> rows;  // by input of the reference, all batches; none where they are drawn
  std::vector<int64_t> labels;           // a class for each row; none where nobody gave any
  int64_t batches = 0;
  int64_t length = 0;  // of sequences; 0: some
};

StatusOr<Samples> ReadInputs(const std::filesystem::path& file, const Network& network) {
  SWIZZLE_ASSIGN_OR_RETURN(const NpyArrays arrays, ReadNpz(file));
  SWIZZLE_RETURN_IF_ERROR(CheckNames(arrays, network.inputs));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t batch, BatchOf(arrays, network));
  Samples samples;
  SWIZZLE_ASSIGN_OR_RETURN(samples.length, LengthOf(arrays, network));
  const NpyArray& first = arrays.at(network.inputs[0].name);
  const int64_t rows = first.shape.empty() ? 0 : first.shape[0];
  const int64_t rows_a_batch = network.batch_size > 0 ? batch : 1;
  if (rows < 1 || rows % rows_a_batch != 0) {
    return InvalidArgument("input '", network.inputs[0].name, "' is ", ShapeText(first.shape),
                           "; the model runs batches of ", rows_a_batch, ", so that rows must be a multiple of that");
  }
  samples.batches = rows / rows_a_batch;
  for (const NetworkPort& port : network.inputs) {
    Shape shape = ShapeAt(network, port, rows, samples.length);
    shape[0] = rows;
    SWIZZLE_ASSIGN_OR_RETURN(samples.rows.emplace_back(), Floats(arrays.at(port.name), port, shape));
  }
  return samples;
}

// Classes are what an output has for each row, so that there can be only one.
StatusOr<std::vector<int64_t>> LabelsFor(const std::filesystem::path& file, const Samples& samples,
                                         const NetworkRunner& runner) {
  const std::vector<NetworkPort>& outputs = runner.outputs();
  if (outputs.size() != 1 || runner.network().values[outputs[0].value].per_token) {
    return InvalidArgument("--labels asks for a model whose one output is a score for each class; this one has ",
                           outputs.size(), outputs.size() == 1 ? " output, of each token" : " outputs");
  }
  return ReadLabels(file, samples.batches * runner.batch(), runner.network().values[outputs[0].value].elements());
}

void FillInputs(const NetworkRunner& runner, const Samples& samples, int64_t batch, std::mt19937& random,
                std::vector<std::vector<float>>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t elements = runner.InputElements(static_cast<int>(i));
    inputs[i].resize(elements);
    if (samples.rows.empty()) {
      DrawInput(runner, static_cast<int>(i), random, inputs[i]);
    } else {
      const auto rows = std::span(samples.rows[i]).subspan(static_cast<size_t>(batch) * elements, elements);
      std::ranges::copy(rows, inputs[i].begin());
    }
  }
}

StatusOr<Comparison> CompareModels(NetworkRunner& reference, NetworkRunner& candidate, const Samples& samples) {
  if (reference.batch() != candidate.batch()) return InvalidArgument("the models have other batch sizes");
  SWIZZLE_ASSIGN_OR_RETURN(const auto input_places, Match(candidate.inputs(), reference.inputs()));
  SWIZZLE_ASSIGN_OR_RETURN(const auto output_places, Match(reference.outputs(), candidate.outputs()));
  Comparison comparison;
  comparison.samples = samples.batches;
  for (const NetworkPort& port : reference.outputs()) comparison.differences.push_back({.output = port.name});
  if (!samples.labels.empty()) comparison.top1 = Top1{static_cast<int64_t>(samples.labels.size()), 0, 0};

  std::mt19937 random(kSeed);
  std::vector<std::vector<float>> inputs(reference.inputs().size());
  std::vector<std::vector<float>> candidate_inputs(inputs.size());
  const auto rows = static_cast<size_t>(reference.batch());
  for (int64_t batch = 0; batch < samples.batches; ++batch) {
    FillInputs(reference, samples, batch, random, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) candidate_inputs[i] = inputs[input_places[i]];
    SWIZZLE_ASSIGN_OR_RETURN(const auto expected, reference.Run(inputs));
    SWIZZLE_ASSIGN_OR_RETURN(const auto actual, candidate.Run(candidate_inputs));
    for (size_t i = 0; i < expected.size(); ++i) {
      comparison.differences[i].See(expected[i], actual[output_places[i]]);
    }
    if (!comparison.top1) continue;
    const auto labels = std::span(samples.labels).subspan(static_cast<size_t>(batch) * rows, rows);
    comparison.top1->reference += CountRight(expected[0], labels);
    comparison.top1->candidate += CountRight(actual[0], labels);
  }
  return comparison;
}

StatusOr<NetworkRunner> NewRunner(const std::filesystem::path& file, Network network, Backend& backend,
                                  int64_t length) {
  StatusOr<NetworkRunner> runner = NetworkRunner::Make(std::move(network), backend, 1, 1, length);
  if (!runner.ok()) return Annotate(runner.status(), file.string());
  return runner;
}

StatusOr<Comparison> RunPlans(const ValidateCommand& command, const Devices& devices, LoadedModel dense,
                              LoadedModel packed) {
  Samples samples;
  samples.batches = command.samples;
  if (!command.inputs.empty()) {
    StatusOr<Samples> read = ReadInputs(command.inputs, dense.network);
    if (!read.ok()) return Annotate(read.status(), command.inputs.string());
    samples = *std::move(read);
  }
  SWIZZLE_ASSIGN_OR_RETURN(NetworkRunner reference,
                           NewRunner(command.reference, std::move(dense.network), devices.cpu(), samples.length));
  SWIZZLE_ASSIGN_OR_RETURN(NetworkRunner candidate,
                           NewRunner(command.candidate, std::move(packed.network), devices.main(), samples.length));
  for (size_t i = 0; i < samples.rows.size(); ++i) {
    const Status in_range = CheckRange(reference, static_cast<int>(i), samples.rows[i]);
    if (!in_range.ok()) return Annotate(in_range, command.inputs.string());
  }
  if (!command.labels.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(samples.labels, LabelsFor(command.labels, samples, reference));
  }
  return CompareModels(reference, candidate, samples);
}

StatusOr<Comparison> RunBoth(const ValidateCommand& command) {
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel dense, LoadRunnableModel(command.reference));
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel packed, LoadRunnableModel(command.candidate));
  auto* const reference = std::get_if<LoadedModel>(&dense);
  auto* const candidate = std::get_if<LoadedModel>(&packed);
  if (reference != nullptr && candidate != nullptr) {
    return RunPlans(command, devices, std::move(*reference), std::move(*candidate));
  }
  return ComparePrograms(command, devices, std::move(dense), std::move(packed));
}

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
  SWIZZLE_ASSIGN_OR_RETURN(const Comparison comparison, RunBoth(command));
  const bool passed = Passes(command, comparison);
  terminal.out << (command.json ? ComparisonJson(command, comparison, passed)
                                : ComparisonText(command, comparison, passed));
  return passed ? Outcome::kOk : Outcome::kCheckFailed;
}

}  // namespace swizzle::pack
