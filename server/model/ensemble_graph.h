// How the models of an ensemble are connected: what the outputs of one are the inputs of others.
//
// Tensors of an ensemble have names of their own; each is an input of the ensemble, or made by one step. A step runs as
// soon as what it reads is there. These are Triton's ensembles, with its rules. Free functions, thread-safe.
#ifndef SWIZZLE_SERVER_MODEL_ENSEMBLE_GRAPH_H_
#define SWIZZLE_SERVER_MODEL_ENSEMBLE_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "server/model/model.h"

namespace swizzle {

// A step as a configuration says it.
struct EnsembleStep {
  std::string model;
  int64_t version = 0;                         // 0: the latest
  std::map<std::string, std::string> inputs;   // tensors of the ensemble, by the model's inputs
  std::map<std::string, std::string> outputs;  // likewise, by its outputs

  // The version as ModelRepository::Find takes it.
  std::string VersionText() const { return version == 0 ? "" : std::to_string(version); }
};

struct EnsembleGraph {
  // A tensor's number; none: an input has its default, an output is not read.
  using Port = std::optional<size_t>;
  struct Step {
    std::vector<Port> inputs;   // in the order of the model's inputs
    std::vector<Port> outputs;  // in the order of the model's outputs
    std::vector<size_t> reads;  // the tensors of `inputs`, each once
  };
  struct Tensor {
    std::string name;
    std::vector<size_t> readers;   // steps
    std::optional<size_t> output;  // of the ensemble, which it is
  };

  std::vector<Step> steps;
  std::vector<Tensor> tensors;  // the ensemble's inputs first, in their order
};

// Connects `steps`, whose models have these specifications, to the ensemble, whose specification its configuration
// gives. INVALID_ARGUMENT naming what is missing, made twice, of another type or shape, not read, or comes back to
// itself; UNIMPLEMENTED for a decoupled model.
StatusOr<EnsembleGraph> ConnectSteps(const ModelSpec& ensemble, std::span<const EnsembleStep> steps,
                                     std::span<const ModelSpec* const> models);

// The output of a step that the ensemble's output is. REQUIRES: ConnectSteps succeeded for `graph`.
struct StepOutput {
  size_t step, output;
};
StepOutput MakerOf(const EnsembleGraph& graph, size_t ensemble_output);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_ENSEMBLE_GRAPH_H_
