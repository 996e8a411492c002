// What is known of the models of a repository: which versions serve, and what became of the others.
//
// A version is replaced in one step: who has found one before goes on with that, who looks later finds the new one.
// Thread-safe. Names are looked up, never joined to a path.
#ifndef SWIZZLE_SERVER_REPOSITORY_MODEL_TABLE_H_
#define SWIZZLE_SERVER_REPOSITORY_MODEL_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "server/repository/readiness.h"
#include "server/repository/serving_model.h"

namespace swizzle {

class ModelTable {
 public:
  using Serving = std::shared_ptr<ServingModel>;

  // As ModelRepository has them.
  StatusOr<Serving> Find(std::string_view name, std::string_view version) const;
  std::vector<ModelStatus> List() const;  // by name and version
  std::vector<int64_t> Versions(std::string_view name) const;

  bool Has(std::string_view name) const;
  // Whether a load of it has begun, and not ended; whether its last one failed, and nothing serves.
  bool IsLoading(std::string_view name) const;
  bool HasFailed(std::string_view name) const;
  std::vector<Serving> AllServing() const;
  // What serves its versions, in their order; not to be followed.
  std::vector<const ServingModel*> ServingOf(std::string_view name) const;
  // That `name` is known to have, serving or not; 0: none is.
  int64_t LatestVersion(std::string_view name) const;

  // A model that is not loaded, unless it is known.
  void Add(const std::string& name);
  // The model is to be loaded: where no version of it serves, it is loading. `awaited`: ModelStatus's.
  void BeginLoad(const std::string& name, bool awaited);
  // Of a model that is to be loaded, which versions: those that do not serve are loading.
  void ExpectVersions(const std::string& name, const std::vector<int64_t>& versions, bool awaited);
  // The version serves from now on. Returns what it served before; null: it did not. UNAVAILABLE, and nothing
  // changes, after Close.
  StatusOr<Serving> Serve(const std::string& name, int64_t version, Serving serving);
  // The version could not be loaded, or of version 0 the model as a whole. What serves goes on, and shows why.
  void Fail(const std::string& name, int64_t version, const Status& why);
  // Versions but `kept` serve no longer, nor are wanted; returns them. They are unloading until Ended.
  std::vector<Serving> Unload(std::string_view name, const std::vector<int64_t>& kept);
  // What was unloaded, or replaced, has come to its end.
  void Ended(std::string_view name, int64_t version, const ServingModel* was);
  // The model is to be gone once nothing of it is left.
  void Forget(std::string_view name);
  // Nothing more serves from now on but what does.
  void Close();

 private:
  struct Version {
    Status status;
    ModelState state = ModelState::kUnloaded;
    bool awaited = false;
    Status reload = {};
    Serving serving = nullptr;             // null but where it is kReady
    const ServingModel* ending = nullptr;  // what it served, where it is kUnloading
  };
  struct Model {
    std::map<int64_t, Version> versions = {};  // never empty; 0 stands for the model as a whole
    bool forgotten = false;
  };
  using Models = std::map<std::string, Model, std::less<>>;

  bool AnyIs(std::string_view name, ModelState state) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void SetLoading(const std::string& name, Version& version, bool awaited);
  void DropIfEmpty(Models::iterator model) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Models models_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_MODEL_TABLE_H_
