#include "model_loader/interpreter/memory/run_budget.h"

#include <gtest/gtest.h>

#include <memory>

#include "model_loader/interpreter/memory/block_range.h"
#include "model_loader/interpreter/values/array.h"

namespace swizzle::interpreter {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class RunBudgetTest : public ::testing::Test {
 protected:
  RunBudgetTest() { budget_->Limit(5 * kMiB); }

  const std::shared_ptr<RunBudget> budget_ = std::make_shared<RunBudget>();
  BlockRange one_{budget_}, other_{budget_};
};

TEST_F(RunBudgetTest, StoresTakeNoMoreTogether) {
  const BlockStore::Block block = one_.Take(3 * kMiB);
  ASSERT_NE(block.data, nullptr);
  EXPECT_EQ(other_.Take(3 * kMiB).data, nullptr);
  EXPECT_EQ(budget_->held(), static_cast<int64_t>(block.bytes));
  const BlockStore::Block smaller = other_.Take(kMiB);
  EXPECT_NE(smaller.data, nullptr);
  other_.Give(smaller);
  one_.Give(block);
}

TEST_F(RunBudgetTest, WhatOneKeepsAnotherMayHave) {
  one_.Give(one_.Take(3 * kMiB));
  EXPECT_GE(one_.kept_bytes(), 3 * kMiB);
  const BlockStore::Block block = other_.Take(3 * kMiB);
  EXPECT_NE(block.data, nullptr);
  EXPECT_EQ(one_.kept_bytes(), 0u);
  other_.Give(block);
}

TEST_F(RunBudgetTest, IdleSessionsKeepNothing) {
  for (BlockStore* const store : {&one_, &other_}) {
    store->BeginRun();
    store->Give(store->Take(kMiB));
  }
  budget_->FreeIdle();
  EXPECT_GE(one_.kept_bytes(), kMiB);
  one_.BeginRun();
  budget_->FreeIdle();
  EXPECT_GE(one_.kept_bytes(), kMiB);
  EXPECT_EQ(other_.kept_bytes(), 0u);
  budget_->FreeIdle();
  EXPECT_EQ(budget_->held(), 0);
}

TEST_F(RunBudgetTest, HoldsNothingOfStoresThatAreGone) {
  {
    BlockRange third(budget_);
    third.Give(third.Take(kMiB));
    EXPECT_GE(budget_->held(), static_cast<int64_t>(kMiB));
  }
  EXPECT_EQ(budget_->held(), 0);
  budget_->FreeIdle();
}

TEST_F(RunBudgetTest, ARunThatFindsNoRoomSaysSo) {
  const BlockStore::Block block = one_.Take(4 * kMiB);
  const auto memory = Memory::New({.budget = budget_});
  const Status status = memory->Allocate(DType::kFloat32, {kMiB}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "there is no room for 4194304 bytes more");
  one_.Give(block);
  EXPECT_TRUE(memory->Allocate(DType::kFloat32, {kMiB}).ok());
}

}  // namespace
}  // namespace swizzle::interpreter
