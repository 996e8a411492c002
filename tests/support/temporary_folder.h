// A new folder that is removed, with all that is in it, at the end of its scope.
#ifndef SWIZZLE_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
#define SWIZZLE_TESTS_SUPPORT_TEMPORARY_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>

#include "kernels/base/status.h"

namespace swizzle {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "swizzle-XXXXXX").string();
    SWIZZLE_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
