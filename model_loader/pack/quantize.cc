#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <ostream>

#include "absl/strings/match.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/devices.h"
#include "model_loader/calibration/activation_scales.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/files/npz.h"
#include "model_loader/files/read_file.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/load/loader.h"
#include "model_loader/onnx/onnx_quantise.h"
#include "model_loader/onnx/onnx_quantise_static.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/onnx/onnx_writer.h"
#include "model_loader/pack/calibration_data.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/graph_file.h"
#include "model_loader/pack/progress_line.h"
#include "model_loader/pack/text_table.h"
#include "model_loader/packed/packed_writer.h"
#include "model_loader/quantising/quantiser.h"
#include "model_loader/safetensors/checkpoint.h"

namespace swizzle::pack {
namespace {

constexpr double kPoorDecibels = 20.0;  // the noise has a hundredth of the signal's power

// Squares of what a value was, and of by how much it was another once quantised.
struct Noise {
  double signal = 0.0;
  double noise = 0.0;

  double decibels() const {
    const bool none = signal == 0.0 || noise == 0.0;
    return none ? std::numeric_limits<double>::infinity() : 10.0 * std::log10(signal / noise);
  }
};

class Calibration {
 public:
  Calibration(const QuantizeCommand& command, const Network& network, const CalibrationData& data, Terminal& terminal)
      : command_(command), network_(network), data_(data), line_(terminal, ""), observers_(network.values.size()) {
    for (const Layer& layer : network.layers) values_.push_back(layer.output);
  }

  // The quantised network, and what became of each layer.
  StatusOr<std::vector<QuantisedLayer>> Run(Backend& backend, Network& quantised) {
    SWIZZLE_ASSIGN_OR_RETURN(const auto runner, RunnerOf(network_, backend));
    const auto range = [](Observer& observer, std::span<const float> row, int64_t) { observer.SeeRange(row); };
    const auto count = [](Observer& observer, std::span<const float> row, int64_t channels) {
      observer.SeeValues(row, channels);
    };
    SWIZZLE_RETURN_IF_ERROR(Observe(*runner, "Ranges", range));
    SWIZZLE_RETURN_IF_ERROR(Observe(*runner, "Values", count));
    SWIZZLE_ASSIGN_OR_RETURN(
        auto layers, QuantiseNetwork(quantised, observers_, {.observer = command_.observer, .skip = command_.skip}));
    SWIZZLE_ASSIGN_OR_RETURN(const auto rounding, RunnerOf(quantised, backend));
    SWIZZLE_RETURN_IF_ERROR(Compare(*runner, *rounding));
    return layers;
  }

  const Noise& NoiseOf(int value) const { return noises_.at(value); }

 private:
  StatusOr<std::unique_ptr<PlanRunner>> RunnerOf(const Network& network, Backend& backend) const {
    return NewWatchingRunner(network, values_, backend, command_.threads);
  }

  Status Show(const char* what, size_t batch) {
    return line_.Replace(Concat(what, ": batch ", batch + 1, " of ", data_.batches(), " ..."));
  }

  template <typename See>
  Status Observe(PlanRunner& runner, const char* what, const See& see) {
    const auto see_rows = [&](int value, std::span<const float> rows) {
      const auto elements = static_cast<size_t>(network_.values[value].elements());
      for (; !rows.empty(); rows = rows.subspan(elements)) {
        see(observers_[static_cast<size_t>(value)], rows.first(elements), network_.values[value].channels);
      }
    };
    for (size_t batch = 0; batch < data_.batches(); ++batch) {
      SWIZZLE_RETURN_IF_ERROR(Show(what, batch));
      const auto inputs = data_.Batch(batch);
      SWIZZLE_ASSIGN_OR_RETURN(const auto outputs, runner.RunViews(inputs));
      for (size_t i = 0; i < inputs.size(); ++i) see_rows(network_.inputs[i].value, FloatsOf(inputs[i]));
      for (size_t i = 0; i < outputs.size(); ++i) see_rows(values_[i], FloatsOf(outputs[i]));
    }
    return {};
  }

