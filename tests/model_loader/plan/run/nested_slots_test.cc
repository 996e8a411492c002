#include "model_loader/plan/run/nested_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/layout.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/network_builder.h"
#include "tests/support/network_reference.h"
#include "tests/support/plan_runs.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;

// A list whose slots are images of 8x8, written down by hand.
class NestedSlotsTest : public ::testing::Test {
 protected:
  int NewSlot(int64_t channels) {
    list_.slots.emplace_back();
    list_.slots.back().value.channels = channels;
    list_.slots.back().value.height = list_.slots.back().value.width = side_;
    list_.slots.back().storage = {layout_, dtype_};
    return static_cast<int>(list_.slots.size()) - 1;
  }

  int ConcatOf(std::vector<int> inputs) {
    ConcatParts parts{static_cast<int32_t>(inputs.size())};
    int64_t channels = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      channels += parts.sizes[i] = static_cast<int32_t>(list_.slots[inputs[i]].value.channels);
    }
    return AddStep({Op::kConcat, parts}, std::move(inputs), channels);
  }

  int SliceOf(int input, int64_t first, int64_t channels) {
    return AddStep({Op::kSlice, ChannelRange{first}}, {input}, channels);
  }

  int RotaryOf(int input) {
    const int64_t channels = list_.slots[input].value.channels;
    const int step = static_cast<int>(list_.steps.size());
    list_.slots[input].last_step = step;
    return AddStep({Op::kRotary, Rotation{1, 4, 2}}, {input}, channels);
  }

  void ExpectIn(int slot, int within, int64_t channel, int64_t batch = 1) {
    const SlotPlace place = NestSlots(list_, batch)[slot];
    EXPECT_EQ(place.within, within);
    const bool rows = layout_ == Layout::kRows || layout_ == Layout::kBatched;
    const int64_t elements = layout_ == Layout::kNhwc ? channel : channel * side_ * side_;
    EXPECT_EQ(place.row, rows ? channel : 0);
    EXPECT_EQ(place.offset, rows ? 0 : elements * ElementBytes(dtype_));
    EXPECT_EQ(place.channels, list_.slots[within].value.channels);
  }
  void ExpectAlone(int slot, int64_t batch = 1) { ExpectIn(slot, slot, 0, batch); }

  StepList list_;
  // A layer that takes and writes a pitch, or does not.
  int LayerOf(int input, const Kernel* kernel) {
    const int output = AddStep({Op::kFunction, Function{}}, {input}, list_.slots[input].value.channels);
    list_.steps.back().kernel = kernel;
    return output;
  }

  Layout layout_ = Layout::kNchw;
  DType dtype_ = DType::kFloat32;
  int64_t side_ = 8;
  const Kernel whole_ = {};
  const Kernel pitched_ = Pitched({}, [](const Problem&) { return true; });

 private:
  int AddStep(const Operator& operator_, std::vector<int> inputs, int64_t channels) {
    Step step;
    step.kernel = &pitched_;
    step.inputs = std::move(inputs);
    step.output = NewSlot(channels);
    step.problem = {operator_, list_.slots[step.inputs[0]].value.WithBatch(1),
                    list_.slots[step.output].value.WithBatch(1)};
    step.problem.from = step.problem.to = {layout_, dtype_};
    list_.steps.push_back(std::move(step));
    return list_.steps.back().output;
  }
};

// In any layout and batch: what is turned is of tokens.
TEST_F(NestedSlotsTest, WhatIsTurnedStaysWhereItIs) {
  side_ = 1;
  for (const Layout layout : {Layout::kNchw, Layout::kPanels, Layout::kRows, Layout::kNhwc}) {
    list_ = {};
    layout_ = layout;
    const int a = NewSlot(12), b = RotaryOf(a);
    for (const int64_t batch : {1, 5}) ExpectIn(b, a, 0, batch);
    list_.slots[a].last_step = 1;
    ExpectAlone(b);
    if (layout == Layout::kRows) {  // a Slice of it would be turned, too
      list_ = {};
      const int c = NewSlot(12), part = SliceOf(c, 4, 4), turned = RotaryOf(c);
      ExpectIn(part, c, 4);
      ExpectAlone(turned);
      continue;
    }
    list_.slots[a].last_step = 0;
    list_.outputs = {b};
    ExpectAlone(b);
  }
}

TEST_F(NestedSlotsTest, OperandsLieInTheirConcat) {
  const int a = NewSlot(3), b = NewSlot(5), all = ConcatOf({a, b});
  ExpectIn(a, all, 0);
  ExpectIn(b, all, 3);
  ExpectAlone(all);
  ExpectAlone(a, 2);  // channels of two images are not one behind the other
  ExpectAlone(b, 2);
}

TEST_F(NestedSlotsTest, SlicesLieInWhatTheyAreOf) {
  const int a = NewSlot(8), left = SliceOf(a, 0, 3), right = SliceOf(a, 2, 6);
  ExpectIn(left, a, 0);
  ExpectIn(right, a, 2);
  ExpectAlone(right, 2);
}

