// Files that a call brings for a model, in place of its folder in a repository.
#ifndef SWIZZLE_SERVER_REPOSITORY_BROUGHT_FILES_H_
#define SWIZZLE_SERVER_REPOSITORY_BROUGHT_FILES_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

struct BroughtFile {
  std::string path;  // within the model's folder: "1/model.onnx"
  std::string content;
};
using BroughtFiles = std::vector<BroughtFile>;

// INVALID_ARGUMENT for a path that does not stay within its folder, or is longer or deeper than those of models are.
Status CheckBroughtPath(const std::string& path);

// A folder that holds them, below the one for temporary files ($TMPDIR, or /tmp), until this goes. For the server's
// user alone.
class BroughtFolder {
 public:
  // RESOURCE_EXHAUSTED where they cannot be written. REQUIRES: their paths were checked.
  static StatusOr<std::unique_ptr<BroughtFolder>> Write(const BroughtFiles& files);
  ~BroughtFolder();
  BroughtFolder(const BroughtFolder&) = delete;
  BroughtFolder& operator=(const BroughtFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit BroughtFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path path_;
};

// Removes all that there are, for a process that ends without waiting for those who use them: loads fail from now on.
void RemoveBroughtFolders();

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_BROUGHT_FILES_H_
