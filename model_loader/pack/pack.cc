#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/format_costs.h"
#include "model_loader/pack/graph_file.h"
#include "model_loader/pack/progress_line.h"
#include "model_loader/pack/seen_values.h"
#include "model_loader/pack/text_table.h"
#include "model_loader/packed/packed_writer.h"

namespace swizzle::pack {
namespace {

// What kept its format although another was asked for.
struct Refusals {
  int64_t layers = 0, of = 0;
  Status first = {};
};

// The weight in the format of the fewest bytes among those that it may have; why the last cannot where none holds it.
StatusOr<WeightMatrix> Smallest(Weight weight, std::span<const Format> formats) {
  const DenseMatrix dense = weight.ToDense();
  std::optional<WeightMatrix> best;
  size_t least = 0;  // bytes
  Status refused = InvalidArgument("no sparse format holds it");
  for (const Format format : formats) {
    StatusOr<WeightMatrix> made = WeightMatrix::FromDense(format, dense);
    if (!made.ok()) {
      refused = made.status();
      continue;
    }
    weight.matrix = *made;
    const size_t bytes = weight.StoredBytes();  // values take one byte where they are whole numbers
    if (!best || bytes < least) best = *std::move(made), least = bytes;
  }
  if (best) return *std::move(best);
  return refused;
}

// Of sparse weights with values; others keep their format, and those that none of the formats holds.
Refusals ChangeFormats(Network& network, const std::string& asked) {
  Refusals refusals;
  std::set<int> seen;
  for (const Layer& layer : network.layers) {
    if (layer.weight < 0 || !seen.insert(layer.weight).second) continue;
    Weight& weight = network.weights[layer.weight];
    if (!IsSparse(weight.format()) || !HasValues(weight.format())) continue;
    const std::optional<Format> named = FormatFromName(asked);
    const std::vector<Format> formats = named ? std::vector{*named} : FormatsToPackIn(layer, weight.matrix);
    ++refusals.of;
    StatusOr<WeightMatrix> made = Smallest(weight, formats);
    if (made.ok()) {
      weight.matrix = *std::move(made);
    } else if (named && refusals.layers++ == 0) {
      refusals.first = made.status();
    }
  }
  return refusals;
}

// How many values' zeros were counted.
StatusOr<size_t> CountZeros(const PackCommand& command, Network& network) {
  if (command.calibration.empty()) return 0;
  const std::unique_ptr<Backend> cpu = NewCpuBackend();
  SWIZZLE_ASSIGN_OR_RETURN(const SeenValues seen, SeeValues(network, command.calibration, *cpu, command.threads));
  KeepZeros(seen, network);
  return seen.size();
}

void PrintSizes(const PackCommand& command, int64_t dense_bytes, int64_t stored_bytes, std::ostream& out) {
  out << command.output.string() << ": weights " << BytesText(dense_bytes) << " dense, " << BytesText(stored_bytes)
      << " stored (" << RatioText(dense_bytes, stored_bytes) << " smaller)\n";
}

StatusOr<RunnableModel> Read(const PackCommand& command, Terminal& terminal) {
  ProgressLine line(terminal, "");
  SWIZZLE_RETURN_IF_ERROR(line.Replace("Reading the model ..."));
  return LoadRunnableModel(command.model);
}

// A network, or a graph.
template <typename Content>
Status Write(const Content& content, const PackCommand& command, Terminal& terminal) {
  ProgressLine line(terminal, "");
  SWIZZLE_RETURN_IF_ERROR(line.Replace("Writing the packed model ..."));
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  return WritePacked(content, command.output);
}

// A model that runs in regions: whose layers are cut out of its graph where it is served.
StatusOr<Outcome> PackGraph(const PackCommand& command, Terminal& terminal) {
  if (command.format != "auto") {
    return Unimplemented(
        "--format is for models that are planned whole; this one runs in regions, and is packed as a "
        "graph, whose zeros are left out");
  }
  if (!command.calibration.empty()) {
    return Unimplemented("--calibration is for models that are planned whole; this one runs in regions");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const OnnxModel onnx, ReadOnnxModel(command.model));
  SWIZZLE_ASSIGN_OR_RETURN(const PackedGraph graph, PackedGraphOf(onnx));
  if (graph.dense_bytes() > LoadLimits().external_bytes) {
    return MakeError(StatusCode::kResourceExhausted, "its weights take ", graph.dense_bytes(),
                     " bytes; readers of packed graphs take at most ", LoadLimits().external_bytes);
  }
  SWIZZLE_RETURN_IF_ERROR(Write(graph, command, terminal));
  PrintSizes(command, graph.dense_bytes(), graph.stored_bytes(), terminal.out);
  return Outcome::kOk;
}

}  // namespace

StatusOr<Outcome> Execute(const PackCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel runnable, Read(command, terminal));
  if (const auto* const unplanned = std::get_if<ProgramModel>(&runnable)) {
    if (unplanned->container == "safetensors") {
      return Unimplemented(command.model.string(),
                           ": this checkpoint runs in regions, and cannot be packed: ", unplanned->reason);
    }
    StatusOr<Outcome> outcome = PackGraph(command, terminal);
    if (!outcome.ok()) return Annotate(outcome.status(), command.model.string());
    return outcome;
  }
  auto& model = std::get<LoadedModel>(runnable);
  SWIZZLE_ASSIGN_OR_RETURN(const size_t counted, CountZeros(command, model.network));
  const Refusals refusals = ChangeFormats(model.network, command.format);
  SWIZZLE_RETURN_IF_ERROR(Write(model.network, command, terminal));
  const int64_t stored_bytes = model.network.StoredWeightBytes();
  PrintSizes(command, model.network.DenseWeightBytes(), stored_bytes, terminal.out);
  if (!command.calibration.empty()) {
    terminal.out << "counted the zeros of what layers with sparse weights read: " << counted << " values\n";
  }
  // A named format may be far from what it is for: blocks of scattered zeros are mostly filling.
  if (const FormatCosts costs = CostsOfFormats(model.network); !costs.formats.empty()) {
    const int64_t least = costs.formats.back().bytes;
    if (2 * stored_bytes > 3 * least) {
      terminal.out << "--format=auto would take " << BytesText(least)
                   << "; which kernels are candidates does not depend on the file's format\n";
    }
  }
  if (refusals.layers > 0) {
    terminal.out << refusals.layers << " of " << refusals.of << " sparse layers cannot be stored as " << command.format
                 << " and keep their format; the first: " << refusals.first.message() << "\n";
  }
  return Outcome::kOk;
}

}  // namespace swizzle::pack
