#include "model_loader/network/extent_rules.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/support/network_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsOk;
using testing::kNoEpilogue;
using testing::kRelu;
using testing::NetworkBuilder;
using testing::SquareWindow;

Network WithPorts(NetworkBuilder& builder, std::vector<int> inputs, std::vector<int> outputs) {
  std::vector<NetworkPort> in, out;
  for (const int value : inputs) in.push_back(builder.Port(value, "in" + std::to_string(value)));
  for (const int value : outputs) out.push_back(builder.Port(value, "out" + std::to_string(value)));
  Network network = builder.Finish();
  network.inputs = std::move(in);
  network.outputs = std::move(out);
  return network;
}

// A detector in small: a stem, pooling, a squeeze and excitation, what is made larger again, and joined.
Network Detector(int64_t height, int64_t width) {
  NetworkBuilder builder(3, 0);
  const int image = builder.Value("image", 3, height, width);
  const int stem = builder.Conv(image, 16, SquareWindow(3, 2, 1), 0.0, kRelu);
  const int small = builder.Pool(Op::kMaxPool, stem, SquareWindow(3, 2, 1));
  const int deep = builder.Depthwise(small, SquareWindow(5, 1, 2), kRelu);
  const int gate = builder.Function(builder.MeanOfPlane(deep), {FunctionKind::kSigmoid});
  const int scaled = builder.Pointwise(Op::kScale, {deep, gate});
  const int left = builder.Slice(scaled, 0, 8), right = builder.Slice(scaled, 8, 8);
  const int turned = builder.Concat({right, left});
  const NetworkValue& value = builder.value(turned);
  Resampling twice;
  twice.scale_h = twice.scale_w = 2.0f;
  const int large = builder.Resize(turned, 2 * value.height, 2 * value.width, twice);
  const int blocks = builder.DepthToSpace(large, 2);
  return WithPorts(builder, {image}, {blocks, deep});
}

// What comes behind it: all positions of two planes, one behind the other, as vectors.
Network Head(int64_t height, int64_t width) {
  NetworkBuilder builder(4, 0);
  const int fine = builder.Value("fine", 8, 2 * height, 2 * width), coarse = builder.Value("coarse", 8, height, width);
  const int a = builder.Conv(fine, 6, SquareWindow(1, 1, 0), 0.0, kNoEpilogue);
  const int b = builder.Conv(coarse, 6, SquareWindow(3, 1, 1), 0.0, kNoEpilogue);
  const int all = builder.Transpose(builder.ConcatPlanes({a, b}));
  return WithPorts(builder, {fine, coarse}, {all});
}

template <typename Make>
void ExpectFollows(const Make& make, std::vector<std::pair<int64_t, int64_t>> sizes) {
  const Network first = make(32, 64);
  const auto rules = ExtentRules::Learn(first, make(64, 192));
  ASSERT_TRUE(rules.has_value());
  for (const auto& [height, width] : sizes) {
    const Network expected = make(height, width);
    std::vector<Shape> rows;
    for (const NetworkPort& port : expected.inputs) rows.push_back(port.dims);
    const std::optional<Network> made = rules->Apply(first, rows);
    ASSERT_TRUE(made.has_value()) << height << " x " << width;
    EXPECT_TRUE(made->weights.empty());
    for (size_t i = 0; i < expected.layers.size(); ++i) {
      EXPECT_EQ(made->layers[i].attributes, expected.layers[i].attributes) << expected.layers[i].name;
      const NetworkValue &one = made->values[made->layers[i].output],
                         &other = expected.values[expected.layers[i].output];
      EXPECT_EQ(one.WithBatch(1), other.WithBatch(1)) << expected.layers[i].name;
    }
    for (size_t i = 0; i < expected.outputs.size(); ++i) EXPECT_EQ(made->outputs[i].dims, expected.outputs[i].dims);
  }
}

TEST(ExtentRules, FollowPlanesThroughLayers) {
  ExpectFollows(Detector, {{32, 64}, {64, 32}, {33, 65}, {47, 160}, {9, 130}, {8, 8}});
  ExpectFollows(Head, {{2, 1}, {3, 50}, {17, 9}});
}

// A window that pads to ceil(extent / 2), and one whose last window the end cuts off.
Network Padded(int64_t height, int64_t width) {
  NetworkBuilder builder(7, 0);
  const int image = builder.Value("image", 3, height, width);
  Window same = SquareWindow(3, 2, 0);
  const auto pad = [](int64_t extent) { return static_cast<int32_t>(extent % 2 == 0 ? 1 : 2); };
  same.pad_top = pad(height) / 2;
  same.pad_bottom = pad(height) - same.pad_top;
  same.pad_left = pad(width) / 2;
  same.pad_right = pad(width) - same.pad_left;
  const int conv = builder.Conv(image, 8, same, 0.0, kNoEpilogue);
  Window cut = SquareWindow(2, 2, 0);
  cut.pad_bottom = static_cast<int32_t>(builder.value(conv).height % 2);
  cut.pad_right = static_cast<int32_t>(builder.value(conv).width % 2);
  const int pool = builder.Pool(Op::kMaxPool, conv, cut);
  return WithPorts(builder, {image}, {pool});
}

