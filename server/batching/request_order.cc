#include "server/batching/request_order.h"

#include <utility>

namespace swizzle {

void RequestOrder::Add(Queued& request) {
  try {
    by_turn_.emplace(PlaceOf(request), &request);
    if (request.batch_class != 0) by_class_.emplace(PlaceInClassOf(request), &request);
    if (request.deadline < Instant::InfiniteFuture()) {
      deadlines_.emplace(Time(request.deadline, request.ticket), &request);
    }
    if (lanes_ > 1 && !request.late && request.late_at < Instant::InfiniteFuture()) {
      late_at_.emplace(Time(request.late_at, request.ticket), &request);
    }
    if (keeps_oldest_) arrivals_.emplace(request.batch_class, request.arrival, request.ticket);
  } catch (...) {
    Remove(request);
    throw;
  }
}

// Of what is there.
void RequestOrder::Remove(const Queued& request) {
  by_turn_.erase(PlaceOf(request));
  if (request.batch_class != 0) by_class_.erase(PlaceInClassOf(request));
  deadlines_.erase({request.deadline, request.ticket});
  if (lanes_ > 1) late_at_.erase({request.late_at, request.ticket});
  if (keeps_oldest_) arrivals_.erase({request.batch_class, request.arrival, request.ticket});
}

Instant RequestOrder::NextDeadline() const {
  return deadlines_.empty() ? Instant::InfiniteFuture() : deadlines_.begin()->first.first;
}

const Queued* RequestOrder::Expired(Instant now) const {
  return !deadlines_.empty() && NextDeadline() <= now ? deadlines_.begin()->second : nullptr;
}

// Nodes of the trees go from place to place, so that no memory is wanted.
void RequestOrder::MoveLate(Instant now) {
  while (!late_at_.empty() && late_at_.begin()->first.first <= now) {
    Queued& request = *late_at_.begin()->second;
    late_at_.erase(late_at_.begin());
    auto place = by_turn_.extract(PlaceOf(request));
    auto place_in_class = by_class_.extract(PlaceInClassOf(request));
    request.late = true;
    place.key() = PlaceOf(request);
    by_turn_.insert(std::move(place));
    if (place_in_class.empty()) continue;
    place_in_class.key() = PlaceInClassOf(request);
    by_class_.insert(std::move(place_in_class));
  }
}

const Queued* RequestOrder::FirstOf(size_t lane) const {
  const auto first = by_turn_.lower_bound(Before(lane));
  return first != by_turn_.end() && std::get<0>(first->first) == lane ? first->second : nullptr;
}

const Queued* RequestOrder::FirstOf(size_t lane, uint64_t batch_class) const {
  const Queued* first = nullptr;
  ForEach(lane, batch_class, [&](const Queued& request) {
    first = &request;
    return false;
  });
  return first;
}

std::vector<uint64_t> RequestOrder::Classes() const {
  std::vector<uint64_t> classes;
  if (by_class_.size() < by_turn_.size()) classes.push_back(0);
  for (auto its = by_class_.begin(); its != by_class_.end();) {
    classes.push_back(std::get<0>(its->first));
    its = by_class_.upper_bound(Before(classes.back(), lanes_));
  }
  return classes;
}

Instant RequestOrder::OldestOf(uint64_t batch_class) const {
  return std::get<1>(*arrivals_.lower_bound({batch_class, Instant::InfinitePast(), 0}));
}

}  // namespace swizzle
