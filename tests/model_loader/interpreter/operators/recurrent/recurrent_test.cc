// LSTM, GRU and RNN: what tests/integration/interpreter_test.py, which compares them with ONNX Runtime, does not see.
#include "model_loader/interpreter/operators/recurrent/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using swizzle::testing::OnnxBuilder;
using Attributes = std::map<std::string, Attribute>;
using Strings = std::vector<std::string>;

std::vector<float> Drawn(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 101.0f - 0.5f;
  return values;
}

// x [3,2,5] through a network of 4 units a direction, weights drawn.
OnnxBuilder Network(const std::string& op, int64_t gates, int64_t directions, const Attributes& attributes,
                    const std::vector<std::string>& more = {}) {
  OnnxBuilder builder;
  builder.Input("x", {3, 2, 5});
  builder.Floats("w", {directions, gates * 4, 5}, Drawn(directions * gates * 4 * 5));
  builder.Floats("r", {directions, gates * 4, 4}, Drawn(directions * gates * 4 * 4));
  builder.Floats("wrong", {1, 3}, Drawn(3)).Int64s("short", {1}, {2}).Int64s("long", {2}, {2, 4});
  std::vector<std::string> inputs = {"x", "w", "r"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  builder.Node(op, inputs, {"y", "y_h"}, attributes).Output("y").Output("y_h");
  return builder;
}

const std::vector<Tensor> kX = {Floats({3, 2, 5}, Drawn(30))};

TEST(Recurrent, NamesWhatIsWrong) {
  EXPECT_THAT(Execute(Network("LSTM", 4, 1, {}), kX), IsOk());
  EXPECT_THAT(Execute(Network("LSTM", 3, 1, {}), kX), IsError(kInvalid, "LSTM node 'y_node': input 1 has shape"));
  EXPECT_THAT(Execute(Network("GRU", 3, 2, {}), kX), IsError(kInvalid, "GRU node 'y_node': input 1 has shape"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {{"hidden_size", int64_t{5}}}), kX), IsError(kInvalid, "hidden_size is 5"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {{"direction", std::string("both")}}), kX),
              IsError(kInvalid, "direction is 'both'"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {{"clip", -1.0f}}), kX), IsError(kInvalid, "clip is -1"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {{"activations", Strings{"Tanh", "Tanh"}}}), kX),
              IsError(kInvalid, "2 activations instead of 1"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {{"activations", Strings{"Gelu"}}}), kX),
              IsError(kInvalid, "activation 'Gelu' is not known"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {{"activations", std::string("Tanh")}}), kX),
              IsError(kInvalid, "'activations' is not a list of strings"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {}, {"wrong"}), kX), IsError(kInvalid, "input 3 has shape [1,3]"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {}, {"", "short"}), kX), IsError(kInvalid, "1 lengths for 2 sequences"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {}, {"", "long"}), kX), IsError(kInvalid, "length 4 of 3"));
  EXPECT_THAT(Execute(Network("RNN", 1, 1, {}, {"", "", "wrong"}), kX), IsError(kInvalid, "input 5 has shape [1,3]"));
  EXPECT_THAT(Execute(Network("LSTM", 4, 1, {}, {"", "", "", "", "wrong"}), kX),
              IsError(kInvalid, "input 7 has shape [1,3]"));
}

