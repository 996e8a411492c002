// Where the files of a model lie. Value type, thread-compatible.
#ifndef SWIZZLE_SERVER_REPOSITORY_MODEL_PLACE_H_
#define SWIZZLE_SERVER_REPOSITORY_MODEL_PLACE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "kernels/base/status.h"
#include "model_loader/text/text_task.h"

namespace swizzle {

// A folder that has one for each version, as in a repository; or what is all of a model, and its version 1: a file, or
// a checkpoint's folder.
class ModelPlace {
 public:
  static ModelPlace Versioned(std::filesystem::path folder) { return {std::move(folder), true}; }
  static ModelPlace Whole(std::filesystem::path path) { return {std::move(path), false}; }
  // Whichever of both it is: versioned is a folder that has config.pbtxt or a version's folder in it.
  static ModelPlace Of(const std::filesystem::path& path);

  bool versioned() const { return versioned_; }
  // Whether it is one file.
  bool is_file() const;
  const std::filesystem::path& path() const { return path_; }
  // What is for all versions: where config.pbtxt is, and what that names.
  std::filesystem::path folder() const;
  std::filesystem::path VersionFolder(int64_t version) const;

  // Whether the model is to take texts, as the parameter `text` of a configuration says.
  std::optional<text::TextTask> text_task() const { return text_task_; }
  ModelPlace WithTexts(text::TextTask task) const {
    ModelPlace place = *this;
    place.text_task_ = task;
    return place;
  }

  bool operator==(const ModelPlace&) const = default;

 private:
  ModelPlace(std::filesystem::path path, bool versioned) : path_(std::move(path)), versioned_(versioned) {}

  std::filesystem::path path_;
  bool versioned_;
  std::optional<text::TextTask> text_task_ = std::nullopt;
};

// A model that is served by itself, beside those of repositories.
struct NamedModel {
  std::string name;
  ModelPlace place;
};

// By "PATH", "PATH,name=NAME" or "PATH,text=TASK", or with both; without a name it is the folder's, or the file's
// without the end that tells its format. INVALID_ARGUMENT unless there is such a file or folder, and the name is one
// that models may have.
StatusOr<NamedModel> ParseNamedModel(const std::string& text);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_MODEL_PLACE_H_
