#include "model_loader/interpreter/memory/kept_blocks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace swizzle::interpreter {
namespace {

using Block = BlockStore::Block;

constexpr size_t kLargeBlock = size_t{1} << 20;

class Heap final : public BlockSource {
 public:
  std::byte* Allocate(size_t bytes) override { return static_cast<std::byte*>(std::aligned_alloc(64, bytes)); }
  void Free(std::byte* data) override { std::free(data); }
};

TEST(KeptBlocksTest, GivesTheSameBlockAgain) {
  KeptBlocks store(std::make_unique<Heap>(), {});
  const Block first = store.Take(kLargeBlock);
  store.Give(first);
  EXPECT_EQ(store.kept_bytes(), kLargeBlock);
  const Block again = store.Take(kLargeBlock - 100);
  EXPECT_EQ(again.data, first.data);
  EXPECT_EQ(again.bytes, first.bytes);
  EXPECT_EQ(store.kept_bytes(), 0u);
  store.Give(again);
}

TEST(KeptBlocksTest, NoBlockIsTakenThatIsMuchTooLarge) {
  KeptBlocks store(std::make_unique<Heap>(), {.larger = 2});
  store.Give(store.Take(4 * kLargeBlock));
  const Block small = store.Take(kLargeBlock), half = store.Take(2 * kLargeBlock);
  EXPECT_EQ(small.bytes, kLargeBlock);
  EXPECT_EQ(half.bytes, 4 * kLargeBlock);
  store.Give(small);
  store.Give(half);
}

TEST(KeptBlocksTest, KeepsNotTooMany) {
  KeptBlocks store(std::make_unique<Heap>(), {.most_bytes = 2 * kLargeBlock});
  Block blocks[3];
  for (Block& block : blocks) block = store.Take(kLargeBlock);
  for (const Block& block : blocks) store.Give(block);
  EXPECT_EQ(store.kept_bytes(), 2 * kLargeBlock);
}

TEST(KeptBlocksTest, WhatTwoRunsDidNotTakeIsFreed) {
  KeptBlocks store(std::make_unique<Heap>(), {});
  store.BeginRun();
  store.Give(store.Take(kLargeBlock));
  store.Give(store.Take(3 * kLargeBlock));
  for (int run = 0; run < 3; ++run) {
    store.BeginRun();
    store.Give(store.Take(kLargeBlock));
  }
  EXPECT_EQ(store.kept_bytes(), kLargeBlock);
}

}  // namespace
}  // namespace swizzle::interpreter
