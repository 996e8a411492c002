#include "server/batching/request_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace swizzle {
namespace {

// For `count` more; grows as push_back would.
void MakeRoom(PendingList& list, size_t count) {
  const size_t needed = list.size() + count;
  if (needed > list.capacity()) list.reserve(std::max(needed, 2 * list.capacity()));
}

}  // namespace

Queued SummaryOf(const Pending& pending) {
  const Request& request = pending.request;
  Queued summary = {request.rows, pending.arrival, request.deadline, request.tokens};
  summary.connection = request.connection;
  summary.batch_class = request.batch_class;
  summary.level = request.level;
  summary.late_at = request.late_at;
  for (const TensorView& input : request.inputs) summary.bytes += static_cast<int64_t>(input.bytes.size());
  return summary;
}

void RequestQueue::Push(std::unique_ptr<Pending>& pending) {
  const Queued summary = SummaryOf(*pending);
  MakeRoom(requests_, 1);
  loads_.reserve(loads_.size() + 1);
  const auto level = static_cast<size_t>(summary.level);
  if (levels_.size() < level) levels_.resize(level);
  summaries_.push_back(summary);
  requests_.push_back(std::move(pending));
  load_.Add(summary);
  levels_[level - 1].Add(summary);
  if (summary.connection != 0) loads_[{summary.connection, summary.level}].Add(summary);
}

QueueLoad RequestQueue::LoadAt(int level) const {
  const auto index = static_cast<size_t>(level - 1);
  return index < levels_.size() ? levels_[index] : QueueLoad();
}

QueueLoad RequestQueue::LoadUpTo(int level) const {
  QueueLoad load;
  for (const QueueLoad& of_level : std::span(levels_).first(std::min(levels_.size(), static_cast<size_t>(level)))) {
    load.Add(of_level);
  }
  return load;
}

QueueLoad RequestQueue::LoadOf(uint64_t connection, int level) const {
  QueueLoad load;
  for (int i = 1; i <= level && i <= static_cast<int>(levels_.size()); ++i) {
    const auto found = loads_.find({connection, i});
    if (found != loads_.end()) load.Add(found->second);
  }
  return load;
}

void RequestQueue::Forget(const Queued& summary) {
  load_.Remove(summary);
  levels_[static_cast<size_t>(summary.level - 1)].Remove(summary);
  const auto found = loads_.find({summary.connection, summary.level});
  if (found == loads_.end()) return;
  found->second.Remove(summary);
  if (found->second.requests == 0) loads_.erase(found);
}

void RequestQueue::Take(std::span<const size_t> indices, PendingList& out) {
  if (indices.empty()) return;
  MakeRoom(out, indices.size());
  size_t kept = indices.front();
  for (size_t i = kept; i < requests_.size(); ++i) {
    if (!indices.empty() && indices.front() == i) {
      Forget(summaries_[i]);
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
  const auto summary = summaries_.begin() + (found - requests_.begin());
  Forget(*summary);
  summaries_.erase(summary);
  requests_.erase(found);
  return pending;
}

}  // namespace swizzle
