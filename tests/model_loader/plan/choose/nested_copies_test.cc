#include "model_loader/plan/choose/nested_copies.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/network_builder.h"

namespace swizzle {
namespace {

bool Always(const Problem&) { return true; }
const Kernel kWhole = {};
const Kernel kPitched = Pitched({}, Always);

// What the layer that makes `value` costs, of 10, where all layers have this kernel and FP16 in this layout.
double CostOf(const Network& network, int value, Layout layout, const Kernel& kernel) {
  const Storage storage = {layout, DType::kFloat16};
  LayerCandidates candidates;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    candidates.push_back({{.kernel = &kernel, .input = storage, .output = storage, .microseconds = {5, 10}}});
  }
  LeaveOutNestedCopies(network, candidates);
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const std::vector<double>& times = candidates[i][0].microseconds;
    EXPECT_EQ(2 * times[0], times[1]);
    EXPECT_EQ(candidates[i][0].copied, times[1] / 10) << "what was measured is still known";
    if (network.layers[i].output == value) return times[1];
    EXPECT_TRUE(times[1] == 10 || network.layers[i].op != Op::kActivation);
  }
  return -1;
}

class NestedCopiesTest : public ::testing::Test {
 protected:
  int Relu(int input) { return builder_.Pointwise(Op::kActivation, {input}, testing::kRelu); }
  Network Finish(int output) {
    const NetworkPort in = builder_.Port(image_, "image"), out = builder_.Port(output, "output");
    Network network = builder_.Finish();
    network.inputs = {in};
    network.outputs = {out};
    return network;
  }

  testing::NetworkBuilder builder_{1, 0};
  const int image_ = builder_.Value("image", 16, 4, 4);
};

TEST_F(NestedCopiesTest, WhatLiesThereIsNotCopied) {
  const int a = Relu(image_), b = Relu(a), all = builder_.Concat({a, b}), part = builder_.Slice(all, 8, 16);
  const Network network = Finish(Relu(part));
  for (const Layout layout : {Layout::kRows, Layout::kBatched}) {
    EXPECT_EQ(CostOf(network, all, layout, kWhole), 0);
    EXPECT_EQ(CostOf(network, part, layout, kWhole), 0);
  }
  EXPECT_EQ(CostOf(network, all, Layout::kNhwc, kPitched), 0);
  EXPECT_EQ(CostOf(network, part, Layout::kNhwc, kPitched), 0);
  EXPECT_EQ(CostOf(network, all, Layout::kNhwc, kWhole), 10);
  EXPECT_EQ(CostOf(network, part, Layout::kNhwc, kWhole), 10);
  EXPECT_EQ(CostOf(network, all, Layout::kNchw, kPitched), 10);
}

TEST_F(NestedCopiesTest, OperandsLieInOnePlace) {
  const int a = Relu(image_), b = Relu(a), twice = builder_.Concat({a, b, a, image_});
  const int again = builder_.Concat({b, Relu(twice)});
  const Network network = Finish(Relu(again));
  EXPECT_EQ(CostOf(network, twice, Layout::kRows, kWhole), 5);         // of 64 channels 32
  EXPECT_EQ(CostOf(network, again, Layout::kRows, kWhole), 10 / 5.0);  // of 80 channels 16
}

TEST_F(NestedCopiesTest, OutputsAreCopied) {
  const int all = builder_.Concat({Relu(image_), Relu(image_)});
  EXPECT_EQ(CostOf(Finish(all), all, Layout::kRows, kWhole), 10);
}

TEST_F(NestedCopiesTest, WindowsReadWholeActivations) {
  const int a = Relu(image_);
  builder_.Conv(a, 8, testing::SquareWindow(3, 1, 1), 0.0, testing::kRelu);
  const int all = builder_.Concat({a, Relu(image_)});
  const Network network = Finish(Relu(all));
  EXPECT_EQ(CostOf(network, all, Layout::kNhwc, kPitched), 5);
  EXPECT_EQ(CostOf(network, all, Layout::kRows, kPitched), 0);
}

}  // namespace
}  // namespace swizzle
