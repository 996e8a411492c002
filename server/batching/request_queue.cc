#include "server/batching/request_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace swizzle {

void RequestQueue::Push(std::unique_ptr<Pending> pending) {
  summaries_.push_back({pending->request.rows, pending->arrival, pending->request.deadline, pending->request.tokens});
  requests_.push_back(std::move(pending));
}

void RequestQueue::TakeFront(size_t count, PendingList& out) {
  const auto end = requests_.begin() + static_cast<ptrdiff_t>(count);
  std::move(requests_.begin(), end, std::back_inserter(out));
  requests_.erase(requests_.begin(), end);
  summaries_.erase(summaries_.begin(), summaries_.begin() + static_cast<ptrdiff_t>(count));
}

void RequestQueue::Take(std::span<const size_t> indices, PendingList& out) {
  if (indices.empty()) return;
  size_t kept = indices.front();
  for (size_t i = kept; i < requests_.size(); ++i) {
    if (!indices.empty() && indices.front() == i) {
      out.push_back(std::move(requests_[i]));
      indices = indices.subspan(1);
    } else {
      requests_[kept] = std::move(requests_[i]);
      summaries_[kept++] = summaries_[i];
    }
  }
  requests_.resize(kept);
  summaries_.resize(kept);
}

std::unique_ptr<Pending> RequestQueue::TakeTicket(Ticket ticket) {
  const auto found = std::lower_bound(requests_.begin(), requests_.end(), ticket,
                                      [](const auto& pending, Ticket value) { return pending->ticket < value; });
  if (found == requests_.end() || (*found)->ticket != ticket) return nullptr;
  std::unique_ptr<Pending> pending = std::move(*found);
  summaries_.erase(summaries_.begin() + (found - requests_.begin()));
  requests_.erase(found);
  return pending;
}

}  // namespace swizzle