TEST_F(NestedSlotsTest, NestsSeveralTimes) {
  const int a = NewSlot(2), b = NewSlot(6), inner = ConcatOf({a, b}), part = SliceOf(inner, 1, 4);
  const int outer = ConcatOf({NewSlot(4), inner});
  ExpectIn(inner, outer, 4);
  ExpectIn(b, outer, 6);
  ExpectIn(part, outer, 5);
}

TEST_F(NestedSlotsTest, ASlotLiesInOne) {
  const int a = NewSlot(8), part = SliceOf(a, 4, 4);
  const int twice = ConcatOf({a, a, part}), again = ConcatOf({a, part});
  ExpectIn(a, twice, 0);
  ExpectIn(part, twice, 4);
  ExpectAlone(again);
}

TEST_F(NestedSlotsTest, PortsLieAlone) {
  const int a = NewSlot(8), b = NewSlot(8), part = SliceOf(a, 0, 4), all = ConcatOf({a, b, part}),
            rest = ConcatOf({b, part});
  list_.inputs = {a, -1};
  list_.outputs = {all};
  ExpectAlone(a);
  ExpectAlone(all);
  ExpectIn(b, rest, 0);
  ExpectIn(part, rest, 8);
}

TEST_F(NestedSlotsTest, BlocksOfChannelsStayWhole) {
  layout_ = Layout::kBlocked16;
  const int a = NewSlot(32), b = NewSlot(24), c = NewSlot(16), d = NewSlot(8), all = ConcatOf({a, b, c, d});
  const int part = SliceOf(all, 16, 16), other = SliceOf(all, 8, 16);
  ExpectIn(a, all, 0);
  ExpectAlone(b);
  ExpectAlone(c);
  ExpectAlone(d);
  ExpectIn(part, all, 16);
  ExpectAlone(other);
}

TEST_F(NestedSlotsTest, RowsLieInEachOtherAtAnyBatch) {
  dtype_ = DType::kFloat16;
  for (const Layout layout : {Layout::kRows, Layout::kBatched}) {
    list_ = {};
    layout_ = layout;
    const int a = NewSlot(2), b = NewSlot(3), c = NewSlot(3), all = ConcatOf({a, b, c}), part = SliceOf(all, 4, 4);
    for (const int64_t batch : {1, 3, 8}) {
      ExpectIn(a, all, 0, batch);
      ExpectIn(b, all, 2, batch);
      ExpectAlone(c, batch);  // rows of other batches begin within a line
      ExpectIn(part, all, 4, batch);
    }
  }
}

TEST_F(NestedSlotsTest, ChannelsOfPositionsLieInWiderOnes) {
  layout_ = Layout::kNhwc;
  dtype_ = DType::kFloat16;
  const int from = NewSlot(8);
  const int a = LayerOf(from, &pitched_), b = LayerOf(from, &whole_), c = LayerOf(from, &pitched_);
  const int all = ConcatOf({a, b, c}), part = SliceOf(all, 8, 16), other = SliceOf(all, 4, 16);
  const int read = SliceOf(all, 16, 8);
  LayerOf(read, &whole_);
  for (const int64_t batch : {1, 3}) {
    ExpectIn(a, all, 0, batch);
    ExpectAlone(b, batch);  // is written whole
    ExpectIn(c, all, 16, batch);
    ExpectIn(part, all, 8, batch);
    ExpectAlone(other, batch);  // is not aligned
    ExpectAlone(read, batch);   // is read whole
  }
}

// A slot that a step reads as other channels and positions: Transposes and a Reshape rename it. Its pitch would be that
// of the channels that it was made with.
TEST_F(NestedSlotsTest, WhatHasOtherChannelsByAnotherNameLiesAlone) {
  layout_ = Layout::kNhwc;
  const auto renamed = [this](int64_t channels, int64_t positions) {
    Extent& input = list_.steps.back().problem.input;
    input.channels = channels;
    input.height = positions;
    input.width = 1;
  };
  const int from = NewSlot(32);
  const int cut = LayerOf(from, &pitched_), part = SliceOf(cut, 0, 32);
  renamed(64, 32);
  ExpectAlone(part);
  const int joined = LayerOf(from, &pitched_), other = LayerOf(from, &pitched_), all = ConcatOf({joined, other});
  ExpectIn(joined, all, 0);
  LayerOf(joined, &pitched_);
  renamed(64, 32);
  ExpectAlone(joined);
  ExpectIn(other, all, 32);
}

// What Slices cut is put together again, as operands or with more.
TEST_F(NestedSlotsTest, WholesLieInConcatsOfTheirParts) {
  const int a = NewSlot(8), left = SliceOf(a, 0, 4), right = SliceOf(a, 4, 4), more = NewSlot(4);
  const int all = ConcatOf({more, left, right}), again = ConcatOf({all, right, left});
  ExpectIn(a, again, 4);
  ExpectIn(left, again, 4);
  ExpectIn(right, again, 8);
  ExpectIn(more, again, 0);
  ExpectIn(all, again, 0);
}

