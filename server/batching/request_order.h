// Requests that wait, in the orders that the policy asks for: what a batch costs to form then goes by what it takes,
// and not by what waits. Each step is a search in a tree. Owns no request. Not thread-safe.
#ifndef SWIZZLE_SERVER_BATCHING_REQUEST_ORDER_H_
#define SWIZZLE_SERVER_BATCHING_REQUEST_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/base/instant.h"

namespace swizzle {

// What the policy needs to know of a queued request.
struct Queued {
  int64_t rows = 1;
  Instant arrival;
  Instant deadline = Instant::InfiniteFuture();  // must have started before
  int64_t tokens = 0;
  int64_t bytes = 0;                            // of inputs
  uint64_t connection = 0;                      // Request's
  uint64_t batch_class = 0;                     // Request's
  int level = 1;                                // Request's
  int64_t turn = 0;                             // batch_policy.h
  std::span<const int64_t> row_tokens = {};     // of `rows`, which any batches may take; empty: one takes them all
  Instant late_at = Instant::InfiniteFuture();  // Request's
  bool late = false;                            // whether that had come when RequestOrder was last told the time
  uint64_t ticket = 0;                          // in the order of arrival

  int64_t work() const { return tokens > 0 ? tokens : rows; }
};

class RequestOrder {
 public:
  // With one lane neither levels nor lateness count. `keeps_oldest`: OldestOf is asked.
  explicit RequestOrder(size_t lanes = 1, bool keeps_oldest = false) : lanes_(lanes), keeps_oldest_(keeps_oldest) {}

  // Until it is removed the request stays where it is, and nobody else changes it. REQUIRES: its ticket is no other's.
  // A call that throws, for want of memory, has changed nothing.
  void Add(Queued& request);
  void Remove(const Queued& request);

  size_t size() const { return by_turn_.size(); }
  size_t lanes() const { return lanes_; }
  // Of each level what is in time, and behind it what is late.
  size_t LaneOf(const Queued& request) const {
    return lanes_ == 1 ? 0 : 2 * static_cast<size_t>(request.level - 1) + (request.late ? 1 : 0);
  }

  // When the first deadline comes.
  Instant NextDeadline() const;
  // Whose deadline has come; null: nobody's.
  const Queued* Expired(Instant now) const;
  // Requests whose time is up go to the lanes of those.
  void MoveLate(Instant now);

  // The first of a lane by turns, and by arrival where these are the same; null: nothing waits there.
  const Queued* FirstOf(size_t lane) const;
  // The same among those of one class.
  const Queued* FirstOf(size_t lane, uint64_t batch_class) const;
  // Those of a lane in that order, or of one class, until visit(request) returns false.
  template <typename Visit>
  void ForEach(size_t lane, Visit visit) const;
  template <typename Visit>
  void ForEach(size_t lane, uint64_t batch_class, Visit visit) const;
  // Of which anything waits, ascending.
  std::vector<uint64_t> Classes() const;
  // When the first of a class arrived that waits. REQUIRES: there is one; keeps_oldest.
  Instant OldestOf(uint64_t batch_class) const;

 private:
  using Place = std::tuple<size_t, int64_t, uint64_t>;                   // lane, turn, ticket
  using PlaceInClass = std::tuple<uint64_t, size_t, int64_t, uint64_t>;  // class, and the same
  using Time = std::pair<Instant, uint64_t>;                             // ticket
  using Arrival = std::tuple<uint64_t, Instant, uint64_t>;               // class, ticket

  Place PlaceOf(const Queued& request) const { return {LaneOf(request), request.turn, request.ticket}; }
  PlaceInClass PlaceInClassOf(const Queued& request) const {
    return std::tuple_cat(std::tuple(request.batch_class), PlaceOf(request));
  }
  // What comes before all requests of a lane.
  static Place Before(size_t lane) { return {lane, INT64_MIN, 0}; }
  static PlaceInClass Before(uint64_t batch_class, size_t lane) { return {batch_class, lane, INT64_MIN, 0}; }

  const size_t lanes_;
  const bool keeps_oldest_;
  std::map<Place, const Queued*> by_turn_;
  std::map<PlaceInClass, const Queued*> by_class_;  // of those whose class is not 0, as it mostly is
  std::map<Time, const Queued*> deadlines_;         // of those that have one
  std::map<Time, Queued*> late_at_;                 // of those that may become late
  std::set<Arrival> arrivals_;
};

template <typename Visit>
void RequestOrder::ForEach(size_t lane, Visit visit) const {
  for (auto its = by_turn_.lower_bound(Before(lane)); its != by_turn_.end(); ++its) {
    if (std::get<0>(its->first) != lane || !visit(*its->second)) return;
  }
}

template <typename Visit>
void RequestOrder::ForEach(size_t lane, uint64_t batch_class, Visit visit) const {
  if (batch_class == 0) {
    return ForEach(lane, [&](const Queued& request) { return request.batch_class != 0 || visit(request); });
  }
  for (auto its = by_class_.lower_bound(Before(batch_class, lane)); its != by_class_.end(); ++its) {
    const auto& [its_class, its_lane, turn, ticket] = its->first;
    if (its_class != batch_class || its_lane != lane || !visit(*its->second)) return;
  }
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_REQUEST_ORDER_H_
