// The file config.pbtxt of a model. Functions only.
#ifndef SWIZZLE_SERVER_CONFIG_CONFIG_FILE_H_
#define SWIZZLE_SERVER_CONFIG_CONFIG_FILE_H_

#include <filesystem>
#include <optional>
#include <string_view>

#include "kernels/base/status.h"
#include "proto/model_config.pb.h"

namespace swizzle {

// What ParseModelConfig makes of `folder`/config.pbtxt; nothing if there is none. What is there and cannot be read, a
// link that leads nowhere, too, is an error: the model must not serve without the limits that it was to have.
StatusOr<std::optional<inference::ModelConfig>> ReadModelConfig(const std::filesystem::path& folder,
                                                                std::string_view name);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_CONFIG_FILE_H_
