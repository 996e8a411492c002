// What a model calls the free dimensions of its inputs: those of one name have one size in every request.
//
// Value types.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_AXIS_NAMES_H_
#define SWIZZLE_MODEL_LOADER_ONNX_AXIS_NAMES_H_

#include <map>
#include <string>
#include <vector>

#include "model_loader/onnx/onnx_reader.h"

namespace swizzle {

// By the input's name, one for each dimension: empty where it has a size, or no name.
using AxisNames = std::map<std::string, std::vector<std::string>>;

// ReadOnnx, which puts the names of all inputs with shapes into `names`.
StatusOr<Graph> ReadOnnx(const OnnxSource& model, const ReadOptions& options, AxisNames& names);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_AXIS_NAMES_H_
