// config.pbtxt: what it may say, and what becomes of it.
//
// Honoured: name, platform and backend (swizzle, identity, and the names by which Triton's ONNX Runtime back end goes),
// max_batch_size, input and output {name, data_type, dims}, instance_group {count, kind AUTO, CPU or GPU},
// dynamic_batching {preferred_batch_size, max_queue_delay_microseconds, default_queue_policy
// {default_timeout_microseconds, allow_timeout_override, max_queue_size}} and parameters: execute_delay_ms, for the
// identity back end; max_batch_tokens and compute_masked, for models of token sequences; precision,
// for models on a GPU. Every other field is refused by its name, and every number has a range.
//
// A file that sets max_batch_size and no dynamic_batching gets no batching by the server, as in Triton; in a file that
// does not set it, and with no file at all, batching is on.
#ifndef SWIZZLE_SERVER_CONFIG_MODEL_CONFIG_H_
#define SWIZZLE_SERVER_CONFIG_MODEL_CONFIG_H_

#include <string_view>

#include "absl/time/time.h"
#include "kernels/base/status.h"
#include "proto/model_config.pb.h"
#include "server/model/model.h"

namespace swizzle {

// Parses and checks the text of config.pbtxt of the model `name`. INVALID_ARGUMENT with the line, or the field, that
// is wrong; UNIMPLEMENTED for a field that is known and not honoured.
StatusOr<inference::ModelConfig> ParseModelConfig(std::string_view text, std::string_view name);

// Whether `config` asks for `backend: "identity"`.
bool IsIdentity(const inference::ModelConfig& config);

// The specification of an identity model; all of it comes from `config`.
StatusOr<ModelSpec> IdentitySpec(const inference::ModelConfig& config, std::string_view name, int64_t version);
absl::Duration ExecuteDelay(const inference::ModelConfig& config);

// `derived`, the specification of a model file, as `config` changes it. INVALID_ARGUMENT naming the tensor where the
// two contradict each other in names, datatypes, dims or the batch dimension.
StatusOr<ModelSpec> ConfigureSpec(const inference::ModelConfig& config, ModelSpec derived);

// The whole configuration that `spec` serves with; a config.pbtxt that says the same. `given` is the file's content,
// or a default instance.
inference::ModelConfig ConfigOf(const ModelSpec& spec, const inference::ModelConfig& given);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_MODEL_CONFIG_H_
