// Lists of steps on vectors, written down by hand: where the slots lie that a last step reads.
#include "model_loader/plan/run/borrowed_slots.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

class BorrowedSlotsTest : public ::testing::Test {
 protected:
  int NewSlot(int64_t channels = 8) {
    Slot& slot = list_.slots.emplace_back();
    slot.value.channels = channels;
    slot.value.height = slot.value.width = 1;
    slot.first_step = slot.last_step = static_cast<int>(list_.steps.size());
    return static_cast<int>(list_.slots.size()) - 1;
  }

  int AddStep(Op op, std::vector<int> inputs) {
    for (const int input : inputs) list_.slots[input].last_step = static_cast<int>(list_.steps.size());
    const int output = NewSlot();
    Step& step = list_.steps.emplace_back();
    step.problem.SetOp(op);
    step.inputs = std::move(inputs);
    step.output = output;
    return output;
  }

  // Where each slot lies: 0: in the arena, -1: where the input is, else at this output, from 1 on.
  std::vector<int> Places(const std::vector<int>& outputs, bool on_host = true) {
    list_.inputs = {x_};
    list_.outputs = outputs;
    for (const int output : outputs) list_.slots[output].last_step = std::numeric_limits<int>::max();
    std::vector<std::byte> memory(outputs.size() + 1);
    const std::byte* const input = memory.data();
    std::vector<std::byte*> of_outputs;
    for (size_t i = 0; i < outputs.size(); ++i) of_outputs.push_back(memory.data() + i + 1);
    const BorrowedSlots slots(list_, {{}, {&input, 1}, of_outputs}, on_host);
    std::vector<int> places;
    for (const std::byte* const at : slots.elsewhere()) {
      places.push_back(at == nullptr ? 0 : at == input ? -1 : static_cast<int>(at - input));
    }
    return places;
  }

  using Expected = std::vector<int>;
  StepList list_;
  const int x_ = NewSlot();
};

TEST_F(BorrowedSlotsTest, WhatALastStepWorksOnLiesWhereItsOutputGoes) {
  const int sums = AddStep(Op::kConv, {x_}), y = AddStep(Op::kSoftmax, {sums});
  EXPECT_EQ(Places({y}), (Expected{-1, 1, 1}));
  EXPECT_EQ(Places({y}, /*on_host=*/false), (Expected{-1, 0, 1}));
}

TEST_F(BorrowedSlotsTest, OthersReadWhatTheyRead) {
  const int sums = AddStep(Op::kConv, {x_}), y = AddStep(Op::kSoftmax, {sums}), z = AddStep(Op::kConv, {sums});
  EXPECT_EQ(Places({y, z}), (Expected{-1, 0, 1, 2}));
}

TEST_F(BorrowedSlotsTest, AnOutputKeepsItsPlace) {
  const int sums = AddStep(Op::kConv, {x_}), y = AddStep(Op::kSoftmax, {sums});
  EXPECT_EQ(Places({sums, y}), (Expected{-1, 1, 2}));
  EXPECT_EQ(Places({y, sums}), (Expected{-1, 2, 1}));
}

TEST_F(BorrowedSlotsTest, AnInputStaysAsItWas) {
  const int y = AddStep(Op::kFunction, {x_});
  EXPECT_EQ(Places({y}), (Expected{-1, 1}));
}

TEST_F(BorrowedSlotsTest, StepsThatWorkNotInPlaceKeepBoth) {
  const int sums = AddStep(Op::kConv, {x_}), y = AddStep(Op::kConv, {sums});
  EXPECT_EQ(Places({y}), (Expected{-1, 0, 1}));
}

}  // namespace
}  // namespace swizzle
