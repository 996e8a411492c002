// What becomes of a configuration: the specification that a model serves with, and the way back.
//
// A file that sets max_batch_size and no dynamic_batching gets no batching by the server, as in Triton; in a file that
// does not set it, and with no file at all, batching is on.
#ifndef SWIZZLE_SERVER_CONFIG_SERVED_SPEC_H_
#define SWIZZLE_SERVER_CONFIG_SERVED_SPEC_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/onnx/onnx_reader.h"
#include "proto/model_config.pb.h"
#include "server/model/ensemble_graph.h"
#include "server/model/model.h"

namespace swizzle {

// The platform that the server reports for a model out of such a container, "onnx", or of the identity back end.
std::string PlatformOf(std::string_view container);

// The specification of an identity model; all of it comes from `config`.
StatusOr<ModelSpec> IdentitySpec(const inference::ModelConfig& config, std::string_view name, int64_t version);

// The specification of an ensemble, which comes from `config` as well, and its steps in the file's order.
StatusOr<ModelSpec> EnsembleSpec(const inference::ModelConfig& config, std::string_view name, int64_t version);
std::vector<EnsembleStep> StepsOf(const inference::ModelConfig& config);

// What the file, if there is one, says of inputs and outputs, as a model's file would declare them. Nothing of tensors
// that ConfigureSpec refuses.
std::map<std::string, DeclaredPort> DeclaredPorts(const std::optional<inference::ModelConfig>& config);

// `derived`, the specification of a model file, as `config` changes it. INVALID_ARGUMENT naming the tensor where the
// two contradict each other in names, datatypes, dims or the batch dimension. `defaults` are what the model's file has
// of inputs that `config` calls optional.
StatusOr<ModelSpec> ConfigureSpec(const inference::ModelConfig& config, ModelSpec derived,
                                  const InputDefaults& defaults = {});

// The model is to run on so many devices of this kind. Where nothing says how many executors it has, the CPU has
// `cpu_executors`, and a GPU two: one's images are copied while the other's batch is computed. Sequences, whose copies
// are short, have one there.
void PlaceOn(InstanceKind kind, int device_count, int cpu_executors, ModelSpec& spec);

// The whole configuration that `spec` serves with; a config.pbtxt that says the same. `given` is the file's content,
// or a default instance.
inference::ModelConfig ConfigOf(const ModelSpec& spec, const inference::ModelConfig& given);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_SERVED_SPEC_H_
