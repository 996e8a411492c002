#include "model_loader/fallback/block_store.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "model_loader/fallback/array.h"

namespace swizzle::fallback {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

TEST(BlockStoreTest, GivesTheSameBlockAgain) {
  BlockStore store;
  const BlockStore::Block first = store.Take(kLarge);
  ASSERT_NE(first.data, nullptr);
  EXPECT_GE(first.bytes, kLarge);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 64, 0u);
  std::memset(first.data, 1, first.bytes);
  store.Give(first);
  EXPECT_EQ(store.kept_bytes(), first.bytes);
  const BlockStore::Block again = store.Take(kLarge - 100);
  EXPECT_EQ(again.data, first.data);
  EXPECT_EQ(store.kept_bytes(), 0u);
  store.Give(again);
}

TEST(BlockStoreTest, NoBlockIsTakenThatIsMuchTooLarge) {
  BlockStore store;
  store.Give(store.Take(4 * kLarge));
  const BlockStore::Block block = store.Take(kLarge);
  EXPECT_LT(block.bytes, 2 * kLarge);
  EXPECT_GE(store.kept_bytes(), 4 * kLarge);
  store.Give(block);
}

TEST(BlockStoreTest, KeepsNoSmallBlocksAndNotTooMany) {
  BlockStore store(2 * kLarge);
  store.Give(store.Take(100));
  EXPECT_EQ(store.kept_bytes(), 0u);
  BlockStore::Block blocks[3];
  for (auto& block : blocks) block = store.Take(kLarge);
  for (auto& block : blocks) store.Give(block);
  EXPECT_EQ(store.kept_bytes(), 2 * kLarge);
}

TEST(BlockStoreTest, WhatTwoRunsDidNotTakeIsFreed) {
  BlockStore store;
  store.BeginRun();
  store.Give(store.Take(kLarge));
  store.Give(store.Take(3 * kLarge));
  for (int run = 0; run < 3; ++run) {
    store.BeginRun();
    store.Give(store.Take(kLarge));
  }
  EXPECT_EQ(store.kept_bytes(), kLarge);
}

TEST(BlockStoreTest, ImpossibleSizesAreNoBlocks) {
  BlockStore store;
  EXPECT_EQ(store.Take(SIZE_MAX / 4).data, nullptr);
}

TEST(BlockStoreTest, ResultsMayOutliveTheRunThatMadeThem) {
  auto store = std::make_shared<BlockStore>();
  StatusOr<Array> array = Memory::New({}, store)->Allocate(DType::kFloat32, {1000, 1000});
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(store->kept_bytes(), 0u);
  *array = Array();
  EXPECT_GE(store->kept_bytes(), 4'000'000u);
}

}  // namespace
}  // namespace swizzle::fallback
