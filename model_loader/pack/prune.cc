#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "kernels/cpu/cpu_backend.h"
#include "model_loader/calibration/calibrate.h"
#include "model_loader/calibration/graph_weights.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/files/npz.h"
#include "model_loader/files/printable_name.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/load/loader.h"
#include "model_loader/onnx/onnx_reader.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/graph_file.h"
#include "model_loader/pack/progress_line.h"
#include "model_loader/pack/text_table.h"
#include "model_loader/packed/packed_writer.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/pruning/pruner.h"
#include "model_loader/safetensors/checkpoint.h"

namespace swizzle::pack {
namespace {

constexpr int64_t kMostCalibrationBytes = int64_t{1} << 33;

bool IsPacked(const std::filesystem::path& file) { return file.extension() == ".swz"; }

StatusOr<Network> NetworkFromOnnx(const OnnxSource& model) {
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadOnnx(model));
  SWIZZLE_RETURN_IF_ERROR(RunPasses(graph));
  return Lower(std::move(graph));
}

uint64_t Checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// Of all that a calibrated model depends on.
uint64_t KeyOf(const PruneCommand& command, uint64_t model, std::span<const std::byte> inputs,
               const NpyArrays& scores) {
  std::string text =
      Concat("2 ", model, " ", Checksum(inputs), " ", PruneMethodName(command.method), " ", command.vector_rows, " ",
             command.limit.n, ":", command.limit.m, " ", std::bit_cast<uint64_t>(command.sparsity));
  for (const std::string& pattern : command.skip) text += Concat("\n", pattern);
  for (const auto& [name, array] : scores) text += Concat("\n", name, " ", Checksum(array.bytes));
  return Checksum(std::as_bytes(std::span(text)));
}

// Where layers that calibration is done with are kept until the output is written.
std::filesystem::path KeptFolder(const PruneCommand& command) { return command.output.string() + ".partial"; }

// Once the output is written: what else lies there is another run's, or somebody's.
void RemoveKept(const PruneCommand& command, const std::filesystem::path& folder) {
  std::error_code ignored;
  if (folder.empty()) return;
  std::filesystem::remove_all(folder, ignored);
  std::filesystem::remove(KeptFolder(command), ignored);  // if it is empty
}

// Prunes the weights of a program. `model`: a checksum of it. Sets the folder where it keeps what is done.
Status Calibrate(const PruneCommand& command, const interpreter::Program& program, uint64_t model, Terminal& terminal,
                 Pruner& pruner, std::vector<NamedWeight>& weights, std::filesystem::path& folder) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> archive, ReadFile(command.calibration, kMostCalibrationBytes));
  StatusOr<NpyArrays> inputs = ParseNpz(archive);
  if (!inputs.ok()) return Annotate(inputs.status(), command.calibration.string());
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, backend->NewStream(/*threads=*/0));
  ProgressLine line(terminal, "");
  const auto progress = [&](size_t done, const std::string& layer) {
    return line.Replace(Concat("Calibrating layer ", done + 1, " of ", weights.size(), ": ", layer, " ..."));
  };
  const uint64_t key = KeyOf(command, model, archive, pruner.scores());
  folder = KeptFolder(command) / std::to_string(key);
  return PruneCalibrated({program, *inputs, *stream, folder, progress}, weights, pruner);
}

constexpr char kNodeByNode[] = "calibration runs the model node by node";

// Some of the names, and how many there are.
std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) list += Concat(i == 0 ? "" : ", ", names[i]);
  return names.size() <= kMost ? list : Concat(list, " and ", names.size() - kMost, " more");
}

// What layers multiply with, and was not pruned, because it was not found to be a weight, or calibration does not
// follow it.
StatusOr<std::vector<std::string>> UnseenIn(const std::vector<std::byte>& model, const ReadOptions& options,
                                            bool calibrated) {
  std::vector<std::string> unseen = UnseenOnnxWeights(model);
  if (!calibrated) return unseen;
  const auto note = [&](const OnnxWeight& weight, std::span<float>) {
    if (weight.is_indirect) unseen.push_back(Concat(QuotedName(weight.names.back()), " (not followed by calibration)"));
  };
  SWIZZLE_RETURN_IF_ERROR(RewriteOnnxWeights(model, note, options).status());
  return unseen;
}

// An ONNX model with the weights that calibration gives.
StatusOr<std::vector<std::byte>> CalibratedOnnx(const PruneCommand& command, const std::vector<std::byte>& model,
                                                const ReadOptions& options, Terminal& terminal, Pruner& pruner,
                                                std::filesystem::path& kept) {
  std::vector<NamedWeight> weights;
  const auto collect = [&](const OnnxWeight& weight, std::span<float> elements) {
    if (weight.is_indirect) return;
    weights.push_back({weight, {elements.begin(), elements.end()}});
  };
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> whole, RewriteOnnxWeights(model, collect, options));
  // With what lay in external files.
  const auto program = interpreter::ReadProgram(std::span<const std::byte>(whole), {}, interpreter::Nodes::kAll);
  if (!program.ok()) return Annotate(program.status(), kNodeByNode);
  SWIZZLE_RETURN_IF_ERROR(Calibrate(command, **program, Checksum(whole), terminal, pruner, weights, kept));
  const auto replace = [&, next = size_t{0}](const OnnxWeight& weight, std::span<float> elements) mutable {
    if (weight.is_indirect) return;
    std::ranges::copy(weights[next++].elements, elements.begin());
  };
  return RewriteOnnxWeights(model, replace, options);
}

