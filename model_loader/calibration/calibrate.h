// Prunes an ONNX model while the interpreter runs it on calibration data: each layer when its turn comes, on what the
// layers before it give now that they are pruned, as SparseGPT does. A weight that several nodes read is compensated
// for all of them: at the first one's turn, for the others on what the whole model gave them.
//
// What is done is kept in a folder, so that a run that was interrupted goes on where it was.
#ifndef SWIZZLE_MODEL_LOADER_CALIBRATION_CALIBRATE_H_
#define SWIZZLE_MODEL_LOADER_CALIBRATION_CALIBRATE_H_

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/files/npz.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/pruning/pruner.h"

namespace swizzle {

// An ONNX weight with its elements, or one of a checkpoint.
struct NamedWeight {
  OnnxWeight weight;
  std::vector<float> elements;
  bool of_checkpoint = false;  // whose shape, for scores, is [outputs, inputs]
};

struct CalibrationRun {
  const interpreter::Program& program;
  const NpyArrays& inputs;  // by name of the model's inputs
  Stream& stream;           // of the CPU backend
  // Where layers that are done are kept, for this run alone: of another model, other data or another method they would
  // be wrong. Empty: nowhere.
  std::filesystem::path folder;
  // Told of each layer before it is pruned: how many are done, and its name. May end the run by an error.
  std::function<Status(size_t done, const std::string& layer)> progress;
};

// Prunes `weights` in place, each at the first node that reads it. INVALID_ARGUMENT where inputs are missing, or too
// many, have no rows, or do not fit the model, or make numbers that are not finite; UNIMPLEMENTED for a weight that is
// read both ways; what MomentsOf refuses, naming the node; errors of files.
Status PruneCalibrated(const CalibrationRun& run, std::vector<NamedWeight>& weights, Pruner& pruner);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_CALIBRATION_CALIBRATE_H_
