// What lies in a model repository: which of its folders are models, and of one model which version and file is served.
// Free functions, thread-safe.
#ifndef SWIZZLE_SERVER_REPOSITORY_MODEL_DIRECTORY_H_
#define SWIZZLE_SERVER_REPOSITORY_MODEL_DIRECTORY_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "proto/model_config.pb.h"

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

// Of the model in `directory`, ascending.
StatusOr<std::vector<int64_t>> VersionsIn(const std::filesystem::path& directory);

// The one of `versions` that a policy means; the latest, or 0 if there is none, where it does not say. UNIMPLEMENTED if
// it means several, NOT_FOUND if none of those that it names is there.
StatusOr<int64_t> ServedVersion(const std::vector<int64_t>& versions, const inference::ModelVersionPolicy& policy);

// The file in a version's directory that is the model: the one that is called `name`, or, where that is empty, the one
// that is called as models are.
StatusOr<std::filesystem::path> ModelFile(const std::filesystem::path& version_directory, const std::string& name);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_MODEL_DIRECTORY_H_
