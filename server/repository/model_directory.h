// What lies in a model repository: which of its folders are models, and of one model which version and file is served.
// Free functions, thread-safe.
#ifndef SWIZZLE_SERVER_REPOSITORY_MODEL_DIRECTORY_H_
#define SWIZZLE_SERVER_REPOSITORY_MODEL_DIRECTORY_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "proto/model_config.pb.h"
#include "server/repository/model_place.h"

namespace swizzle {

// A positive integer in plain decimal: "1", "20260101".
std::optional<int64_t> ParseVersion(std::string_view text);

// The directories in `directory`, sorted. Links are followed.
StatusOr<std::vector<std::filesystem::path>> Subdirectories(const std::filesystem::path& directory);

// Whether a folder of this name is a file system's, a storage box's or a tool's, and nobody meant it for a model:
// lost+found at the root of a volume, .git, @eaDir, what Kubernetes mounts beside its links. REQUIRES: not empty.
bool IsNoModel(std::string_view folder);

// INVALID_ARGUMENT for a name that no model may have.
Status CheckModelName(std::string_view name);

// The versions of a model, ascending.
StatusOr<std::vector<int64_t>> VersionsIn(const ModelPlace& model);

// Those of `versions`, ascending, that a policy means: the latest where it does not say. NOT_FOUND if it names
// versions, and none of them is there.
StatusOr<std::vector<int64_t>> ServedVersions(const std::vector<int64_t>& versions,
                                              const inference::ModelVersionPolicy& policy);

// What may be models, by name: `models`, and the folders of several repositories; more than one where the name is there
// more than once. NOT_FOUND if a repository can't be listed.
StatusOr<std::map<std::string, std::vector<ModelPlace>>> FindModels(
    const std::vector<std::filesystem::path>& repositories, const std::vector<NamedModel>& models = {});

// The file of a version that is the model: in its folder the one that is called `name`, or, where that is empty, the
// one that is called as models are.
StatusOr<std::filesystem::path> ModelFile(const ModelPlace& model, int64_t version, const std::string& name);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_MODEL_DIRECTORY_H_
