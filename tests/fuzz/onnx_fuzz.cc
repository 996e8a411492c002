// ONNX files from the reader through every pass to a network, and through the rewriting of their weights. Nothing is
// planned or run. External data is looked for in a folder with one file, `data`, of 64 bytes.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>

#include "model_loader/onnx/onnx_reader.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

// Small limits, so that time goes into many inputs instead of few large tensors.
ReadOptions SmallLimits() {
  static const TemporaryFolder folder;
  std::ofstream(folder / "data", std::ios::binary) << std::string(64, '\1');
  ReadOptions options;
  options.max_tensor_bytes = 1 << 20;
  options.max_external_bytes = 1 << 20;
  options.max_sparse_bytes = 1 << 20;
  options.external_folder.path = folder.path();
  return options;
}

StatusOr<Network> Load(std::span<const std::byte> file, const ReadOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadOnnx(file, options));
  SWIZZLE_RETURN_IF_ERROR(RunPasses(graph));
  return Lower(std::move(graph));
}

template <typename Result>
void Check(const Result& result) {
  SWIZZLE_CHECK(result.ok() || !result.status().message().empty());
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const swizzle::ReadOptions options = swizzle::SmallLimits();
  const auto file = std::as_bytes(std::span(data, size));
  swizzle::Check(swizzle::Load(file, options));
  const auto negate = [](const swizzle::OnnxWeight&, std::span<float> weight) {
    for (float& element : weight) element = -element;
  };
  swizzle::Check(swizzle::RewriteOnnxWeights(file, negate, options));
  return 0;
}
