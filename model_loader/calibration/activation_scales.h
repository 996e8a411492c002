// The whole numbers of a graph's activations, whatever graph it is: the interpreter runs it node by node on calibration
// data, some rows at a time, once for ranges and once for the values within (quantising/observer.h).
#ifndef SWIZZLE_MODEL_LOADER_CALIBRATION_ACTIVATION_SCALES_H_
#define SWIZZLE_MODEL_LOADER_CALIBRATION_ACTIVATION_SCALES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/calibration/calibration_runs.h"
#include "model_loader/files/npz.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/quantising/observer.h"

namespace swizzle {

struct ActivationScale {
  Quantised as;
  double decibels = 0.0;             // of what was seen, signal to noise
  std::vector<double> plane_means;   // of what was seen, by channel of dimension 1; empty where there is none
  std::vector<double> vector_means;  // of the last
  Shape plane;                       // what follows dimension 1
};

struct ScaleChoice {
  ObserverKind observer = ObserverKind::kMinMax;
  std::function<bool(const std::string&)> skips;  // whether a layer of this name stays real
  CalibrationProgress progress;                   // told of each round
};

// Of each value that is rounded (roundings.h), by its name. Those of one scale have one for all of them.
// Errors are those of RowBatches (row_batches.h) and of a run on a stream of the CPU backend.
StatusOr<std::map<std::string, ActivationScale>> ChooseActivationScales(const interpreter::Program& program,
                                                                        const NpyArrays& inputs, Stream& stream,
                                                                        const ScaleChoice& choice);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_CALIBRATION_ACTIVATION_SCALES_H_
