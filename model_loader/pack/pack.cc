#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/format_change.h"
#include "model_loader/pack/graph_file.h"
#include "model_loader/pack/progress_line.h"
#include "model_loader/pack/seen_values.h"
#include "model_loader/pack/text_table.h"
#include "model_loader/packed/packed_writer.h"

namespace swizzle::pack {
namespace {

// How many values' zeros were counted.
StatusOr<size_t> CountZeros(const PackCommand& command, Network& network) {
  if (command.calibration.empty()) return 0;
  const std::unique_ptr<Backend> cpu = NewCpuBackend();
  SWIZZLE_ASSIGN_OR_RETURN(const SeenValues seen, SeeValues(network, command.calibration, *cpu, command.threads));
  KeepZeros(seen, network);
  return seen.size();
}

StatusOr<RunnableModel> Read(const PackCommand& command, Terminal& terminal) {
  ProgressLine line(terminal, "");
  SWIZZLE_RETURN_IF_ERROR(line.Replace("Reading the model ..."));
  return LoadRunnableModel(command.model);
}

// A network, or a graph.
template <typename Content>
Status Write(Content&& content, const PackCommand& command, Terminal& terminal) {
  ProgressLine line(terminal, "");
  SWIZZLE_RETURN_IF_ERROR(line.Replace("Writing the packed model ..."));
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  return WritePacked(std::forward<Content>(content), command.output);
}

// Whether the format may take more than another: else nobody has to know what the others take.
bool IsNamed(const PackCommand& command) { return command.format != "auto"; }

// What came of it, for the terminal.
struct Packing {
  int64_t dense_bytes = 0, stored_bytes = 0;
  size_t counted = 0;  // values whose zeros were
  FormatCosts costs;
  FormatRefusals refusals;
};

StatusOr<Packing> PackNetwork(const PackCommand& command, Network network, Terminal& terminal) {
  Packing packing;
  SWIZZLE_ASSIGN_OR_RETURN(packing.counted, CountZeros(command, network));
  packing.refusals = ChangeFormats(network, command.format);
  SWIZZLE_RETURN_IF_ERROR(Write(network, command, terminal));
  packing.dense_bytes = network.DenseWeightBytes();
  packing.stored_bytes = network.StoredWeightBytes();
  if (IsNamed(command)) packing.costs = CostsOfFormats(network);
  return packing;
}

// A model that runs in regions, whose layers are cut out of its graph where it is served.
StatusOr<Packing> PackGraph(const PackCommand& command, std::shared_ptr<const interpreter::Program> program,
                            Terminal& terminal) {
  std::map<std::string, SeenValue> seen;
  if (!command.calibration.empty()) {
    const std::unique_ptr<Backend> cpu = NewCpuBackend();
    SWIZZLE_ASSIGN_OR_RETURN(seen, SeeValues(*program, command.calibration, *cpu, command.threads));
  }
  program.reset();  // its weights are not held beside those that are packed
  SWIZZLE_ASSIGN_OR_RETURN(const OnnxModel onnx, OpenOnnxModel(command.model));
  SWIZZLE_ASSIGN_OR_RETURN(GraphPacking made, PackedGraphOf(onnx, command.format, IsNamed(command)));
  Packing packing{made.graph.dense_bytes(), made.graph.stored_bytes(), seen.size(), std::move(made.costs),
                  std::move(made.refusals)};
  if (packing.dense_bytes > LoadLimits().external_bytes) {
    return MakeError(StatusCode::kResourceExhausted, "its weights take ", packing.dense_bytes,
                     " bytes; readers of packed graphs take at most ", LoadLimits().external_bytes);
  }
  for (const auto& [value, of] : seen) made.graph.zeros[value] = of.zeros;
  SWIZZLE_RETURN_IF_ERROR(Write(std::move(made.graph), command, terminal));
  return packing;
}

StatusOr<Packing> Pack(const PackCommand& command, RunnableModel model, Terminal& terminal) {
  auto* const program = std::get_if<ProgramModel>(&model);
  if (program == nullptr) return PackNetwork(command, std::move(std::get<LoadedModel>(model).network), terminal);
  if (program->container == "safetensors") {
    return Unimplemented(command.model.string(),
                         ": this checkpoint runs in regions, and cannot be packed: ", program->reason);
  }
  StatusOr<Packing> packing = PackGraph(command, std::move(program->program), terminal);
  if (!packing.ok()) return Annotate(packing.status(), command.model.string());
  return packing;
}

}  // namespace

StatusOr<Outcome> Execute(const PackCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel model, Read(command, terminal));
  SWIZZLE_ASSIGN_OR_RETURN(const Packing packing, Pack(command, std::move(model), terminal));
  terminal.out << command.output.string() << ": weights " << BytesText(packing.dense_bytes) << " dense, "
               << BytesText(packing.stored_bytes) << " stored (" << RatioText(packing.dense_bytes, packing.stored_bytes)
               << " smaller)\n";
  if (!command.calibration.empty()) {
    terminal.out << "counted the zeros of what layers with sparse weights read: " << packing.counted << " values\n";
  }
  // A named format may be far from what it is for: blocks of scattered zeros are mostly filling.
  if (!packing.costs.formats.empty()) {
    const int64_t least = packing.costs.formats.back().bytes;
    if (2 * packing.stored_bytes > 3 * least) {
      terminal.out << "--format=auto would take " << BytesText(least)
                   << "; which kernels are candidates does not depend on the file's format\n";
    }
  }
  const FormatRefusals& refusals = packing.refusals;
  if (refusals.layers > 0) {
    terminal.out << refusals.layers << " of " << refusals.of << " sparse layers cannot be stored as " << command.format
                 << " and keep their format; the first: " << refusals.first.message() << "\n";
  }
  return Outcome::kOk;
}

}  // namespace swizzle::pack
