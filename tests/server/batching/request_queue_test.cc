#include "server/batching/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Request `ticket` has as many rows.
RequestQueue QueueOf(std::initializer_list<Ticket> tickets) {
  RequestQueue queue;
  for (Ticket ticket : tickets) {
    auto pending = std::make_unique<Pending>();
    pending->ticket = ticket;
    pending->request.rows = static_cast<int64_t>(ticket);
    queue.Push(pending);
  }
  return queue;
}

std::vector<Ticket> TicketsOf(const PendingList& list) {
  std::vector<Ticket> tickets;
  for (const auto& pending : list) tickets.push_back(pending->ticket);
  return tickets;
}

PendingList Taken(RequestQueue& queue, const std::vector<Ticket>& tickets, const std::vector<int64_t>& rows) {
  PendingList out;
  queue.Take(tickets, rows, out);
  return out;
}

// Empties the queue, in the order of arrival.
std::vector<Ticket> Rest(RequestQueue& queue) {
  std::vector<Ticket> tickets;
  std::vector<int64_t> rows;
  for (const auto& [ticket, pending] : queue.requests()) tickets.push_back(ticket);
  std::ranges::sort(tickets);
  for (const Ticket ticket : tickets) rows.push_back(queue.requests().at(ticket)->waiting.rows);
  const PendingList rest = Taken(queue, tickets, rows);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.order().size(), 0u);
  return TicketsOf(rest);
}

TEST(RequestQueueTest, TakesWhatIsNamed) {
  RequestQueue queue = QueueOf({1, 2, 3, 4, 5, 6});
  EXPECT_THAT(TicketsOf(Taken(queue, {1, 3, 4, 6}, {1, 3, 4, 6})), ElementsAre(1, 3, 4, 6));
  EXPECT_THAT(Rest(queue), ElementsAre(2, 5));
}

TEST(RequestQueueTest, TakesNothingOrEverything) {
  RequestQueue queue = QueueOf({1, 2});
  EXPECT_THAT(Taken(queue, {}, {}), IsEmpty());
  EXPECT_THAT(TicketsOf(Taken(queue, {1, 2}, {1, 2})), ElementsAre(1, 2));
  EXPECT_THAT(Rest(queue), IsEmpty());
}

TEST(RequestQueueTest, TimeEndsWhoseDeadlineHasCome) {
  RequestQueue queue;
  const auto at = [](int ms) { return Instant() + absl::Milliseconds(ms); };
  for (const Ticket ticket : {1, 2, 3, 4, 5}) {
    auto pending = std::make_unique<Pending>();
    pending->ticket = ticket;
    if (ticket != 4) pending->request.deadline = at(10 - static_cast<int>(ticket));
    queue.Push(pending);
  }
  EXPECT_EQ(queue.order().NextDeadline(), at(5));
  PendingList expired;
  queue.PassTime(at(4), expired);
  EXPECT_THAT(expired, IsEmpty());
  queue.PassTime(at(7), expired);
  EXPECT_THAT(TicketsOf(expired), ElementsAre(5, 3));
  EXPECT_EQ(queue.order().NextDeadline(), at(8));
  queue.TakeTicket(2);
  queue.TakeTicket(1);
  EXPECT_EQ(queue.order().NextDeadline(), Instant::InfiniteFuture());
  EXPECT_THAT(Rest(queue), ElementsAre(4));
}

TEST(RequestQueueTest, TakesByTicket) {
  RequestQueue queue = QueueOf({1, 4, 9});
  EXPECT_EQ(queue.TakeTicket(5), nullptr);
  EXPECT_EQ(queue.TakeTicket(10), nullptr);
  EXPECT_EQ(queue.TakeTicket(4)->ticket, 4u);
  EXPECT_EQ(queue.TakeTicket(4), nullptr);
  EXPECT_THAT(Rest(queue), ElementsAre(1, 9));
}

TEST(RequestQueueTest, SummarisesWhatThePolicyNeeds) {
  RequestQueue queue;
  auto pending = std::make_unique<Pending>();
  pending->request.rows = 3;
  pending->request.deadline = Instant() + absl::Seconds(9);
  pending->arrival = Instant() + absl::Seconds(5);
  queue.Push(pending);
  const Queued* const waiting = queue.order().FirstOf(0);
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->rows, 3);
  EXPECT_EQ(waiting->arrival, Instant() + absl::Seconds(5));
  EXPECT_EQ(waiting->deadline, Instant() + absl::Seconds(9));
}

