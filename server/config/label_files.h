// What classes of a model's outputs are called: files of one label a line, which config.pbtxt names. Functions only.
#ifndef SWIZZLE_SERVER_CONFIG_LABEL_FILES_H_
#define SWIZZLE_SERVER_CONFIG_LABEL_FILES_H_

#include <filesystem>
#include <vector>

#include "kernels/base/status.h"
#include "proto/model_config.pb.h"
#include "server/config/config_fields.h"
#include "server/model/model.h"

namespace swizzle {

// Gives outputs of `spec` the labels of the files that `config` names, which lie in `folder`, the model's, as regular
// files. A file that is not there leaves its output without labels, and is a notice; INVALID_ARGUMENT, and the like,
// naming the output, for what else is wrong: a path that leads out of the folder, a file or a label that is too long.
StatusOr<std::vector<ConfigNotice>> ReadLabels(const std::filesystem::path& folder,
                                               const inference::ModelConfig& config, ModelSpec& spec);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_LABEL_FILES_H_
