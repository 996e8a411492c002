// Sees which models of repositories have changed from one look to the next.
//
// A model has changed if its files have other content than when it was last told of: times alone do not count. A folder
// that was not the same twice in a row is being written to, and is waited for. Reads whole files, now and then.
// Thread-compatible.
#ifndef SWIZZLE_SERVER_REPOSITORY_REPOSITORY_WATCH_H_
#define SWIZZLE_SERVER_REPOSITORY_REPOSITORY_WATCH_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "server/repository/folder_state.h"

namespace swizzle {

class RepositoryWatch {
 public:
  // Knows what is there now.
  explicit RepositoryWatch(std::vector<std::filesystem::path> repositories, std::vector<NamedModel> models = {});

  struct Changes {
    std::vector<std::string> changed;  // models that are new, or have other files
    std::vector<std::string> gone;
  };
  // Since it was asked last. NOT_FOUND if a repository can't be listed: then nothing has changed that is known of.
  StatusOr<Changes> Look();

 private:
  struct Model {
    std::vector<ModelPlace> places;               // more than one where the name is in several repositories
    FolderState seen = {}, known = {};            // at the last look; of what was told of
    std::map<std::string, uint64_t> hashes = {};  // of the latter
    bool hashed = false, is_known = false, missing = false;
  };
  using Found = std::map<std::string, std::vector<ModelPlace>>;

  static FolderState StateOf(const std::vector<ModelPlace>& places);
  static void Hash(Model& model);
  static bool HasContentOf(const Model& model, const FolderState& now);

  const std::vector<std::filesystem::path> repositories_;
  const std::vector<NamedModel> named_;
  std::map<std::string, Model> models_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_REPOSITORY_WATCH_H_
