// config.pbtxt: read and checked. What it may say is in the tables of config_fields.h and config_parameters.h, and
// every number has a range.
#ifndef SWIZZLE_SERVER_CONFIG_MODEL_CONFIG_H_
#define SWIZZLE_SERVER_CONFIG_MODEL_CONFIG_H_

#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "proto/model_config.pb.h"
#include "server/config/config_fields.h"

namespace swizzle {

// Parses and checks the text of config.pbtxt of the model `name`. INVALID_ARGUMENT with the line, or the field, that
// is wrong; UNIMPLEMENTED, with what to do instead, for a field that is known and refused.
StatusOr<inference::ModelConfig> ParseModelConfig(std::string_view text, std::string_view name);

// Likewise of JSON, as requests to load a model bring it.
StatusOr<inference::ModelConfig> ParseModelConfigJson(std::string_view text, std::string_view name);

// What of a file changes nothing. REQUIRES: `config` is ParseModelConfig's.
std::vector<ConfigNotice> NoticesOf(const inference::ModelConfig& config);

// The GPUs that a model is to run on, by CUDA's numbers, ascending; none: on all that the server has. REQUIRES: as
// above.
std::vector<int> NamedGpus(const inference::ModelConfig& config);

// How many executors the model is to have on each device; 0: nothing says so. REQUIRES: as above.
int ExecutorsOnEach(const inference::ModelConfig& config);

// Whether `config` asks for `backend: "identity"`.
bool IsIdentity(const inference::ModelConfig& config);

// Whether it is a model made of others.
bool IsEnsemble(const inference::ModelConfig& config);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_MODEL_CONFIG_H_