TEST_F(NestedSlotsTest, WholesStayWherePartsDiffer) {
  const int a = NewSlot(8), left = SliceOf(a, 0, 4), right = SliceOf(a, 4, 4);
  ConcatOf({right, left, NewSlot(4)});
  ConcatOf({left, NewSlot(8)});
  ExpectAlone(a);
  ExpectIn(left, a, 0);
  ExpectIn(right, a, 4);
}

TEST_F(NestedSlotsTest, OtherLayoutsAreCopied) {
  layout_ = Layout::kPanels;
  const int a = NewSlot(16), all = ConcatOf({a, a}), part = SliceOf(all, 0, 16);
  ExpectAlone(a);
  ExpectAlone(part);
}

TEST_F(NestedSlotsTest, BuffersStayAligned) {
  side_ = 3;
  const int a = NewSlot(16), b = NewSlot(16), c = NewSlot(1), d = NewSlot(1), all = ConcatOf({a, b, c, d});
  ExpectIn(b, all, 16);
  ExpectIn(c, all, 32);
  ExpectAlone(d);
}

// Plans of functions: in kNchw, in which images arrive, since nothing in them is worth a conversion.
class NestedSlotsPlanTest : public ::testing::Test {
 protected:
  NestedSlotsPlanTest() : image_(builder_.Value("image", 16, 8, 8)) {}

  int Sigmoid(int input) { return builder_.Function(input, {FunctionKind::kSigmoid}); }

  // Runs it at batch 1 and 2.
  std::shared_ptr<const Plan> MustEqualTheReference(const std::vector<int>& outputs) {
    const NetworkPort input = builder_.Port(image_, "image");
    std::vector<NetworkPort> ports;
    for (const int output : outputs) ports.push_back(builder_.Port(output, Concat("output", output)));
    Network network = builder_.Finish();
    network.inputs = {input};
    network.outputs = ports;
    auto plan = MakePlan(network, *backend_, {.threads = 2, .tuning_budget = absl::ZeroDuration()});
    EXPECT_TRUE(plan.ok()) << plan.status();
    for (const LayerReport& layer : (*plan)->report().layers) {
      EXPECT_THAT(layer.kernels.front(), HasSubstr("_nchw_")) << layer.name;
    }
    auto runner = (*plan)->NewRunner({});
    EXPECT_TRUE(runner.ok()) << runner.status();
    for (const int64_t batch : {1, 2, 1}) {
      const auto drawn = testing::DrawFloats(static_cast<size_t>(batch * network.values[image_].elements()), 3);
      const auto expected = testing::EvaluateNetwork(network, {drawn}, batch);
      testing::ExpectClose(testing::RunImages(**runner, batch, drawn), expected[0], 1e-6f);
      for (size_t i = 1; i < outputs.size(); ++i) {
        const auto other = (*runner)->Output(static_cast<int>(i), batch);
        testing::ExpectClose({other.begin(), other.end()}, expected[i], 1e-6f);
      }
    }
    return *plan;
  }

  // What copies, sums and slices make of two values, each read several times.
  std::pair<int, int> Tangle() {
    const int a = builder_.Pointwise(Op::kActivation, {image_}, testing::kRelu), b = Sigmoid(a);
    const int all = builder_.Concat({a, b, a, image_});
    const int part = builder_.Slice(all, 8, 16), other = builder_.Slice(part, 4, 12);
    const int sum = builder_.Pointwise(Op::kAdd, {part, b});
    return {builder_.MeanOfPlane(builder_.Concat({all, sum, other})), all};
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  testing::NetworkBuilder builder_{5, 0};
  const int image_;
};

TEST_F(NestedSlotsPlanTest, TakeLessMemory) {
  const auto plan = MustEqualTheReference({Tangle().first});
  EXPECT_LT(plan->ArenaBytes(1), plan->ArenaBytes(2) / 2);
}

TEST_F(NestedSlotsPlanTest, LeaveOutputsAlone) {
  const auto [end, all] = Tangle();
  MustEqualTheReference({end, all});
}

// The first Concat's output would be there until the last one is made.
TEST_F(NestedSlotsPlanTest, NeverTakeMoreMemory) {
  const int a = builder_.Pointwise(Op::kActivation, {image_}, testing::kRelu);
  const int wide = Sigmoid(builder_.Concat({a, a, a, a, a, a, a, a}));
  const int end = Sigmoid(builder_.Concat({a, builder_.Slice(wide, 16, 16)}));
  const auto plan = MustEqualTheReference({end});
  EXPECT_EQ(2 * plan->ArenaBytes(1), plan->ArenaBytes(2));
}

}  // namespace
}  // namespace swizzle
