// Files that a model names beside itself: ONNX's external data, the shards of a checkpoint.
//
// A model may come from anywhere, so it can reach nothing but regular files of one name below its own folder: locations
// are relative paths without "..", followed one component at a time, and symbolic links and files with several names
// (hard links) are refused. The one exception is huggingface_hub's cache, where a model's folder holds links alone:
//   snapshots/REVISION/model.onnx -> ../../blobs/HASH        a model that is such a link lies in the store blobs/,
//   snapshots/REVISION/model.onnx_data -> ../../blobs/HASH   and what it names may be a blob of that same store.
// Thread-compatible.
#ifndef SWIZZLE_MODEL_LOADER_FILES_CONTAINED_FILE_H_
#define SWIZZLE_MODEL_LOADER_FILES_CONTAINED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "kernels/base/status.h"
#include "model_loader/files/file_descriptor.h"

namespace swizzle {

// Where a model names files.
struct ModelFolder {
  std::filesystem::path path;   // may itself be reached through links; empty: there is none
  std::filesystem::path blobs;  // the store that the model is a link into; empty: it is no such link

  // Of the model in `file`.
  static ModelFolder Of(const std::filesystem::path& file);
};

class ContainedFile {
 public:
  // The file at `location` below the folder. INVALID_ARGUMENT if the location is not as above, NOT_FOUND and the like
  // if the file can't be opened; messages call it `what` ("its external file"). REQUIRES: CheckName(location) is OK.
  static StatusOr<ContainedFile> Open(const ModelFolder& folder, const std::string& location, const std::string& what);

  const std::string& location() const { return location_; }
  // When it was opened.
  int64_t bytes() const { return bytes_; }
  // All of one that has no more than `most` bytes; errors say what is wrong with it. The location's CheckName, too.
  static StatusOr<std::string> Read(const ModelFolder& folder, const std::string& location, const std::string& what,
                                    int64_t most);
  // False where it can't be read, or has become shorter.
  bool ReadAt(int64_t offset, std::span<std::byte> bytes) const;

 private:
  ContainedFile(FileDescriptor file, std::string location, int64_t bytes)
      : file_(std::move(file)), location_(std::move(location)), bytes_(bytes) {}

  FileDescriptor file_;
  std::string location_;
  int64_t bytes_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_CONTAINED_FILE_H_
