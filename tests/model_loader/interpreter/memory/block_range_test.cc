#include "model_loader/interpreter/memory/block_range.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "model_loader/interpreter/values/array.h"

namespace swizzle::interpreter {
namespace {

using Block = BlockStore::Block;

constexpr size_t kLarge = size_t{1} << 20;

TEST(BlockRangeTest, GivesTheSameMemoryAgain) {
  BlockRange store;
  const Block first = store.Take(kLarge);
  ASSERT_NE(first.data, nullptr);
  EXPECT_GE(first.bytes, kLarge);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 64, 0u);
  std::memset(first.data, 1, first.bytes);
  store.Give(first);
  EXPECT_EQ(store.kept_bytes(), first.bytes);
  const Block again = store.Take(kLarge - 100);
  EXPECT_EQ(again.data, first.data);
  store.Give(again);
}

TEST(BlockRangeTest, RunsOfManyShapesKeepNoMoreThanTheLargest) {
  BlockRange store;
  for (size_t run = 1; run <= 100; ++run) {
    store.BeginRun();
    const size_t bytes = (run * 37 % 100 + 1) * kLarge / 8;
    const Block blocks[] = {store.Take(bytes), store.Take(2 * bytes)};
    for (const Block& block : blocks) store.Give(block);
  }
  EXPECT_EQ(store.kept_bytes(), 3 * 100 * kLarge / 8);
}

TEST(BlockRangeTest, GapsThatMeetAreOne) {
  BlockRange store;
  Block blocks[4];
  for (Block& block : blocks) block = store.Take(kLarge);
  for (const int i : {0, 2, 1}) store.Give(blocks[i]);
  const Block whole = store.Take(3 * kLarge);
  EXPECT_EQ(whole.data, blocks[0].data);
  store.Give(blocks[3]);
  store.Give(whole);
  const Block all = store.Take(4 * kLarge);
  EXPECT_EQ(all.data, blocks[0].data);
  store.Give(all);
}

TEST(BlockRangeTest, BlocksInAnyOrderHoldWhatWasWritten) {
  BlockRange store;
  std::mt19937 random(1);
  std::vector<std::pair<Block, int>> held;
  const auto check_and_give = [&](size_t i) {
    const auto& [block, value] = held[i];
    for (const size_t at : {size_t{0}, block.bytes / 2, block.bytes - 1}) ASSERT_EQ(block.data[at], std::byte(value));
    store.Give(block);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (int step = 0; step < 3000; ++step) {
    if (held.size() < 40 && random() % 2 == 0) {
      const Block block = store.Take(1 + random() % (kLarge / 2));
      ASSERT_NE(block.data, nullptr);
      const int value = static_cast<int>(random() % 256);
      std::memset(block.data, value, block.bytes);
      held.emplace_back(block, value);
    } else if (!held.empty()) {
      check_and_give(random() % held.size());
    }
    if (step % 64 == 0) store.BeginRun();
    if (step % 257 == 0) store.FreeKept();
  }
  while (!held.empty()) check_and_give(held.size() - 1);
  EXPECT_LE(store.kept_bytes(), 40 * kLarge / 2);
  store.FreeKept();
  EXPECT_EQ(store.kept_bytes(), 0u);
}

TEST(BlockRangeTest, GivesSmallBlocksAgain) {
  auto budget = std::make_shared<RunBudget>();
  BlockRange store(budget);
  size_t held = 0;
  for (const size_t bytes : {size_t{0}, size_t{100}, size_t{4096}, size_t{4097}, BlockRange::kLeastBytes - 1}) {
    const Block block = store.Take(bytes);
    ASSERT_NE(block.data, nullptr);
    ASSERT_GE(block.bytes, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % 64, 0u);
    std::memset(block.data, 1, block.bytes);
    store.Give(block);
    held += block.bytes;
    EXPECT_EQ(store.kept_bytes(), held);
    const Block again = store.Take(bytes);
    EXPECT_EQ(again.data, block.data) << bytes;
    store.Give(again);
  }
  EXPECT_EQ(budget->held(), static_cast<int64_t>(held));
  store.FreeKept();
  EXPECT_EQ(store.kept_bytes(), 0u);
  EXPECT_EQ(budget->held(), 0);
}

TEST(BlockRangeTest, KeepsNotTooMuch) {
  BlockRange store;
  std::vector<Block> small;
  for (int i = 0; i < 40; ++i) small.push_back(store.Take(BlockRange::kLeastBytes - 1));
  for (const Block& block : small) store.Give(block);
  EXPECT_EQ(store.kept_bytes(), BlockRange::kMostSmall);
  store.FreeKept();
  store.Give(store.Take(BlockRange::kMostKept + 3 * kLarge));
  EXPECT_EQ(store.kept_bytes(), BlockRange::kMostKept / 2);
}

TEST(BlockRangeTest, WhatNoRunReachedForLongIsFreed) {
  BlockRange store;
  store.BeginRun();
  store.Give(store.Take(3 * kLarge));
  for (int run = 0; run < BlockRange::kRunsRemembered / 2; ++run) {
    store.BeginRun();
    store.Give(store.Take(kLarge));
  }
  EXPECT_EQ(store.kept_bytes(), 3 * kLarge);
  for (int run = 0; run < 2 * BlockRange::kRunsRemembered; ++run) {
    store.BeginRun();
    store.Give(store.Take(kLarge));
  }
  EXPECT_EQ(store.kept_bytes(), kLarge);
}

TEST(BlockRangeTest, WhatDoesNotFitComesFromTheHeap) {
  auto budget = std::make_shared<RunBudget>();
  BlockRange store(budget, 4 * kLarge);
  const Block within = store.Take(3 * kLarge), beyond = store.Take(2 * kLarge);
  ASSERT_NE(beyond.data, nullptr);
  std::memset(beyond.data, 1, beyond.bytes);
  EXPECT_EQ(budget->held(), static_cast<int64_t>(5 * kLarge));
  store.Give(beyond);
  store.Give(within);
  EXPECT_EQ(store.kept_bytes(), 3 * kLarge);
  EXPECT_EQ(budget->held(), static_cast<int64_t>(3 * kLarge));
}

TEST(BlockRangeTest, GapsBelowAHeldBlockAreNotChargedWhereMemoryIsShort) {
  auto budget = std::make_shared<RunBudget>();
  budget->Limit(5 * kLarge);
  BlockRange store(budget), other(budget);
  const Block first = store.Take(2 * kLarge), held = store.Take(kLarge);
  held.data[kLarge - 1] = std::byte{7};
  store.Give(first);
  EXPECT_EQ(store.kept_bytes(), 2 * kLarge);
  const Block larger = store.Take(3 * kLarge);
  ASSERT_NE(larger.data, nullptr) << "only 4 MiB would be held";
  std::memset(larger.data, 1, larger.bytes);
  const Block elsewhere = other.Take(kLarge);
  ASSERT_NE(elsewhere.data, nullptr);
  EXPECT_EQ(budget->held(), static_cast<int64_t>(5 * kLarge));
  EXPECT_EQ(store.Take(2 * kLarge).data, nullptr) << "the gap holds it, but there is no memory for it";
  store.Give(larger);
  const Block again = store.Take(2 * kLarge);
  ASSERT_EQ(again.data, first.data);
  std::memset(again.data, 1, again.bytes);
  EXPECT_EQ(held.data[kLarge - 1], std::byte{7});
  store.Give(again);
  store.Give(held);
  other.Give(elsewhere);
  store.FreeKept();
  other.FreeKept();
  EXPECT_EQ(budget->held(), 0);
}

TEST(BlockRangeTest, ThreadsShareABudgetThatTheyEmpty) {
  auto budget = std::make_shared<RunBudget>();
  budget->Limit(8 * kLarge);
  BlockRange stores[] = {BlockRange(budget), BlockRange(budget)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      for (int step = 0; step < 500; ++step) {
        BlockRange& store = stores[random() % 2];
        const Block block = store.Take(1 + random() % (2 * kLarge));
        if (block.data == nullptr) continue;
        std::memset(block.data, t, block.bytes);
        for (const size_t at : {size_t{0}, block.bytes - 1}) EXPECT_EQ(block.data[at], std::byte(t));
        store.Give(block);
        if (step % 50 == 0) store.BeginRun();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(budget->held(), static_cast<int64_t>(8 * kLarge));
  for (BlockRange& store : stores) store.FreeKept();
  EXPECT_EQ(budget->held(), 0);
}

TEST(BlockRangeTest, WithoutAddressesNothingIsKept) {
  BlockRange store(nullptr, 0);
  store.Give(store.Take(kLarge));
  EXPECT_EQ(store.kept_bytes(), 0u);
}

TEST(BlockRangeTest, ImpossibleSizesAreNoBlocks) {
  BlockRange store;
  EXPECT_EQ(store.Take(SIZE_MAX / 4).data, nullptr);
}

TEST(BlockRangeTest, ResultsMayOutliveTheRunThatMadeThem) {
  auto store = std::make_shared<BlockRange>();
  StatusOr<Array> array = Memory::New({}, store)->Allocate(DType::kFloat32, {1000, 1000});
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(store->kept_bytes(), 0u);
  *array = Array();
  EXPECT_GE(store->kept_bytes(), 4'000'000u);
}

}  // namespace
}  // namespace swizzle::interpreter
