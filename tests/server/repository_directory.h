// A model repository on disk for the length of a test.
#ifndef SWIZZLE_TESTS_SERVER_REPOSITORY_DIRECTORY_H_
#define SWIZZLE_TESTS_SERVER_REPOSITORY_DIRECTORY_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/status.h"

namespace swizzle {

// An identity model with the input X and the output Y. `more` is further text of its config.pbtxt.
inline std::string IdentityConfig(const std::string& data_type = "TYPE_FP32", const std::string& dims = "[4]",
                                  const std::string& more = "max_batch_size: 8 dynamic_batching { }") {
  return Concat("backend: 'identity' input { name: 'X' data_type: ", data_type, " dims: ", dims,
                " } output { name: 'Y' data_type: ", data_type, " dims: ", dims, " } ", more);
}

class RepositoryDirectory {
 public:
  RepositoryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "swizzle_repository.XXXXXX").string();
    SWIZZLE_CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~RepositoryDirectory() { std::filesystem::remove_all(path_); }
  RepositoryDirectory(const RepositoryDirectory&) = delete;
  RepositoryDirectory& operator=(const RepositoryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // `file` is relative to the repository; its directories are made.
  void Write(const std::string& file, const std::string& content) {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << content;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SERVER_REPOSITORY_DIRECTORY_H_
