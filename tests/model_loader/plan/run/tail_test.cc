#include "model_loader/plan/run/tail.h"

#include <gtest/gtest.h>

#include <vector>

namespace swizzle {
namespace {

constexpr int kToTheEnd = 1000;  // of an output

// Alive from step to step, of so many channels in a layout.
Slot SlotOf(int first_step, int last_step, int64_t channels, Layout layout = Layout::kNchw) {
  Slot slot;
  slot.value.channels = channels;
  slot.storage.layout = layout;
  slot.first_step = first_step;
  slot.last_step = last_step;
  return slot;
}

// A chain of three steps: input, two values, output.
std::vector<Slot> Chain(int64_t first, int64_t second) {
  return {SlotOf(0, 0, 100000), SlotOf(0, 1, first), SlotOf(1, 2, second), SlotOf(2, kToTheEnd, 10)};
}

TEST(TailTest, BeginsBehindTheFirstSmallValue) {
  const std::vector<Step> steps(3);
  const auto tail = FindTail(steps, Chain(100000, 4096));
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->first_step, 2);
  EXPECT_EQ(tail->slot, 2);
  EXPECT_EQ(tail->row_bytes, 16384u);
  EXPECT_EQ(FindTail(steps, Chain(4096, 4096))->first_step, 1);
  EXPECT_FALSE(FindTail(steps, Chain(100000, 4097)));
}

TEST(TailTest, ReadsOneValueWithItsRowsInARow) {
  const std::vector<Step> steps(3);
  std::vector<Slot> slots = Chain(100000, 64);
  slots[2].storage.layout = Layout::kPanels;
  EXPECT_FALSE(FindTail(steps, slots));
  slots = Chain(100000, 64);
  slots[1].last_step = 2;  // a residual
  EXPECT_FALSE(FindTail(steps, slots));
  slots = Chain(100000, 64);
  slots.push_back(SlotOf(0, kToTheEnd, 8));  // an output of the first step
  EXPECT_FALSE(FindTail(steps, slots));
}

// What a decoder makes of a small value is better computed in parts, too.
TEST(TailTest, WritesNothingLarge) {
  EXPECT_FALSE(FindTail(std::vector<Step>(3), Chain(64, 100000)));
  EXPECT_EQ(FindTail(std::vector<Step>(3), Chain(64, 4096))->first_step, 1);
}

// Lists for small and large batches cut at the same value, or not at all.
TEST(TailTest, IsTheSameInAllLists) {
  StepList small, large;
  small.steps.resize(3);
  large.steps.resize(4);
  small.slots = Chain(4096, 64);
  large.slots = {SlotOf(0, 0, 100000), SlotOf(0, 1, 4096, Layout::kRows), SlotOf(1, 2, 4096, Layout::kPanels),
                 SlotOf(2, 3, 64), SlotOf(3, kToTheEnd, 10)};
  for (size_t i = 0; i < small.slots.size(); ++i) small.slots[i].value_index = static_cast<int>(i);
  for (size_t i = 0; i < large.slots.size(); ++i) large.slots[i].value_index = static_cast<int>(i < 2 ? i : i - 1);
  std::vector<StepList> lists = {small, large};
  SetTails(lists);
  ASSERT_TRUE(lists[0].tail && lists[1].tail);
  EXPECT_EQ(lists[0].tail->slot, 2);
  EXPECT_EQ(lists[1].tail->slot, 3);
  EXPECT_EQ(lists[0].tail->row_bytes, lists[1].tail->row_bytes);
  lists = {small, large};
  lists[0].slots[2].storage.layout = Layout::kPanels;
  SetTails(lists);
  EXPECT_FALSE(lists[0].tail || lists[1].tail);
}

TEST(TailTest, IsNotTheWholePlan) {
  EXPECT_FALSE(FindTail(std::vector<Step>(1), std::vector<Slot>{SlotOf(0, 0, 8), SlotOf(0, kToTheEnd, 8)}));
}

}  // namespace
}  // namespace swizzle
