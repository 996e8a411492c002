#include "model_loader/interpreter/run/program_runner.h"

namespace swizzle::interpreter {

StatusOr<std::vector<Array>> ProgramRunner::Run(std::span<const TensorView> inputs) {
  std::vector<TensorPieces> pieces;
  for (const TensorView& input : inputs) pieces.push_back({input.dtype, input.shape, {input.bytes}});
  return RunArrays(pieces);
}

// Nothing is left for the last part.
StatusOr<PartOutputs> ProgramRunner::RunPart(std::span<const TensorPieces> inputs, const BatchPart& part) {
  shown_.clear();
  SWIZZLE_ASSIGN_OR_RETURN(shown_, RunArrays(inputs));
  std::vector<TensorView> views;
  views.reserve(shown_.size());
  for (const Array& output : shown_) views.push_back({output.dtype, output.shape, output.AsBytes()});
  return PartOutputs{std::move(views), part.first, part.rows};
}

StatusOr<std::vector<Array>> HostProgramRunner::RunArrays(std::span<const TensorPieces> inputs) {
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
