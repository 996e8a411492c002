// Where the weights of an ONNX graph's layers are, and what is left of them once layers read others: for writers that
// quantise a file's own graph. Internal to model_loader/onnx.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_WEIGHT_SOURCES_H_
#define SWIZZLE_MODEL_LOADER_ONNX_WEIGHT_SOURCES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "model_loader/onnx/graph_additions.h"
#include "onnx/onnx.pb.h"

namespace swizzle {

// An attribute that is a number.
double NumberOf(const onnx::NodeProto& node, const char* name, double absent);

// Of the standard's operators; 0 where the model names none.
int64_t OpsetOf(const onnx::ModelProto& model);

// What a name stands for: an initializer, or, behind a Transpose, the same with its dimensions swapped.
struct WeightSource {
  int initializer = 0;
  bool is_turned = false;
};

// FP32 tensors of so many dimensions, or more, that Constant nodes hold become initializers.
void TakeConstants(onnx::GraphProto& graph, int least_rank);

// By name, and by those of nodes that give a matrix another name or turn it. `additions` is told of all names.
std::map<std::string, WeightSource> FindWeightSources(const onnx::GraphProto& graph, GraphAdditions& additions);

// Weights that were replaced and that nothing reads any more go, with what only names them, and with the inputs that
// old files have of their names.
void DropUnread(onnx::GraphProto& graph, const std::map<std::string, WeightSource>& sources,
                const std::function<bool(int initializer)>& was_replaced);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_WEIGHT_SOURCES_H_
