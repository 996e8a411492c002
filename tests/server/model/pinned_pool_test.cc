#include "server/model/pinned_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "kernels/cpu/cpu_backend.h"

namespace swizzle {
namespace {

constexpr size_t kPiece = kBufferAlignment;

std::shared_ptr<PinnedPool> NewPool(size_t bytes) {
  static const std::unique_ptr<Backend> backend = NewCpuBackend();
  return std::make_shared<PinnedPool>(*backend->Allocate(bytes));
}

TEST(PinnedPoolTest, GivesUntilNoGapIsLargeEnough) {
  const auto pool = NewPool(4 * kPiece);
  const auto first = pool->Take(1), second = pool->Take(2 * kPiece);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(second.get() - first.get(), static_cast<ptrdiff_t>(kPiece));
  EXPECT_EQ(pool->Take(kPiece + 1), nullptr);
  EXPECT_NE(pool->Take(kPiece), nullptr);
}

// Pieces that come back in any order are one gap again.
TEST(PinnedPoolTest, JoinsWhatComesBack) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    const auto pool = NewPool(4 * kPiece);
    std::vector<std::shared_ptr<std::byte>> pieces;
    for (int i = 0; i < 4; ++i) pieces.push_back(pool->Take(kPiece));
    for (const int i : order) {
      EXPECT_EQ(pool->Take(4 * kPiece), nullptr);
      pieces[static_cast<size_t>(i)].reset();
    }
    EXPECT_NE(pool->Take(4 * kPiece), nullptr);
  } while (std::ranges::next_permutation(order).found);
}

TEST(PinnedPoolTest, WhatWasTakenOutlivesThePool) {
  auto pool = NewPool(kPiece);
  const auto piece = pool->Take(kPiece);
  pool.reset();
  std::fill_n(piece.get(), kPiece, std::byte{1});
}

TEST(PinnedPoolTest, KnowsItsOwn) {
  const auto pool = NewPool(2 * kPiece);
  const auto piece = pool->Take(kPiece);
  const std::vector<std::byte> other(kPiece);
  EXPECT_TRUE(pool->Holds({piece.get(), kPiece}));
  EXPECT_FALSE(pool->Holds({piece.get(), 2 * kPiece + 1}));
  EXPECT_FALSE(pool->Holds(other));
}

// What two threads hold at the same time never overlaps.
TEST(PinnedPoolTest, ThreadsShareIt) {
  const auto pool = NewPool(8 * kPiece);
  std::vector<std::thread> threads;
  for (unsigned t = 1; t <= 3; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t);
      for (int i = 0; i < 2000; ++i) {
        const size_t bytes = 1 + random() % (3 * kPiece);
        const auto piece = pool->Take(bytes);
        if (piece == nullptr) continue;
        std::fill_n(piece.get(), bytes, static_cast<std::byte>(t));
        ASSERT_TRUE(std::all_of(piece.get(), piece.get() + bytes, [&](std::byte b) { return b == std::byte(t); }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(pool->Take(8 * kPiece), nullptr);
}

}  // namespace
}  // namespace swizzle
