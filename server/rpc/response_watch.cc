#include "server/rpc/response_watch.h"

#include <utility>

namespace swizzle {

void ResponseWatch::Start(Response& response, std::function<void()> end) {
  response.end_ = std::move(end);
  response.deadline_ = clock_.Now() + timeout_;
  const MutexLock lock(mutex_);
  response.watch_ = this;
  response.before_ = newest_;
  (newest_ == nullptr ? oldest_ : newest_->after_) = &response;
  newest_ = &response;
}

void ResponseWatch::Stop(Response& response) {
  const MutexLock lock(mutex_);
  if (response.watch_ != nullptr) Remove(response);
}

void ResponseWatch::Remove(Response& response) {
  (response.before_ == nullptr ? oldest_ : response.before_->after_) = response.after_;
  (response.after_ == nullptr ? newest_ : response.after_->before_) = response.before_;
  response.before_ = response.after_ = nullptr;
  response.watch_ = nullptr;
}

void ResponseWatch::EndLate() {
  const Instant now = clock_.Now();
  const MutexLock lock(mutex_);
  while (oldest_ != nullptr && oldest_->deadline_ <= now) {
    Response& late = *oldest_;
    Remove(late);
    ended_.fetch_add(1, std::memory_order_relaxed);
    late.ending_.store(true, std::memory_order_release);
    late.end_();
  }
}

}  // namespace swizzle
