#include "server/repository/brought_files.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "model_loader/files/printable_name.h"
#include "server/telemetry/logging.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostPathBytes = 256;
constexpr int kMostDepth = 4;  // a version, and folders of weights within it

// All of this process.
struct Folders {
  static inline Mutex mutex;
  static inline std::set<fs::path> paths ABSL_GUARDED_BY(mutex);
};

// The log has where; clients are told of no paths.
Status CannotWrite(const fs::path& file, std::error_code error) {
  Log(LogLevel::kError, "files that a call brought cannot be written",
      {{"file", file.string()}, {"error", error.message()}});
  return MakeError(StatusCode::kResourceExhausted,
                   "the files of the call cannot be written to the server's folder for temporary files ($TMPDIR): ",
                   error.message());
}

Status WriteFile(const fs::path& file, const std::string& content) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) return CannotWrite(file, error);
  std::ofstream out(file, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  return out ? absl::OkStatus() : CannotWrite(file, std::error_code(errno, std::generic_category()));
}

}  // namespace

Status CheckBroughtPath(const std::string& path) {
  SWIZZLE_RETURN_IF_ERROR(CheckName(path, "the path of a file"));
  int depth = 0;
  bool plain = !path.empty() && path.size() <= kMostPathBytes && !path.ends_with('/') && path.find("//") == path.npos;
  for (const fs::path& part : fs::path(path)) {
    plain = plain && !part.empty() && part != "." && part != ".." && part != "/";
    ++depth;
  }
  if (plain && depth <= kMostDepth) return absl::OkStatus();
  return InvalidArgument("parameter ", QuotedName("file:" + path),
                         " is no path within a model's folder; give one like 'file:1/model.onnx'");
}

StatusOr<std::unique_ptr<BroughtFolder>> BroughtFolder::Write(const BroughtFiles& files) {
  std::error_code error;
  std::string path = (fs::temp_directory_path(error) / "swizzle-load-XXXXXX").string();
  if (error) return CannotWrite(path, error);
  if (mkdtemp(path.data()) == nullptr) return CannotWrite(path, std::error_code(errno, std::generic_category()));
  std::unique_ptr<BroughtFolder> folder(new BroughtFolder(path));
  {
    const MutexLock lock(Folders::mutex);
    Folders::paths.insert(folder->path_);
  }
  for (const BroughtFile& file : files) SWIZZLE_RETURN_IF_ERROR(WriteFile(folder->path_ / file.path, file.content));
  return folder;
}

BroughtFolder::~BroughtFolder() {
  const MutexLock lock(Folders::mutex);
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  Folders::paths.erase(path_);
}

void RemoveBroughtFolders() {
  const MutexLock lock(Folders::mutex);
  for (const fs::path& path : Folders::paths) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

}  // namespace swizzle
