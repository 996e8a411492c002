// What the layers of an ONNX graph read on calibration data, whatever graph it is: the interpreter runs it node by
// node, once for ranges and once for the values within (quantising/observer.h).
#ifndef SWIZZLE_MODEL_LOADER_CALIBRATION_OBSERVE_INPUTS_H_
#define SWIZZLE_MODEL_LOADER_CALIBRATION_OBSERVE_INPUTS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/fallback/executor.h"
#include "model_loader/files/npz.h"
#include "model_loader/quantising/observer.h"

namespace swizzle {

// The program's inputs among these arrays, in its order. INVALID_ARGUMENT where one is missing, or one is too many.
StatusOr<std::vector<TensorView>> CalibrationInputs(const fallback::Program& program, const NpyArrays& inputs);

// Of each FP32 value that a Conv, Gemm or MatMul multiplies with a constant, by the value's name. `progress` is told of
// each round. Errors are those of CalibrationInputs and of a run on a stream of the CPU backend.
StatusOr<std::map<std::string, Observer>> ObserveLayerInputs(const fallback::Program& program, const NpyArrays& inputs,
                                                             Stream& stream,
                                                             const std::function<void(const char*)>& progress);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_CALIBRATION_OBSERVE_INPUTS_H_
