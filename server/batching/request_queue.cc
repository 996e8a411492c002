#include "server/batching/request_queue.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace swizzle {
namespace {

// For `count` more; grows as push_back would.
void MakeRoom(PendingList& list, size_t count) {
  const size_t needed = list.size() + count;
  if (needed > list.capacity()) list.reserve(std::max(needed, 2 * list.capacity()));
}

// What tells how many rows of a request are taken to the one that runs it.
void TakeRowsOf(int64_t rows, Pending& pending) {
  const Queued& summary = pending.waiting;
  pending.rows_before += pending.rows_taken;
  pending.rows_taken = rows;
  pending.turn = summary.turn;
  pending.work_taken = summary.work();
  if (rows < summary.rows) {
    const auto taken = summary.row_tokens.first(static_cast<size_t>(rows));
    pending.work_taken = std::accumulate(taken.begin(), taken.end(), int64_t{0});
  }
  pending.work_left = summary.work() - pending.work_taken;
}

}  // namespace

Queued SummaryOf(const Pending& pending) {
  const Request& request = pending.request;
  const int64_t rows_gone = pending.rows_before + pending.rows_taken;
  Queued summary = {request.rows - rows_gone, pending.arrival, request.deadline, request.tokens};
  summary.connection = request.connection;
  summary.batch_class = request.batch_class;
  summary.level = request.level;
  summary.row_tokens = std::span(request.row_tokens);
  if (rows_gone > 0) {
    summary.tokens = pending.work_left;
    summary.row_tokens = summary.row_tokens.subspan(static_cast<size_t>(rows_gone));
    summary.turn = pending.turn + pending.work_taken;
  }
  summary.late_at = request.late_at;
  summary.ticket = pending.ticket;
  for (const TensorView& input : request.inputs) summary.bytes += static_cast<int64_t>(input.bytes.size());
  return summary;
}

RequestQueue::FlowKey RequestQueue::FlowOf(const Queued& summary) const {
  return {summary.connection, summary.level, summary.tokens > limits_.part_tokens};
}

RequestQueue::FlowKey RequestQueue::FlowAsTaken(const Pending& pending) const {
  const Request& request = pending.request;
  return {request.connection, request.level, pending.work_taken + pending.work_left > limits_.part_tokens};
}

int64_t RequestQueue::WorkBefore(const Queued& request) const {
  const auto flow = flows_.find(FlowOf(request));
  const int64_t turn = flow == flows_.end() ? turn_ : std::max(turn_, flow->second.end);
  int64_t before = LoadUpTo(request.level - 1).work;
  const auto add = [&](const Queued& waiting) {
    if (waiting.turn > turn) return false;
    if (waiting.level != request.level) return true;
    const bool in_parts = IsTakenInParts(limits_, waiting);
    before += in_parts ? std::min(waiting.work(), turn - waiting.turn + limits_.part_tokens) : waiting.work();
    return true;
  };
  Queued of_level;
  of_level.level = request.level;
  for (const bool late : {false, true}) {
    of_level.late = late;
    if (!late || order_.lanes() > 1) order_.ForEach(order_.LaneOf(of_level), add);
  }
  return before;
}

void RequestQueue::Insert(const Queued& summary, std::unique_ptr<Pending>& pending) {
  flows_.reserve(flows_.size() + 1);
  const auto level = static_cast<size_t>(summary.level);
  if (levels_.size() < level) levels_.resize(level);
  pending->waiting = summary;
  requests_.reserve(requests_.size() + 1);
  order_.Add(pending->waiting);
  requests_.emplace(pending->ticket, std::move(pending));
  load_.Add(summary);
  levels_[level - 1].Add(summary);
  Flow& flow = flows_[FlowOf(summary)];
  flow.load.Add(summary);
  flow.end = std::max(flow.end, summary.turn + summary.work());
}

void RequestQueue::Push(std::unique_ptr<Pending>& pending) {
  Queued summary = SummaryOf(*pending);
  const auto flow = flows_.find(FlowOf(summary));
  summary.turn = flow == flows_.end() ? turn_ : std::max(turn_, flow->second.end);
  Insert(summary, pending);
}

void RequestQueue::Return(std::unique_ptr<Pending>& pending) {
  pending->request.deadline = pending->own_deadline;
  const Pending& its = *pending;
  Insert(SummaryOf(its), pending);
  --flows_.find(FlowAsTaken(its))->second.out;
  DropIfIdle(FlowAsTaken(its));
}

void RequestQueue::Lose(const Pending& pending) {
  const FlowKey key = FlowAsTaken(pending);
  --flows_.find(key)->second.out;
  DropIfIdle(key);
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
  for (int i = 1; connection != 0 && i <= level && i <= static_cast<int>(levels_.size()); ++i) {
    for (const bool is_long : {false, true}) {
      const auto found = flows_.find({connection, i, is_long});
      if (found != flows_.end()) load.Add(found->second.load);
    }
  }
  return load;
}

// REQUIRES: it is here.
std::unique_ptr<Pending> RequestQueue::TakeOut(Ticket ticket, bool comes_back) {
  const auto found = requests_.find(ticket);
  std::unique_ptr<Pending> pending = std::move(found->second);
  requests_.erase(found);
  const Queued& summary = pending->waiting;
  order_.Remove(summary);
  load_.Remove(summary);
  levels_[static_cast<size_t>(summary.level - 1)].Remove(summary);
  Flow& flow = flows_.find(FlowOf(summary))->second;
  flow.load.Remove(summary);
  if (comes_back) ++flow.out;
  DropIfIdle(FlowOf(summary));
  return pending;
}

void RequestQueue::DropIfIdle(const FlowKey& key) {
  const auto found = flows_.find(key);
  if (found->second.load.requests == 0 && found->second.out == 0) flows_.erase(found);
}

void RequestQueue::Take(std::span<const uint64_t> tickets, std::span<const int64_t> rows, PendingList& out) {
  MakeRoom(out, tickets.size());
  for (size_t i = 0; i < tickets.size(); ++i) {
    const Queued& summary = requests_.find(tickets[i])->second->waiting;
    turn_ = std::max(turn_, summary.turn);
    out.push_back(TakeOut(tickets[i], rows[i] < summary.rows));
    TakeRowsOf(rows[i], *out.back());
  }
}

void RequestQueue::PassTime(Instant now, PendingList& expired) {
  while (const Queued* const its = order_.Expired(now)) {
    MakeRoom(expired, 1);
    expired.push_back(TakeOut(its->ticket, false));
  }
  order_.MoveLate(now);
}

std::unique_ptr<Pending> RequestQueue::TakeTicket(Ticket ticket) {
  return requests_.contains(ticket) ? TakeOut(ticket, false) : nullptr;
}

}  // namespace swizzle