TEST(RequestQueueTest, KnowsWhatEachConnectionHas) {
  RequestQueue queue;
  for (Ticket ticket : {1, 2, 3, 4}) {
    auto pending = std::make_unique<Pending>();
    pending->ticket = ticket;
    pending->request.rows = static_cast<int64_t>(ticket);
    pending->request.connection = ticket % 2 == 0 ? 9 : 0;
    queue.Push(pending);
  }
  EXPECT_EQ(queue.LoadOf(9, 1).requests, 2);
  EXPECT_EQ(queue.LoadOf(9, 1).rows, 6);
  EXPECT_EQ(queue.LoadOf(0, 1).requests, 0) << "came on no connection";
  Taken(queue, {1, 2}, {1, 2});
  EXPECT_EQ(queue.LoadOf(9, 1).rows, 4);
  queue.TakeTicket(4);
  EXPECT_EQ(queue.LoadOf(9, 1).requests, 0);
  EXPECT_EQ(queue.load().requests, 1);
}

// A request with this ticket, of `rows` rows with ten tokens each.
std::unique_ptr<Pending> Sent(Ticket ticket, uint64_t connection, int64_t rows) {
  auto pending = std::make_unique<Pending>();
  pending->ticket = ticket;
  pending->request.rows = rows;
  pending->request.tokens = 10 * rows;
  pending->request.row_tokens.assign(static_cast<size_t>(rows), 10);
  pending->request.connection = connection;
  return pending;
}

const Limits kPartsOfTen = {.max_rows = 100, .max_tokens = 40, .part_tokens = 10};

// In the order of arrival.
std::vector<int64_t> TurnsOf(const RequestQueue& queue) {
  std::map<Ticket, int64_t> turns;
  for (const auto& [ticket, pending] : queue.requests()) turns[ticket] = pending->waiting.turn;
  std::vector<int64_t> in_order;
  for (const auto& [ticket, turn] : turns) in_order.push_back(turn);
  return in_order;
}

TEST(RequestQueueTest, TurnsGiveConnectionsEqualShares) {
  RequestQueue queue(kPartsOfTen);
  Ticket ticket = 0;
  const auto push = [&](uint64_t connection, int64_t rows) {
    auto pending = Sent(++ticket, connection, rows);
    queue.Push(pending);
  };
  push(7, 3);
  push(7, 2);
  push(8, 1);
  push(7, 1);  // a short one: what it sends beside long ones does not wait for these
  push(8, 1);
  EXPECT_THAT(TurnsOf(queue), ElementsAre(0, 30, 0, 0, 10));
  Taken(queue, {1, 2}, {3, 2});
  push(9, 1);
  push(8, 1);
  EXPECT_THAT(TurnsOf(queue), ElementsAre(0, 0, 10, 30, 30)) << "who comes now has no share of what was before";
}

TEST(RequestQueueTest, WhatEndsUntakenTakesNoTurn) {
  RequestQueue queue(kPartsOfTen);
  auto first = Sent(1, 7, 3), second = Sent(2, 7, 3), third = Sent(3, 8, 1);
  queue.Push(first);
  queue.Push(second);
  queue.TakeTicket(2);
  queue.Push(third);
  EXPECT_THAT(TurnsOf(queue), ElementsAre(0, 0));
}

