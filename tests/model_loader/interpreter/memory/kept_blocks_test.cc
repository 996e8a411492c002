#include "model_loader/interpreter/memory/kept_blocks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace swizzle::interpreter {
namespace {

using Block = BlockStore::Block;

constexpr size_t kLarge = size_t{1} << 20;

class Heap final : public BlockSource {
 public:
  std::byte* Allocate(size_t bytes) override { return static_cast<std::byte*>(std::aligned_alloc(64, bytes)); }
  void Free(std::byte* data) override { std::free(data); }
};

TEST(KeptBlocksTest, GivesTheSameBlockAgain) {
  KeptBlocks store(std::make_unique<Heap>(), {});
  const Block first = store.Take(kLarge);
  store.Give(first);
  EXPECT_EQ(store.kept_bytes(), kLarge);
  const Block again = store.Take(kLarge - 100);
  EXPECT_EQ(again.data, first.data);
  EXPECT_EQ(again.bytes, first.bytes);
  EXPECT_EQ(store.kept_bytes(), 0u);
  store.Give(again);
}

TEST(KeptBlocksTest, NoBlockIsTakenThatIsMuchTooLarge) {
  KeptBlocks store(std::make_unique<Heap>(), {.larger = 2});
  store.Give(store.Take(4 * kLarge));
  const Block small = store.Take(kLarge), half = store.Take(2 * kLarge);
  EXPECT_EQ(small.bytes, kLarge);
  EXPECT_EQ(half.bytes, 4 * kLarge);
  store.Give(small);
  store.Give(half);
}

TEST(KeptBlocksTest, KeepsNotTooMany) {
  KeptBlocks store(std::make_unique<Heap>(), {.most_bytes = 2 * kLarge});
  Block blocks[3];
  for (Block& block : blocks) block = store.Take(kLarge);
  for (const Block& block : blocks) store.Give(block);
  EXPECT_EQ(store.kept_bytes(), 2 * kLarge);
}

TEST(KeptBlocksTest, WhatTwoRunsDidNotTakeIsFreed) {
  KeptBlocks store(std::make_unique<Heap>(), {});
  store.BeginRun();
  store.Give(store.Take(kLarge));
  store.Give(store.Take(3 * kLarge));
  for (int run = 0; run < 3; ++run) {
    store.BeginRun();
    store.Give(store.Take(kLarge));
  }
  EXPECT_EQ(store.kept_bytes(), kLarge);
}

}  // namespace
}  // namespace swizzle::interpreter
