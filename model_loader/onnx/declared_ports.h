// What a model's file says of the inputs and outputs of its graph, and what else is known of them. Internal to
// model_loader/onnx.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_DECLARED_PORTS_H_
#define SWIZZLE_MODEL_LOADER_ONNX_DECLARED_PORTS_H_

#include <map>
#include <string>

#include "model_loader/expansions/value_facts.h"
#include "model_loader/graph/graph.h"
#include "model_loader/onnx/onnx_reader.h"
#include "onnx/onnx.pb.h"

namespace swizzle {

// As the file declares it, and, where it doesn't, as `known` does. UNIMPLEMENTED for what is no tensor, or of a type
// that no tensor here can have; INVALID_ARGUMENT for dimensions that are none. Errors begin with `what`.
StatusOr<DeclaredPort> ReadPort(const onnx::ValueInfoProto& info, const std::string& what,
                                const std::map<std::string, DeclaredPort>& known);

// What the file says of values between nodes; what it says wrongly is left out.
expansions::Hints ReadHints(const onnx::GraphProto& graph);

// The input of a graph that plans are made of: FP32 or bytes, of which dimension 0 alone may be free.
Status TakePlannedInput(const DeclaredPort& port, const std::string& what, Value& input);

// Whether one of the graph's inputs is a matrix of whole numbers, as the ids of tokens are.
bool HasSequences(const onnx::GraphProto& graph);

// Sets what the inputs of a graph of token sequences have in common.
Status ReadSequences(Graph& graph);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_DECLARED_PORTS_H_
