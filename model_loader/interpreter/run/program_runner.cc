#include "model_loader/interpreter/run/program_runner.h"

namespace swizzle::interpreter {

size_t TensorPieces::bytes() const {
  size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  return bytes;
}

StatusOr<std::vector<Array>> ProgramRunner::Run(std::span<const TensorView> inputs) {
  std::vector<TensorPieces> pieces;
  for (const TensorView& input : inputs) pieces.push_back({input.dtype, input.shape, {input.bytes}});
  return RunPieces(pieces);
}

StatusOr<std::vector<Array>> HostProgramRunner::RunPieces(std::span<const TensorPieces> inputs) {
  joined_.resize(inputs.size());
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& [dtype, shape, pieces, is_pinned] = inputs[i];
    if (pieces.size() == 1) {
      views.push_back({dtype, shape, pieces[0]});
      continue;
    }
    joined_[i].clear();
    joined_[i].reserve(inputs[i].bytes());
    for (const auto& piece : pieces) joined_[i].insert(joined_[i].end(), piece.begin(), piece.end());
    views.push_back({dtype, shape, joined_[i]});
  }
  return program_->Run(views, *stream_, limits_, nullptr, supplies_);
}

}  // namespace swizzle::interpreter
