#include "model_loader/calibration/calibration_runs.h"

#include <algorithm>
#include <utility>

namespace swizzle {
namespace {

// The activations of so many are held at once.
constexpr int64_t kRowsAtOnce = 8;

}  // namespace

StatusOr<CalibrationRuns> CalibrationRuns::Of(const interpreter::Program& program, const NpyArrays& inputs,
                                              Stream& stream, CalibrationProgress progress) {
  StatusOr<RowBatches> batches = RowBatches::Of(InterfaceOf(program), inputs, kRowsAtOnce);
  if (!batches.ok()) return Annotate(batches.status(), "calibration");
  return CalibrationRuns(program, *std::move(batches), stream, std::move(progress));
}

CalibrationRuns::CalibrationRuns(const interpreter::Program& program, RowBatches batches, Stream& stream,
                                 CalibrationProgress progress)
    : program_(&program), batches_(std::move(batches)), stream_(&stream), progress_(std::move(progress)) {
  for (const auto& [value, elements] : program.constants()) constants_.insert(value);
  const auto is_constant = [&](int input) { return input == kNoValue || constants_.contains(input); };
  for (const Node& node : program.graph().nodes) {
    if (std::ranges::all_of(node.inputs, is_constant)) constants_.insert(node.outputs.begin(), node.outputs.end());
  }
}

Status CalibrationRuns::Run(const std::string& round, const std::function<void()>& begin,
                            const std::function<void(const Node&, std::span<interpreter::Array>)>& see) const {
  const interpreter::Limits limits{.max_array_bytes = int64_t{1} << 34, .max_live_bytes = int64_t{1} << 36};
  const auto watch = [&](const Node& node, std::span<interpreter::Array> given, interpreter::Memory&, Stream&) {
    see(node, given);
    return Status();
  };
  for (int64_t batch = 0; batch < batches_.size(); ++batch) {
    SWIZZLE_RETURN_IF_ERROR(progress_(Concat(round, ": batch ", batch + 1, " of ", batches_.size())));
    begin();
    SWIZZLE_RETURN_IF_ERROR(program_->Run(batches_.Batch(batch), *stream_, limits, watch).status());
  }
  return {};
}

}  // namespace swizzle
