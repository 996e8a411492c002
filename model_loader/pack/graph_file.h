// Files of models that run in regions: what the tool makes of one is an ONNX model, and becomes a file of either kind.
#ifndef SWIZZLE_MODEL_LOADER_PACK_GRAPH_FILE_H_
#define SWIZZLE_MODEL_LOADER_PACK_GRAPH_FILE_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "model_loader/load/loader.h"
#include "model_loader/pack/format_change.h"
#include "model_loader/packed/packed_graph.h"

namespace swizzle::pack {

struct GraphPacking {
  PackedGraph graph;
  FormatRefusals refusals;
  FormatCosts costs;  // of all tensors; none where nobody asked
};

// Weights that layers multiply with, FP32, halves, INT8 or UINT8, are matrices in formats of weights where those are
// asked for by name, or where they take less; zeros of sparse ones lose their sign. `format`: as --format takes it.
// Zeros of inputs are the model's. Errors are those of DetachInitializers (onnx/onnx_rewrite.h).
StatusOr<GraphPacking> PackedGraphOf(const OnnxModel& model, const std::string& format = "auto",
                                     bool with_costs = false);

// What the tensors of a model would take in each format, as PackedGraphOf says, which are not kept.
StatusOr<FormatCosts> CostsOfFormats(const OnnxModel& model);

// Packed where `file` ends in .swz, else as it is. REQUIRES: nothing of the model is external.
Status WriteGraph(std::span<const std::byte> model, const std::filesystem::path& file);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_GRAPH_FILE_H_