  Status Compare(PlanRunner& real, PlanRunner& rounding) {
    for (size_t batch = 0; batch < data_.batches(); ++batch) {
      SWIZZLE_RETURN_IF_ERROR(Show("Comparison", batch));
      const auto inputs = data_.Batch(batch);
      SWIZZLE_ASSIGN_OR_RETURN(const auto expected, real.RunViews(inputs));
      SWIZZLE_ASSIGN_OR_RETURN(const auto actual, rounding.RunViews(inputs));
      for (size_t i = 0; i < values_.size(); ++i) {
        Noise& noise = noises_[values_[i]];
        const std::vector<float> reals = FloatsOf(expected[i]), rounded = FloatsOf(actual[i]);
        for (size_t k = 0; k < reals.size(); ++k) {
          const double value = reals[k], error = rounded[k] - value;
          noise.signal += value * value;
          noise.noise += error * error;
        }
      }
    }
    return {};
  }

  const QuantizeCommand& command_;
  const Network& network_;
  const CalibrationData& data_;
  ProgressLine line_;
  std::vector<int> values_;          // that layers make
  std::vector<Observer> observers_;  // by value
  std::map<int, Noise> noises_;      // by value that a layer makes
};

std::string DecibelsText(double decibels) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", decibels);
  return std::isinf(decibels) ? "exact" : text;
}

std::string SummaryText(const QuantizeCommand& command, const Network& network, const Calibration& calibration,
                        const std::vector<QuantisedLayer>& layers, size_t batches) {
  TextTable table(
      {{"layer"}, {"weight dB", Align::kRight}, {"input dB", Align::kRight}, {"output dB", Align::kRight}, {""}});
  std::string poor;
  int64_t quantised = 0;
  for (const QuantisedLayer& layer : layers) {
    const double output = calibration.NoiseOf(network.layers[static_cast<size_t>(layer.layer)].output).decibels();
    const double own = std::min(layer.weight_decibels, layer.input_decibels);
    const bool is_poor = !layer.skipped && own < kPoorDecibels;
    if (is_poor) poor += Concat(" --skip='", layer.name, "'");
    quantised += !layer.skipped;
    table.AddRow({layer.name, layer.skipped ? "" : DecibelsText(layer.weight_decibels),
                  layer.skipped ? "" : DecibelsText(layer.input_decibels), DecibelsText(output),
                  layer.skipped ? "FP32"
                  : is_poor     ? "poor"
                                : ""});
  }
  std::string text = Concat(table.Render(), "\n", command.output.string(), ": ", quantised, " of ", layers.size(),
                            " layers in whole numbers, by ", batches, " batches\n");
  if (!poor.empty()) text += Concat("Layers that would do better in FP32:", poor, "\n");
  return text;
}

Status WriteConvolutional(const QuantizeCommand& command, const Network& quantised) {
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  if (command.output.extension() == ".swz") return WritePacked(quantised, command.output);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, WriteOnnx(quantised));
  return WriteFileAtomically(command.output, bytes);
}

StatusOr<std::string> QuantizeConvolutional(const QuantizeCommand& command, const Network& network,
                                            Terminal& terminal) {
  if (command.calibration.empty()) return InvalidArgument("a convolutional model needs --calibration");
  SWIZZLE_ASSIGN_OR_RETURN(const CalibrationData data, CalibrationData::Read(command.calibration, network));
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open("cpu"));
  Network quantised = network;
  Calibration calibration(command, network, data, terminal);
  SWIZZLE_ASSIGN_OR_RETURN(const auto layers, calibration.Run(devices.cpu(), quantised));
  SWIZZLE_RETURN_IF_ERROR(WriteConvolutional(command, quantised));
  return SummaryText(command, network, calibration, layers, data.batches());
}