TEST(RequestQueueTest, ARestReturnsToItsPlace) {
  RequestQueue queue(kPartsOfTen);
  auto first = Sent(1, 7, 5), second = Sent(2, 8, 1);
  first->request.deadline = Instant() + absl::Seconds(1);
  first->own_deadline = Instant() + absl::Seconds(9);
  queue.Push(first);
  queue.Push(second);
  PendingList out = Taken(queue, {1}, {2});
  EXPECT_EQ(out[0]->rows_taken, 2);
  EXPECT_EQ(out[0]->rows_left(), 3);
  EXPECT_EQ(out[0]->work_taken, 20);
  EXPECT_EQ(out[0]->work_left, 30);
  EXPECT_EQ(queue.load().work, 10);
  queue.Return(out[0]);
  EXPECT_EQ(queue.load().work, 40);
  const Queued& rest = queue.requests().at(1)->waiting;
  EXPECT_EQ(rest.rows, 3);
  EXPECT_EQ(rest.tokens, 30);
  EXPECT_EQ(rest.row_tokens.size(), 3u);
  EXPECT_EQ(rest.turn, 20);
  EXPECT_EQ(rest.deadline, Instant() + absl::Seconds(9)) << "it began in time";
  out = Taken(queue, {1}, {3});
  EXPECT_EQ(out[0]->rows_before, 2);
  EXPECT_EQ(out[0]->rows_left(), 0);
  EXPECT_EQ(queue.LoadOf(7, 1).requests, 0);
  EXPECT_THAT(Rest(queue), ElementsAre(2));
}

TEST(RequestQueueTest, WhatComesWhileAPartRunsGoesBehindTheRest) {
  RequestQueue queue(kPartsOfTen);
  auto first = Sent(1, 7, 5), second = Sent(2, 7, 5), third = Sent(3, 7, 5);
  queue.Push(first);
  PendingList out = Taken(queue, {1}, {2});
  queue.Push(second);
  EXPECT_THAT(TurnsOf(queue), ElementsAre(50));
  queue.Return(out[0]);
  EXPECT_THAT(TurnsOf(queue), ElementsAre(20, 50));
  out = Taken(queue, {1, 2}, {1, 1});
  for (const auto& pending : out) queue.Lose(*pending);
  queue.Push(third);
  EXPECT_THAT(TurnsOf(queue), ElementsAre(50)) << "a flow of which nothing comes back has no place to keep";
}

TEST(RequestQueueTest, WhatRunsAloneCountsWhole) {
  ModelSpec spec;
  spec.max_batch_size = 64;
  spec.max_batch_tokens = 1000;
  spec.dynamic_batching = false;
  RequestQueue queue(LimitsOf(spec));
  auto bulk = Sent(1, 7, 50);
  queue.Push(bulk);
  Queued query;
  query.tokens = 10;
  query.connection = 9;
  EXPECT_EQ(queue.WorkBefore(query), 500);
}

TEST(RequestQueueTest, KnowsTheWorkBeforeARequest) {
  RequestQueue queue(kPartsOfTen);
  auto bulk = Sent(1, 7, 50), other = Sent(2, 8, 1);
  queue.Push(bulk);
  queue.Push(other);
  Queued query;
  query.rows = 1;
  query.tokens = 10;
  query.connection = 9;
  EXPECT_EQ(queue.WorkBefore(query), 20) << "a part of the long one, and the short one";
  query.connection = 8;
  EXPECT_EQ(queue.WorkBefore(query), 30);
  query.connection = 7;
  query.rows = 5;
  query.tokens = 50;
  EXPECT_EQ(queue.WorkBefore(query), 510) << "behind its own";
  query.level = 2;
  EXPECT_EQ(queue.WorkBefore(query), 510);
}

TEST(RequestQueueTest, KnowsWhatEachLevelHas) {
  RequestQueue queue;
  for (Ticket ticket : {1, 2, 3, 4}) {
    auto pending = std::make_unique<Pending>();
    pending->ticket = ticket;
    pending->request.rows = static_cast<int64_t>(ticket);
    pending->request.level = ticket % 2 == 0 ? 1 : 3;
    pending->request.connection = 9;
    queue.Push(pending);
  }
  EXPECT_EQ(queue.LoadAt(1).rows, 6);
  EXPECT_EQ(queue.LoadAt(2).rows, 0);
  EXPECT_EQ(queue.LoadAt(4).rows, 0);
  EXPECT_EQ(queue.LoadUpTo(2).rows, 6);
  EXPECT_EQ(queue.LoadUpTo(3).rows, 10);
  EXPECT_EQ(queue.LoadOf(9, 2).requests, 2);
  EXPECT_EQ(queue.LoadOf(9, 3).requests, 4);
  queue.TakeTicket(4);
  EXPECT_EQ(queue.LoadAt(1).rows, 2);
  EXPECT_EQ(queue.LoadOf(9, 5).requests, 3);
}

}  // namespace
}  // namespace swizzle
