#include "server/http/http_connections.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/threading/clock.h"

namespace swizzle {
namespace {

constexpr absl::Duration kRoomTime = absl::Seconds(1);  // for a connection to go that makes room

}  // namespace

HttpConnections::HttpConnections(const HttpLimits& its_limits, HttpService& its_service)
    : limits(its_limits), service(its_service), random_(std::random_device()()) {
  const int threads = limits.stay_on_threads ? 1 : limits.threads;
  for (int i = 0; i < limits.threads / threads; ++i) loops.emplace_back(threads);
}

void HttpConnections::Add(int64_t number, std::weak_ptr<HttpConnection> its) {
  const MutexLock lock(mutex_);
  all_[number] = std::move(its);
}

void HttpConnections::Remove(int64_t number) {
  const MutexLock lock(mutex_);
  all_.erase(number);
  removed_.SignalAll();
}

std::vector<std::shared_ptr<HttpConnection>> HttpConnections::All() const {
  std::vector<std::shared_ptr<HttpConnection>> all;
  const MutexLock lock(mutex_);
  for (const auto& [number, its] : all_) {
    if (auto held = its.lock()) all.push_back(std::move(held));
  }
  return all;
}

void HttpConnections::AwaitNone() {
  const MutexLock lock(mutex_);
  while (!all_.empty()) removed_.Wait(mutex_);
}

void HttpConnections::MakeRoom() {
  if (limits.make_room_from == 0) return;
  std::vector<std::shared_ptr<HttpConnection>> staying = All();
  std::erase_if(staying, [](const auto& its) { return its->makes_room.load(); });
  if (std::ssize(staying) >= limits.make_room_from) {
    const auto oldest = std::ranges::find_if(staying, [](const auto& its) { return !its->answering; });
    if (oldest != staying.end()) (*oldest)->EndForRoom();
  }
  staying.clear();
  const Instant end = Clock::Real().Now() + kRoomTime;
  const MutexLock lock(mutex_);
  while (std::ssize(all_) >= limits.connections - 1 && Clock::Real().Now() < end) {
    Clock::Real().WaitUntil(mutex_, removed_, end);
  }
}

HttpLoop& HttpConnections::LeastTaken() {
  return *std::ranges::min_element(loops, {}, [](const HttpLoop& loop) { return loop.connections.load(); });
}

Instant HttpConnections::DrawAge() {
  if (limits.connection_age == absl::ZeroDuration()) return Instant::InfiniteFuture();
  return Clock::Real().Now() + limits.connection_age * std::uniform_real_distribution<>(0.9, 1.1)(random_);
}

}  // namespace swizzle
