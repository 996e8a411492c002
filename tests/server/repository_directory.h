// A model repository on disk for the length of a test.
#ifndef SWIZZLE_TESTS_SERVER_REPOSITORY_DIRECTORY_H_
#define SWIZZLE_TESTS_SERVER_REPOSITORY_DIRECTORY_H_

#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/base/status.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {

// An identity model with the input X and the output Y. `more` is further text of its config.pbtxt.
inline std::string IdentityConfig(const std::string& data_type = "TYPE_FP32", const std::string& dims = "[4]",
                                  const std::string& more = "max_batch_size: 8 dynamic_batching { }") {
  return Concat("backend: 'identity' input { name: 'X' data_type: ", data_type, " dims: ", dims,
                " } output { name: 'Y' data_type: ", data_type, " dims: ", dims, " } ", more);
}

class RepositoryDirectory {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }

  // `file` is relative to the repository; its directories are made.
  void Write(const std::string& file, const std::string& content) {
    std::filesystem::create_directories((path() / file).parent_path());
    std::ofstream(path() / file) << content;
  }

 private:
  const TemporaryFolder folder_;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SERVER_REPOSITORY_DIRECTORY_H_