// Likewise of a checkpoint.
StatusOr<Network> CalibratedCheckpoint(const PruneCommand& command, Terminal& terminal, Pruner& pruner,
                                       std::filesystem::path& kept) {
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadCheckpoint(command.model));
  std::vector<NamedWeight> weights = WeightsOf(graph);
  const auto program = interpreter::ReadProgram(command.model);
  if (!program.ok()) return Annotate(program.status(), kNodeByNode);
  uint64_t checksum = 0;
  for (const Value& value : graph.values) {
    if (value.constant)
      checksum = XXH3_64bits_withSeed(value.constant->bytes.data(), value.constant->bytes.size(), checksum);
  }
  SWIZZLE_RETURN_IF_ERROR(Calibrate(command, **program, checksum, terminal, pruner, weights, kept));
  SetWeights(weights, graph);
  graph.sequences.emplace();
  SWIZZLE_RETURN_IF_ERROR(RunPasses(graph).status());
  return Lower(std::move(graph));
}

// In the form of the output: as one plan where that takes it, else as a graph.
Status WritePruned(const PruneCommand& command, const std::vector<std::byte>& model) {
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  if (!IsPacked(command.output)) return WriteFileAtomically(command.output, model);
  const OnnxSource source(model);  // parsed once for both
  const StatusOr<Network> network = NetworkFromOnnx(source);
  if (network.ok()) return WritePacked(*network, command.output);
  if (network.status().code() != StatusCode::kUnimplemented) return network.status();
  SWIZZLE_RETURN_IF_ERROR(interpreter::ReadProgram(source).status());
  return WriteGraph(model, command.output);
}

// `unseen` are the weights that are left as they are, for messages.
Status PruneOnnx(const PruneCommand& command, OnnxModel file, Terminal& terminal, Pruner& pruner,
                 std::vector<std::string>& unseen) {
  std::vector<std::byte> model = std::move(file.bytes);
  const auto prune = [&](const OnnxWeight& weight, std::span<float> elements) {
    pruner.Prune({weight.names, weight.shape, weight.outputs_last, weight.taps()}, elements);
  };
  const bool calibrated = !command.calibration.empty();
  std::filesystem::path kept;
  SWIZZLE_ASSIGN_OR_RETURN(model, calibrated ? CalibratedOnnx(command, model, file.options, terminal, pruner, kept)
                                             : RewriteOnnxWeights(model, prune, file.options));
  if (pruner.records().empty() && IsQuantisedOnnx(model)) {
    return InvalidArgument("its weights are whole numbers already; prune the FP32 model, and quantize what that gives");
  }
  SWIZZLE_ASSIGN_OR_RETURN(unseen, UnseenIn(model, file.options, calibrated));
  if (pruner.records().empty() && !unseen.empty()) {
    return InvalidArgument("none of its weights can be pruned: ", Listed(unseen),
                           "; fold constants when you export the model, so that layers read weights themselves");
  }
  SWIZZLE_RETURN_IF_ERROR(pruner.CheckResult());
  SWIZZLE_RETURN_IF_ERROR(WritePruned(command, model));
  RemoveKept(command, kept);
  return {};
}

StatusOr<Network> PrunedNetwork(const PruneCommand& command, Terminal& terminal, Pruner& pruner,
                                std::filesystem::path& kept) {
  if (!command.calibration.empty()) {
    if (IsCheckpoint(command.model)) return CalibratedCheckpoint(command, terminal, pruner, kept);
    return Unimplemented("packed models cannot be calibrated; prune the model that it was packed from");
  }
  SWIZZLE_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(command.model));
  PruneNetwork(model.network, pruner);
  return std::move(model.network);
}

// What is not ONNX: a packed model or a checkpoint.
Status PruneLoaded(const PruneCommand& command, Terminal& terminal, Pruner& pruner) {
  if (!IsPacked(command.output)) {
    return InvalidArgument("a ", IsPacked(command.model) ? "packed model" : "checkpoint",
                           " cannot become ONNX: name an output that ends in .swz");
  }
  std::filesystem::path kept;
  SWIZZLE_ASSIGN_OR_RETURN(const Network network, PrunedNetwork(command, terminal, pruner, kept));
  SWIZZLE_RETURN_IF_ERROR(pruner.CheckResult());
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  SWIZZLE_RETURN_IF_ERROR(WritePacked(network, command.output));
  RemoveKept(command, kept);
  return {};
}

