#include "model_loader/plan/run/model_runner.h"

namespace swizzle {

size_t TensorPieces::bytes() const {
  size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  return bytes;
}

StatusOr<std::vector<TensorView>> ModelRunner::RunPieces(std::span<const TensorPieces> inputs) {
  const int64_t rows = inputs.empty() || inputs[0].shape.empty() ? 1 : inputs[0].shape[0];
  SWIZZLE_ASSIGN_OR_RETURN(PartOutputs outputs, RunPart(inputs, {0, rows, rows}));
  return std::move(outputs.views);
}

StatusOr<std::vector<TensorView>> ModelRunner::RunViews(std::span<const TensorView> inputs) {
  std::vector<TensorPieces> pieces;
  for (const TensorView& input : inputs) pieces.push_back({input.dtype, input.shape, {input.bytes}});
  return RunPieces(pieces);
}

}  // namespace swizzle
