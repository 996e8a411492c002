#include <ostream>

#include "model_loader/files/atomic_file.h"
#include "model_loader/load/loader.h"
#include "model_loader/onnx/onnx_reader.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/text_table.h"
#include "model_loader/packed/packed_writer.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/pruning/pruner.h"
#include "model_loader/safetensors/checkpoint.h"

namespace swizzle::pack {
namespace {

bool IsPacked(const std::filesystem::path& file) { return file.extension() == ".swz"; }

StatusOr<Network> NetworkFromOnnx(std::span<const std::byte> model) {
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadOnnx(model));
  SWIZZLE_RETURN_IF_ERROR(RunPasses(graph));
  return Lower(std::move(graph));
}

Status PruneOnnx(const PruneCommand& command, Pruner& pruner) {
  const ReadOptions options = ReadOptionsFor(command.model);
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<std::byte> model, ReadFile(command.model, options.max_model_bytes));
  const auto prune = [&](const OnnxWeight& weight, std::span<float> elements) {
    pruner.Prune(weight.names, weight.shape, elements, weight.outputs_last);
  };
  SWIZZLE_ASSIGN_OR_RETURN(model, RewriteOnnxWeights(model, prune, options));
  SWIZZLE_RETURN_IF_ERROR(pruner.CheckResult());
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  if (!IsPacked(command.output)) return WriteFileAtomically(command.output, model);
  SWIZZLE_ASSIGN_OR_RETURN(const Network network, NetworkFromOnnx(model));
  return WritePacked(network, command.output);
}

// What is not ONNX: a packed model or a checkpoint.
Status PruneLoaded(const PruneCommand& command, Pruner& pruner) {
  if (!IsPacked(command.output)) {
    return InvalidArgument("a ", IsPacked(command.model) ? "packed model" : "checkpoint",
                           " cannot become ONNX: name an output that ends in .swz");
  }
  SWIZZLE_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(command.model));
  PruneNetwork(model.network, pruner);
  SWIZZLE_RETURN_IF_ERROR(pruner.CheckResult());
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  return WritePacked(model.network, command.output);
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

std::string SummaryText(const PruneCommand& command, const std::vector<PruneRecord>& records) {
  TextTable table({{"layer"},
                   {"weight", Align::kRight},
                   {"elements", Align::kRight},
                   {"zeros before", Align::kRight},
                   {"zeros after", Align::kRight},
                   {""}});
  PruneRecord total;
  for (const PruneRecord& record : records) {
    table.AddRow({record.name, ShapeText(record.shape), std::to_string(record.elements),
                  PercentText(Part(record.zeros_before, record.elements)),
                  PercentText(Part(record.zeros_after, record.elements)), record.skipped ? "skipped" : ""});
    total.elements += record.elements;
    total.zeros_before += record.zeros_before;
    total.zeros_after += record.zeros_after;
  }
  return Concat(table.Render(), "\n", command.output.string(), ": ", total.elements, " weights in ", records.size(),
                " layers, ", PercentText(Part(total.zeros_before, total.elements)), " zero before, ",
                PercentText(Part(total.zeros_after, total.elements)), " after\n");
}

}  // namespace

StatusOr<Outcome> Execute(const PruneCommand& command, Terminal& terminal) {
  Pruner pruner({.method = command.method,
                 .vector_rows = command.vector_rows,
                 .sparsity = command.sparsity,
                 .skip = command.skip});
  const bool loaded = IsPacked(command.model) || IsCheckpoint(command.model);
  const Status status = loaded ? PruneLoaded(command, pruner) : PruneOnnx(command, pruner);
  if (!status.ok()) return Annotate(status, command.model.string());
  terminal.out << SummaryText(command, pruner.records());
  if (command.method != PruneMethod::kMagnitude) terminal.out << KeptText(command, pruner.records());
  return Outcome::kOk;
}

}  // namespace swizzle::pack