double Part(int64_t zeros, int64_t elements) {
  return elements == 0 ? 0.0 : static_cast<double>(zeros) / static_cast<double>(elements);
}

// What of the magnitudes each method leaves, layer by layer.
std::string KeptText(const PruneCommand& command, const std::vector<PruneRecord>& records) {
  TextTable table({{"layer"},
                   {Concat("kept by ", PruneMethodName(command.method)), Align::kRight},
                   {"by magnitude", Align::kRight},
                   {"vector-wise", Align::kRight},
                   {"block", Align::kRight}});
  for (const PruneRecord& record : records) {
    if (record.skipped) continue;
    table.AddRow({record.name, PercentText(record.kept), PercentText(record.kept_by_magnitude),
                  PercentText(record.kept_by_vectors), PercentText(record.kept_by_blocks)});
  }
  return Concat("\nShare of the weights' magnitudes, at the same sparsity:\n", table.Render());
}

// What pruning did to the outputs of each layer, before and after the rest was changed.
std::string ErrorsText(const std::vector<PruneRecord>& records) {
  TextTable table({{"layer"}, {"pruned", Align::kRight}, {"compensated", Align::kRight}});
  for (const PruneRecord& record : records) {
    if (!record.errors) continue;
    table.AddRow({record.name, PercentText(record.errors->pruned), PercentText(record.errors->compensated)});
  }
  return Concat("\nSquared error of the outputs on calibration data, over their squares:\n", table.Render());
}

std::string SummaryText(const PruneCommand& command, const std::vector<PruneRecord>& records) {
  TextTable table({{"layer"},
                   {"weight", Align::kRight},
                   {"elements", Align::kRight},
                   {"zeros before", Align::kRight},
                   {"zeros after", Align::kRight},
                   {""}});
  PruneRecord total;
  int gone = 0;  // layers
  for (const PruneRecord& record : records) {
    const bool is_gone = !record.skipped && record.elements > 0 && record.zeros_after == record.elements;
    gone += is_gone;
    table.AddRow({record.name, ShapeText(record.shape), std::to_string(record.elements),
                  PercentText(Part(record.zeros_before, record.elements)),
                  PercentText(Part(record.zeros_after, record.elements)),
                  record.skipped ? "skipped"
                  : is_gone      ? "nothing left"
                                 : ""});
    total.elements += record.elements;
    total.zeros_before += record.zeros_before;
    total.zeros_after += record.zeros_after;
  }
  std::string text = Concat(table.Render(), "\n", command.output.string(), ": ", total.elements, " weights in ",
                            records.size(), " layers, ", PercentText(Part(total.zeros_before, total.elements)),
                            " zero before, ", PercentText(Part(total.zeros_after, total.elements)), " after\n");
  if (gone > 0) {
    text +=
        Concat("Of ", gone, gone == 1 ? " layer" : " layers",
               " nothing is left, and no training brings it back: leave such layers out with --skip, or prune less\n");
  }
  return text;
}

// What is no checkpoint, and no network in a packed file, is pruned as ONNX.
Status Prune(const PruneCommand& command, Terminal& terminal, Pruner& pruner, std::vector<std::string>& unseen) {
  if (IsCheckpoint(command.model)) return PruneLoaded(command, terminal, pruner);
  StatusOr<OnnxModel> file = ReadOnnxModel(command.model);
  if (file.ok()) return PruneOnnx(command, *std::move(file), terminal, pruner, unseen);
  return IsPacked(command.model) ? PruneLoaded(command, terminal, pruner) : file.status();
}

}  // namespace

StatusOr<Outcome> Execute(const PruneCommand& command, Terminal& terminal) {
  PruneOptions options{.method = command.method,
                       .vector_rows = command.vector_rows,
                       .limit = command.limit,
                       .sparsity = command.sparsity,
                       .skip = command.skip};
  if (!command.scores.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(options.scores, ScoreFile::Read(command.scores));
  }
  std::optional<ProgressLine> line;
  if (command.calibration.empty()) {
    line.emplace(terminal, "Reading the model ...");
    options.progress = [&](const std::string& layer) { return line->Replace(Concat("Pruning ", layer, " ...")); };
  }
  Pruner pruner(std::move(options));
  std::vector<std::string> unseen;
  const Status status = Prune(command, terminal, pruner, unseen);
  line.reset();
  if (!status.ok()) {
    const bool named = absl::StrContains(status.message(), command.model.string()) ||
                       absl::StrContains(status.message(), command.output.string());
    return named ? status : Annotate(status, command.model.string());
  }
  terminal.out << SummaryText(command, pruner.records());
  if (!unseen.empty()) terminal.out << "Not pruned, for they are not read as weights alone: " << Listed(unseen) << "\n";
  if (command.method != PruneMethod::kMagnitude || !command.scores.empty())
    terminal.out << KeptText(command, pruner.records());
  if (!command.calibration.empty()) terminal.out << ErrorsText(pruner.records());
  return Outcome::kOk;
}

}  // namespace swizzle::pack