TEST(ExtentRules, PadAsTheModelSaysWherePlanesSayHow) {
  const Network first = Padded(32, 64);
  const PaddingRules paddings = {{first.layers[0].name, {.same = AutoPad::kSameUpper}},
                                 {first.layers[1].name, {.cut = true}}};
  const auto rules = ExtentRules::Learn(first, Padded(64, 192), paddings);
  ASSERT_TRUE(rules.has_value());
  for (int64_t height = 8; height < 16; ++height) {
    const Network expected = Padded(height, 2 * height + 1);
    const auto made = rules->Apply(first, std::vector<Shape>{{3, height, 2 * height + 1}});
    ASSERT_TRUE(made.has_value());
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(made->layers[i].window(), expected.layers[i].window()) << i;
    EXPECT_EQ(made->outputs[0].dims, expected.outputs[0].dims);
  }
  const PaddingRules wrong = {{first.layers[0].name, {.same = AutoPad::kSameLower}}};
  EXPECT_FALSE(ExtentRules::Learn(first, Padded(64, 192), wrong).has_value());
}

TEST(ExtentRules, AreNotThoseOfOtherLayers) {
  const Network first = Detector(32, 64);
  EXPECT_FALSE(ExtentRules::Learn(first, Head(32, 64)).has_value());
  Network padded = Detector(64, 192);
  padded.layers[0].window().pad_top = 0;
  EXPECT_FALSE(ExtentRules::Learn(first, padded).has_value());
  Network clamped = Detector(64, 192);
  clamped.layers[0].epilogue = kNoEpilogue;
  EXPECT_FALSE(ExtentRules::Learn(first, clamped).has_value());
}

TEST(ExtentRules, LeaveValuesThatFusedLayersNoLongerMake) {
  const auto fused = [](int64_t height, int64_t width) {
    Network network = Detector(height, width);
    network.values.push_back({"gone", 16, height, width});
    return network;
  };
  ExpectFollows(fused, {{33, 65}});
}

TEST(ExtentRules, TakeNoDimensionThatDidNotVary) {
  const Network first = Detector(32, 64);
  const auto rules = ExtentRules::Learn(first, Detector(32, 192));
  ASSERT_TRUE(rules.has_value());
  EXPECT_TRUE(rules->Apply(first, std::vector<Shape>{{3, 32, 100}}).has_value());
  EXPECT_FALSE(rules->Apply(first, std::vector<Shape>{{3, 40, 100}}).has_value());
  EXPECT_FALSE(rules->Apply(first, std::vector<Shape>{{4, 32, 100}}).has_value());
  EXPECT_FALSE(rules->Apply(first, std::vector<Shape>{{3, 32}}).has_value());
  EXPECT_FALSE(rules->Apply(first, std::vector<Shape>{}).has_value());
}

// A sum of planes that are of one size by chance alone.
TEST(ExtentRules, RefuseExtentsThatDoNotMeet) {
  const auto sum = [](int64_t one, int64_t other) {
    NetworkBuilder builder(5, 0);
    const int a = builder.Value("a", 4, one, 8), b = builder.Value("b", 4, other, 8);
    const int total = builder.Pointwise(Op::kAdd, {a, b});
    return WithPorts(builder, {a, b}, {total});
  };
  const auto rules = ExtentRules::Learn(sum(16, 16), sum(32, 32));
  ASSERT_TRUE(rules.has_value());
  EXPECT_TRUE(rules->Apply(sum(16, 16), std::vector<Shape>{{4, 7, 8}, {4, 7, 8}}).has_value());
  EXPECT_FALSE(rules->Apply(sum(16, 16), std::vector<Shape>{{4, 7, 8}, {4, 1, 8}}).has_value());
}

// A weight has as many columns as there are channels.
TEST(ExtentRules, KeepTheChannelsThatWeightsHave) {
  const auto lines = [](int64_t length) {
    NetworkBuilder builder(6, 0);
    const int x = builder.Value("x", length, 1, 8);
    const int y = builder.Pointwise(Op::kSoftmax, {x});
    return WithPorts(builder, {x}, {y});
  };
  const auto free = ExtentRules::Learn(lines(16), lines(32));
  ASSERT_TRUE(free.has_value());
  EXPECT_TRUE(free->Apply(lines(16), std::vector<Shape>{{7, 1, 8}}).has_value());
  const auto weighed = [](int64_t length) {
    NetworkBuilder builder(6, 0);
    const int x = builder.Value("x", length, 1, 8);
    const int y = builder.Conv(x, 4, SquareWindow(1, 1, 0), 0.0, kNoEpilogue);
    return WithPorts(builder, {x}, {y});
  };
  EXPECT_FALSE(ExtentRules::Learn(weighed(16), weighed(32)).has_value());
}

}  // namespace
}  // namespace swizzle
