#include "server/repository/retirement.h"

#include <algorithm>
#include <utility>

#include "server/memory/memory_trim.h"
#include "server/telemetry/containment.h"

namespace swizzle {

void Retirement::Start(std::function<void(const EndedModel&)> ended) {
  tell_ = std::move(ended);
  thread_ = std::thread([this] { Run(); });
  const MutexLock lock(mutex_);
  running_ = true;
  buried_.SignalAll();
}

void Retirement::Stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    running_ = false;
    stopping_ = true;
    buried_.SignalAll();
    ended_.SignalAll();
  }
  thread_.join();
}

std::shared_ptr<ServingModel> Retirement::NewModel() {
  return {new ServingModel, [self = shared_from_this()](ServingModel* model) { self->Bury(model); }};
}

void Retirement::Retire(std::shared_ptr<ServingModel> serving) {
  if (serving == nullptr) return;
  const MutexLock lock(mutex_);
  retired_.push_back({serving, serving.get()});
}

std::vector<std::shared_ptr<ServingModel>> Retirement::Retired() const {
  std::vector<std::shared_ptr<ServingModel>> left;
  const MutexLock lock(mutex_);
  for (const Retiree& retiree : retired_) {
    if (auto serving = retiree.serving.lock()) left.push_back(std::move(serving));
  }
  return left;
}

void Retirement::AwaitEnds(absl::Duration patience) {
  const Instant end = Clock::Real().Now() + patience;
  const MutexLock lock(mutex_);
  while (running_ && !retired_.empty() && Clock::Real().Now() < end) ended_.WaitUntil(mutex_, end);
}

// It may be called where nothing may be allocated, and by an executor of the model.
void Retirement::Bury(ServingModel* model) noexcept {
  {
    const MutexLock lock(mutex_);
    if (running_) {
      model->next_ended = std::exchange(first_, model);
      buried_.Signal();
      return;
    }
  }
  Destroy(model);
  Forget(model);
}

EndedModel Retirement::Destroy(ServingModel* model) {
  EndedModel ended{.was = model, .memory_share = model->memory_share};
  if (model->model != nullptr) {
    ended.name = model->model->spec().name;
    ended.version = model->model->spec().version;
  }
  delete model;
  return ended;
}

void Retirement::Forget(const ServingModel* was) {
  const MutexLock lock(mutex_);
  std::erase_if(retired_, [&](const Retiree& retiree) { return retiree.was == was; });
  ended_.SignalAll();
}

void Retirement::Run() {
  while (true) {
    ServingModel* next = nullptr;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && first_ == nullptr) buried_.Wait(mutex_);
      if (first_ == nullptr) return;
      next = first_;
      first_ = next->next_ended;
    }
    Contain("end a model", [&] {
      const EndedModel ended = Destroy(next);
      GiveBackFreedMemory();
      tell_(ended);
      return absl::OkStatus();
    }).IgnoreError();
    Forget(next);  // whatever became of that: loads wait for it
  }
}

}  // namespace swizzle
