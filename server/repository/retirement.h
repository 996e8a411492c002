// Ends versions of models that serve no more: once the last request of one is over, a thread of its own destroys it.
// Thread-safe.
#ifndef SWIZZLE_SERVER_REPOSITORY_RETIREMENT_H_
#define SWIZZLE_SERVER_REPOSITORY_RETIREMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "server/repository/serving_model.h"

namespace swizzle {

// What is left of a version that was destroyed.
struct EndedModel {
  std::string name = {};
  int64_t version = 0;
  const ServingModel* was = nullptr;  // not to be followed
  uint64_t memory_share = 0;
};

class Retirement : public std::enable_shared_from_this<Retirement> {
 public:
  // Until Start, and after Stop, models are destroyed by whoever lets go of them last.
  static std::shared_ptr<Retirement> New() { return std::shared_ptr<Retirement>(new Retirement); }
  ~Retirement() { Stop(); }

  // `ended` is called for each model that is destroyed, on the thread that does. std::system_error if that can't start.
  void Start(std::function<void(const EndedModel&)> ended);
  // After it `ended` is called no more. At most once.
  void Stop();

  // A model that is destroyed here.
  std::shared_ptr<ServingModel> NewModel();

  // The model serves no further requests; those that it has are finished.
  void Retire(std::shared_ptr<ServingModel> serving);
  // Models that were retired and have requests yet.
  std::vector<std::shared_ptr<ServingModel>> Retired() const;
  // Until there are none, or for so long.
  void AwaitEnds(absl::Duration patience);

 private:
  Retirement() = default;
  void Bury(ServingModel* model) noexcept;
  static EndedModel Destroy(ServingModel* model);
  void Forget(const ServingModel* was);  // not followed
  void Run();

  mutable Mutex mutex_;
  CondVar buried_, ended_;
  ServingModel* first_ ABSL_GUARDED_BY(mutex_) = nullptr;  // that waits to be destroyed
  bool running_ ABSL_GUARDED_BY(mutex_) = false;           // the thread takes what is let go of
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  struct Retiree {
    std::weak_ptr<ServingModel> serving;
    const ServingModel* was;
  };
  std::vector<Retiree> retired_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const EndedModel&)> tell_;  // constant once the thread runs
  std::thread thread_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_RETIREMENT_H_
