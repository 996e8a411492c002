#include "model_loader/pack/graph_file.h"

#include <utility>

#include "model_loader/files/atomic_file.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/packed/packed_graph.h"

namespace swizzle::pack {
namespace {

// What is smaller is scalars and shapes, which stay where they are read.
constexpr int64_t kLeastBytes = 256;

}  // namespace

StatusOr<PackedGraph> PackedGraphOf(const OnnxModel& model) {
  SWIZZLE_ASSIGN_OR_RETURN(DetachedModel detached, DetachInitializers(model.bytes, kLeastBytes, model.options));
  PackedGraph graph{std::move(detached.model), {}};
  for (Tensor& tensor : detached.tensors) {
    graph.tensors.push_back(Compressed(tensor.bytes, static_cast<int32_t>(ElementBytes(tensor.dtype))));
    tensor = {};
  }
  return graph;
}

Status WriteGraph(std::span<const std::byte> model, const std::filesystem::path& file) {
  if (file.extension() != ".swz") return WriteFileAtomically(file, model);
  SWIZZLE_ASSIGN_OR_RETURN(const PackedGraph graph, PackedGraphOf({{model.begin(), model.end()}, {}}));
  return WritePacked(graph, file);
}

bool HoldsGraph(const std::filesystem::path& file) { return file.extension() == ".swz" && ReadOnnxModel(file).ok(); }

}  // namespace swizzle::pack