// Whether a layer is to stay in FP32.
std::function<bool(const std::string&)> Skips(const QuantizeCommand& command) {
  return [&command](const std::string& name) {
    return std::ranges::any_of(
        command.skip, [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
  };
}

// input_decibels: of an input's whole numbers.
std::string LayersText(const QuantizeCommand& command, const std::vector<QuantisedNode>& layers,
                       const std::function<double(const std::string&)>& input_decibels) {
  TextTable table({{"layer"}, {"weight dB", Align::kRight}, {"input dB", Align::kRight}, {""}});
  std::string poor;
  int64_t quantised = 0;
  for (const QuantisedNode& layer : layers) {
    const bool whole = !layer.input.empty();
    const double input = whole ? input_decibels(layer.input) : 0.0;
    const bool is_poor = whole && std::min(layer.weight_decibels, input) < kPoorDecibels;
    if (is_poor) poor += Concat(" --skip='", layer.name, "'");
    quantised += whole ? 1 : 0;
    table.AddRow({layer.name, whole ? DecibelsText(layer.weight_decibels) : "", whole ? DecibelsText(input) : "",
                  whole ? (is_poor ? "poor" : "") : "FP32"});
  }
  std::string text = Concat(table.Render(), "\n", command.output.string(), ": ", quantised, " of ", layers.size(),
                            " layers in whole numbers\n");
  if (!poor.empty()) text += Concat("Layers that would do better in FP32:", poor, "\n");
  return text;
}

// Linear layers of the file's own graph, so that the rest of it stays as it is for other engines.
Status WriteSequenceOnnx(const QuantizeCommand& command, const LoadedModel& model) {
  if (model.container != "onnx") {
    return Unimplemented("an .onnx file can only be made of an .onnx file; write a .swz file");
  }
  const ReadOptions options = ReadOptionsFor(command.model);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(command.model, options.max_model_bytes));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> made, QuantiseOnnxDynamically(bytes, Skips(command), options));
  return WriteFileAtomically(command.output, made);
}

// Of encoders: by weights alone.
StatusOr<std::string> QuantizeSequences(const QuantizeCommand& command, LoadedModel& model) {
  if (!command.calibration.empty()) {
    return InvalidArgument("tokens are quantised when the model runs, each by a scale of its own: drop --calibration");
  }
  const auto is_quantised = [](const Weight& weight) { return weight.quantisation.has_value(); };
  if (std::ranges::any_of(model.network.weights, is_quantised)) {
    return InvalidArgument("it is quantised already; start from the FP32 model");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto layers, QuantiseSequenceNetwork(model.network, {.skip = command.skip}));
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  SWIZZLE_RETURN_IF_ERROR(command.output.extension() == ".swz" ? WritePacked(model.network, command.output)
                                                               : WriteSequenceOnnx(command, model));
  TextTable table({{"layer"}, {"weight dB", Align::kRight}, {""}});
  int64_t quantised = 0;
  for (const QuantisedLayer& layer : layers) {
    const bool is_poor = !layer.skipped && layer.weight_decibels < kPoorDecibels;
    quantised += !layer.skipped;
    table.AddRow({layer.name, layer.skipped ? "" : DecibelsText(layer.weight_decibels),
                  layer.skipped ? "FP32"
                  : is_poor     ? "poor"
                                : ""});
  }
  return Concat(table.Render(), "\n", command.output.string(), ": ", quantised, " of ", layers.size(),
                " linear layers in whole numbers; each token is quantised when the model runs\n");
}

