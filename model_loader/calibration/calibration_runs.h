// Runs a graph node by node on calibration data, some rows at a time, and shows what its nodes read.
#ifndef SWIZZLE_MODEL_LOADER_CALIBRATION_CALIBRATION_RUNS_H_
#define SWIZZLE_MODEL_LOADER_CALIBRATION_CALIBRATION_RUNS_H_

#include <functional>
#include <set>
#include <span>
#include <string>

#include "model_loader/calibration/row_batches.h"
#include "model_loader/interpreter/run/executor.h"

namespace swizzle {

// Told of each batch before it runs; an error ends the work.
using CalibrationProgress = std::function<Status(const std::string&)>;

// Single-owner.
class CalibrationRuns {
 public:
  // Batches of so many rows where the model takes those: their activations are held at once. Errors are those of
  // RowBatches. The program, the arrays, and the stream, which is of the CPU backend, outlive it.
  static StatusOr<CalibrationRuns> Of(const interpreter::Program& program, const NpyArrays& inputs, Stream& stream,
                                      CalibrationProgress progress);

  // Whether a value is the same in every run: it is a constant, or made of constants alone.
  bool IsConstant(int value) const { return constants_.contains(value); }

  // Runs all batches. Calls see(node, given) with the inputs of each node before it runs, and begin() before each
  // batch. Errors are those of a run.
  Status Run(const std::string& round, const std::function<void()>& begin,
             const std::function<void(const Node&, std::span<interpreter::Array>)>& see) const;

 private:
  CalibrationRuns(const interpreter::Program& program, RowBatches batches, Stream& stream,
                  CalibrationProgress progress);

  const interpreter::Program* program_;
  RowBatches batches_;
  Stream* stream_;
  CalibrationProgress progress_;
  std::set<int> constants_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_CALIBRATION_CALIBRATION_RUNS_H_