TEST(Recurrent, WhatItTakesIsCounted) {
  EXPECT_THAT(Execute(Network("LSTM", 4, 1, {}), kX, {.max_live_bytes = 10'000}), IsOk());
  EXPECT_THAT(Execute(Network("LSTM", 4, 1, {}), kX, {.max_live_bytes = 500}),
              IsError(StatusCode::kResourceExhausted, "LSTM"));
}

TEST(Recurrent, LayoutPutsTheBatchFirst) {
  const auto last = Execute(Network("GRU", 3, 1, {}), kX);
  OnnxBuilder builder = Network("GRU", 3, 1, {{"layout", int64_t{1}}});
  std::vector<float> turned(30);
  for (size_t t = 0; t < 3; ++t) {
    for (size_t n = 0; n < 2; ++n) {
      for (size_t i = 0; i < 5; ++i) turned[(n * 3 + t) * 5 + i] = kX[0].floats()[(t * 2 + n) * 5 + i];
    }
  }
  builder.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  const auto first = Execute(builder, {Floats({2, 3, 5}, turned)});
  ASSERT_THAT(last, IsOk());
  ASSERT_THAT(first, IsOk());
  ASSERT_EQ((*first)[0].shape, (Shape{2, 3, 1, 4}));
  ASSERT_EQ((*first)[1].shape, (Shape{2, 1, 4}));
  EXPECT_EQ(Values((*first)[1]), Values((*last)[1]));
  for (size_t t = 0; t < 3; ++t) {
    for (size_t n = 0; n < 2; ++n) {
      for (size_t u = 0; u < 4; ++u) {
        EXPECT_EQ(Values((*first)[0])[(n * 3 + t) * 4 + u], Values((*last)[0])[(t * 2 + n) * 4 + u]);
      }
    }
  }
}

// One row and many units: threads share the units of a step.
TEST(Recurrent, ThreadsShareUnitsAndGiveTheSameResult) {
  constexpr int64_t kUnits = 208;
  for (const auto& [op, gates] : std::map<std::string, int64_t>{{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    OnnxBuilder builder;
    builder.Input("x", {4, 2, 7});
    builder.Floats("w", {1, gates * kUnits, 7}, Drawn(gates * kUnits * 7));
    builder.Floats("r", {1, gates * kUnits, kUnits}, Drawn(gates * kUnits * kUnits));
    builder.Node(op, {"x", "w", "r"}, {"y"}).Output("y");
    const std::vector<Tensor> x = {Floats({4, 2, 7}, Drawn(56))};
    const auto one = Execute(builder, x, {}, 1);
    const auto five = Execute(builder, x, {}, 5);
    ASSERT_THAT(one, IsOk());
    ASSERT_THAT(five, IsOk());
    const std::vector<float> expected = Values((*one)[0]), actual = Values((*five)[0]);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-5) << op;
  }
}

TEST(Recurrent, KnowsEveryActivation) {
  const auto result = [](Activation::Kind kind, float x) {
    Activation{kind, 0.5f, 0.25f}.Apply(&x, 1);
    return x;
  };
  EXPECT_EQ(result(Activation::kRelu, -2.0f), 0.0f);
  EXPECT_FLOAT_EQ(result(Activation::kTanh, 0.5f), std::tanh(0.5f));
  EXPECT_FLOAT_EQ(result(Activation::kSigmoid, 0.5f), 1.0f / (1.0f + std::exp(-0.5f)));
  EXPECT_FLOAT_EQ(result(Activation::kAffine, 2.0f), 1.25f);
  EXPECT_FLOAT_EQ(result(Activation::kLeakyRelu, -2.0f), -1.0f);
  EXPECT_FLOAT_EQ(result(Activation::kThresholdedRelu, 0.4f), 0.0f);
  EXPECT_FLOAT_EQ(result(Activation::kThresholdedRelu, 0.5f), 0.5f);
  EXPECT_FLOAT_EQ(result(Activation::kScaledTanh, 2.0f), 0.5f * std::tanh(0.5f));
  EXPECT_FLOAT_EQ(result(Activation::kHardSigmoid, 1.0f), 0.75f);
  EXPECT_FLOAT_EQ(result(Activation::kElu, -2.0f), 0.5f * (std::exp(-2.0f) - 1.0f));
  EXPECT_FLOAT_EQ(result(Activation::kSoftsign, -3.0f), -0.75f);
  EXPECT_FLOAT_EQ(result(Activation::kSoftplus, 1.0f), std::log(1.0f + std::exp(1.0f)));
  EXPECT_FLOAT_EQ(result(Activation::kSoftplus, 200.0f), 200.0f);
}

}  // namespace
}  // namespace swizzle::interpreter
