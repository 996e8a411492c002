// What lies in a model's folder, by which a change of it is seen. Free functions, thread-safe.
#ifndef SWIZZLE_SERVER_REPOSITORY_FOLDER_STATE_H_
#define SWIZZLE_SERVER_REPOSITORY_FOLDER_STATE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "model_loader/files/file_state.h"
#include "server/repository/model_place.h"

namespace swizzle {

// By path below the model's folder.
using FolderState = std::map<std::string, FileState>;

// They look at all files below the model's folder, links followed, but for folders that no model is in (IsNoModel). Of
// a folder that can't be read, or deeper than anybody's, there is nothing; of more files than anybody has, the first.
// Of a model that is one file they see that and those beside it whose names begin as its does, which hold weights.
// `version`: of that one's folder alone; 0: of what is there for all of them, such as config.pbtxt.
FolderState LookAtVersion(const ModelPlace& model, int64_t version);
FolderState LookAtAll(const ModelPlace& model);

// The path of a file whose state differs, or that one of the two lacks; none: they are the same.
std::optional<std::string> FindChange(const FolderState& before, const FolderState& after);

// Of a file's content, which is read. None if it can't be.
std::optional<uint64_t> HashFile(const std::filesystem::path& file);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_FOLDER_STATE_H_