// Of a graph that no plan takes whole: its convolutions and products with weights, in the file's own graph.
// why: no plan takes it.
StatusOr<std::string> QuantizeLayers(const QuantizeCommand& command, const Status& why, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const OnnxModel file, ReadOnnxModel(command.model));
  if (command.calibration.empty()) {
    return InvalidArgument("a model of any graph needs --calibration (", why.message(), ")");
  }
  const auto as_they_are = [](const OnnxWeight&, std::span<float>) {};
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> whole,
                           RewriteOnnxWeights(file.bytes, as_they_are, file.options));
  SWIZZLE_ASSIGN_OR_RETURN(const auto program,
                           interpreter::ReadProgram(std::span<const std::byte>(whole), {}, interpreter::Nodes::kAll));
  SWIZZLE_ASSIGN_OR_RETURN(const NpyArrays inputs, ReadCalibration(command.calibration, program->inputs()));
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  SWIZZLE_ASSIGN_OR_RETURN(const auto stream, backend->NewStream(command.threads));
  std::map<std::string, ActivationScale> scales;
  {
    ProgressLine line(terminal, "");
    const ScaleChoice choice{command.observer, Skips(command),
                             [&](const std::string& round) { return line.Replace(Concat(round, " ...")); }};
    SWIZZLE_ASSIGN_OR_RETURN(scales, ChooseActivationScales(*program, inputs, *stream, choice));
  }
  std::map<std::string, RoundedActivation> activations;
  for (const auto& [name, seen] : scales)
    activations[name] = {seen.as, seen.plane_means, seen.vector_means, seen.plane};
  SWIZZLE_ASSIGN_OR_RETURN(const QuantisedOnnx made, QuantiseOnnxStatically(whole, activations, Skips(command)));
  for (const std::string& pattern : command.skip) {
    const auto matches = [&](const QuantisedNode& layer) {
      return fnmatch(pattern.c_str(), layer.name.c_str(), 0) == 0;
    };
    if (std::ranges::none_of(made.layers, matches)) {
      return InvalidArgument("the pattern to skip '", pattern, "' matches no layer");
    }
  }
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  SWIZZLE_RETURN_IF_ERROR(WriteGraph(made.model, command.output));
  return LayersText(command, made.layers, [&](const std::string& input) { return scales.at(input).decibels; });
}

// Inputs may be whole numbers before.
bool IsQuantised(const Network& network) {
  return std::ranges::any_of(network.layers,
                             [&](const Layer& layer) { return network.values[layer.output].quantisation.has_value(); });
}

// UNIMPLEMENTED where the graph's layers have to be quantised one by one: no plan takes it whole, or what the plan's
// network has is not written as ONNX.
StatusOr<LoadedModel> LoadNetwork(const QuantizeCommand& command) {
  SWIZZLE_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(command.model));
  const auto is_norm = [](const Layer& layer) { return layer.op == Op::kLayerNorm; };
  if (!model.network.sequences && std::ranges::any_of(model.network.layers, is_norm)) {
    return Unimplemented("a network of images with layer norms cannot be written as ONNX");
  }
  return model;
}

StatusOr<Outcome> Quantize(const QuantizeCommand& command, Terminal& terminal) {
  StatusOr<LoadedModel> loaded = LoadNetwork(command);
  if (loaded.status().code() == StatusCode::kUnimplemented && !IsCheckpoint(command.model)) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::string summary, QuantizeLayers(command, loaded.status(), terminal));
    terminal.out << summary;
    return Outcome::kOk;
  }
  SWIZZLE_RETURN_IF_ERROR(loaded.status());
  LoadedModel& model = *loaded;
  if (IsQuantised(model.network)) {
    return InvalidArgument("it is quantised already; start from the FP32 model");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::string summary, model.network.sequences
                                                          ? QuantizeSequences(command, model)
                                                          : QuantizeConvolutional(command, model.network, terminal));
  terminal.out << summary;
  return Outcome::kOk;
}

}  // namespace

StatusOr<Outcome> Execute(const QuantizeCommand& command, Terminal& terminal) {
  StatusOr<Outcome> outcome = Quantize(command, terminal);
  if (outcome.ok() || absl::StrContains(outcome.status().message(), command.model.string())) return outcome;
  return Annotate(outcome.status(), command.model.string());
}

}  // namespace swizzle::pack
