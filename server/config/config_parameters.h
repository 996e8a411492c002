// `parameters` of config.pbtxt: a table of the keys there are, from which the check of a file and the page CONFIG.md
// follow. To add one, add its row, and what it does to ApplyParameters.
#ifndef SWIZZLE_SERVER_CONFIG_CONFIG_PARAMETERS_H_
#define SWIZZLE_SERVER_CONFIG_CONFIG_PARAMETERS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "kernels/base/status.h"
#include "model_loader/text/text_task.h"
#include "proto/model_config.pb.h"
#include "server/model/model.h"

namespace swizzle {

struct ConfigParameter {
  std::string_view key;
  std::string_view of;  // which models take it
  std::string_view meaning;
  Status (*check)(std::string_view key, const std::string& value);
};
std::span<const ConfigParameter> ConfigParameters();

// Parameters of Triton's backends for ONNX models. They say how, not what, is computed, and change nothing here.
struct OtherParameter {
  std::string_view backend;
  std::string_view key;  // where it ends in a dot: of all keys that begin so
};
std::span<const OtherParameter> OtherParameters();
// Null for other keys.
const OtherParameter* FindOtherParameter(std::string_view key);

// INVALID_ARGUMENT for a key that is in neither table, or a value that it can't have.
Status CheckParameters(const inference::ModelConfig& config);

// What the parameters make of the specification of a model file. INVALID_ARGUMENT where one is not for such a model.
Status ApplyParameters(const inference::ModelConfig& config, ModelSpec& spec);

// What the parameters make of the queue of any model.
Status ApplyQueueParameters(const inference::ModelConfig& config, ModelSpec& spec);

// What the model makes of texts, if it takes any; and has it so.
std::optional<text::TextTask> TextTaskIn(const inference::ModelConfig& config);
void SetTextTask(text::TextTask task, std::optional<inference::ModelConfig>& config);

// Of an identity model; zero where `config` doesn't say.
absl::Duration ExecuteDelay(const inference::ModelConfig& config);
// Answers to each request of a decoupled identity model; 1 where `config` doesn't say.
int64_t RepeatCount(const inference::ModelConfig& config);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_CONFIG_PARAMETERS_H_
