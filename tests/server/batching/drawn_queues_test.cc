// Drawn queues: what is decided by searching in trees is what sorting the whole queue says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/server/batching/decided.h"

namespace swizzle {
namespace {

struct Part {
  size_t place = 0, lane = 0;
  const Queued* request = nullptr;
  int64_t turn = 0, rows = 0, tokens = 0;
};

Instant At(int64_t ms) { return Instant() + absl::Milliseconds(ms); }

// All parts of a request.
std::vector<Part> PartsOf(const Queued& request, size_t place, size_t lane, const Limits& limits) {
  if (!IsTakenInParts(limits, request)) return {{place, lane, &request, request.turn, request.rows, request.tokens}};
  std::vector<Part> parts;
  int64_t before = 0;
  for (const int64_t tokens : request.row_tokens) {
    const bool fits = !parts.empty() && parts.back().tokens + tokens <= limits.part_tokens &&
                      (limits.max_rows == 0 || parts.back().rows < limits.max_rows);
    if (!fits) parts.push_back({place, lane, &request, request.turn + before, 0, 0});
    ++parts.back().rows;
    parts.back().tokens += tokens;
    before += tokens;
  }
  return parts;
}

// Of what has not expired, in the order in which a batch takes them.
std::vector<Part> Sorted(const std::vector<Queued>& queue, Instant now, const Limits& limits,
                         const std::vector<int>& passed) {
  std::vector<Part> parts;
  std::vector<int> passes(limits.lanes);
  size_t place = 0;
  for (const Queued& request : queue) {
    if (request.deadline <= now) continue;
    const size_t lane =
        limits.lanes == 1 ? 0 : 2 * static_cast<size_t>(request.level - 1) + (request.late_at <= now ? 1 : 0);
    if (lane < passed.size()) passes[lane] = passed[lane];
    std::ranges::copy(PartsOf(request, place++, lane, limits), std::back_inserter(parts));
  }
  const auto most = static_cast<size_t>(std::ranges::max_element(passes) - passes.begin());
  const bool overdue = passes[most] >= kMostPassed;
  std::ranges::stable_sort(
      parts, {}, [&](const Part& part) { return std::tuple(!(overdue && part.lane == most), part.lane, part.turn); });
  return parts;
}

// Of each place how many rows; empty: none are to run.
std::map<size_t, int64_t> Expected(const std::vector<Part>& sorted, Instant now, const Limits& limits) {
  std::map<size_t, int64_t> rows;
  if (limits.max_rows == 0 && !sorted.empty()) return {{sorted[0].place, sorted[0].rows}};
  std::vector<uint64_t> classes;
  for (const Part& part : sorted) {
    if (std::ranges::find(classes, part.request->batch_class) == classes.end()) {
      classes.push_back(part.request->batch_class);
    }
  }
  if (limits.max_delay == absl::ZeroDuration() && !classes.empty()) classes.resize(1);
  for (const uint64_t batch_class : classes) {
    int64_t all_rows = 0, all_tokens = 0;
    bool full = false;
    Instant oldest = Instant::InfiniteFuture();
    rows.clear();
    for (const Part& part : sorted) {
      if (part.request->batch_class != batch_class) continue;
      oldest = std::min(oldest, part.request->arrival);
      full = full || (!rows.empty() && (all_rows + part.rows > limits.max_rows ||
                                        (limits.max_tokens > 0 && all_tokens + part.tokens > limits.max_tokens)));
      if (full) continue;
      rows[part.place] += part.rows;
      all_rows += part.rows;
      all_tokens += part.tokens;
      full = all_rows >= limits.max_rows || (limits.max_tokens > 0 && all_tokens >= limits.max_tokens);
    }
    if (full || limits.max_delay == absl::ZeroDuration() || oldest + limits.max_delay <= now) return rows;
  }
  return {};
}

std::vector<int> PassedAfter(const std::vector<Part>& sorted, const std::map<size_t, int64_t>& taken,
                             const Limits& limits, const std::vector<int>& passed) {
  if (limits.lanes == 1 || taken.empty()) return {};
  std::vector<int> after(limits.lanes);
  for (const Part& part : sorted) after[part.lane] = (part.lane < passed.size() ? passed[part.lane] : 0) + 1;
  for (const Part& part : sorted) {
    if (taken.contains(part.place)) after[part.lane] = 0;
  }
  return after;
}

TEST(DrawnQueuesTest, AreDecidedAsSortingSays) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int drawn = 0; drawn < 5000; ++drawn) {
    const bool tokens = draw(0, 1) == 1;
    Limits limits{.max_rows = draw(0, 4) == 0 ? 0 : draw(1, 12), .lanes = draw(0, 1) == 0 ? 1u : 6u};
    if (tokens) limits.max_tokens = draw(20, 60);
    if (tokens) limits.part_tokens = limits.max_tokens / 4;
    if (draw(0, 2) == 0) limits.max_delay = absl::Milliseconds(draw(1, 30));
    std::deque<std::vector<int64_t>> row_tokens;
    std::vector<Queued> queue(static_cast<size_t>(draw(0, 20)));
    int64_t arrival = 0;
    for (Queued& request : queue) {
      request.rows = draw(1, std::max<int64_t>(limits.max_rows, 1));
      request.arrival = At(arrival += draw(0, 4));
      request.turn = draw(0, 50);
      request.level = static_cast<int>(draw(1, 3));
      request.batch_class = static_cast<uint64_t>(draw(0, 2));
      if (draw(0, 5) == 0) request.deadline = At(draw(0, 99));
      if (draw(0, 2) == 0) request.late_at = At(draw(0, 99));
      if (!tokens) continue;
      auto& its = row_tokens.emplace_back(static_cast<size_t>(request.rows));
      for (int64_t& of_row : its) request.tokens += of_row = draw(1, 20);
      if (draw(0, 4) > 0 && its.size() > 1) request.row_tokens = its;
    }
    std::vector<int> passed(draw(0, 1) == 0 ? 0 : limits.lanes);
    for (int& its : passed) its = static_cast<int>(draw(0, kMostPassed));
    const Instant now = At(50);

    const Decided decided = DecideOn(queue, now, limits, passed);

    const std::vector<Part> sorted = Sorted(queue, now, limits, passed);
    const std::map<size_t, int64_t> expected = Expected(sorted, now, limits);
    std::map<size_t, int64_t> taken;
    for (size_t i = 0; i < decided.take.size(); ++i) taken[decided.take[i]] = decided.rows[i];
    ASSERT_EQ(taken, expected) << "draw " << drawn;
    ASSERT_EQ(decided.passed, PassedAfter(sorted, expected, limits, passed)) << "draw " << drawn;
  }
}

}  // namespace
}  // namespace swizzle
