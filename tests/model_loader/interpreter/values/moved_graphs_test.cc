// Graphs that move elements and compute with them, in any order: what a run makes, which moves them when somebody
// computes with them, is what nodes make that are given made arrays one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/interpreter/values/settle.h"
#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/model_loader/interpreter/values/random_moves.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using swizzle::testing::RandomMoves;

// Every node by itself, of made arrays.
std::vector<Array> OneByOne(const Program& program, const std::vector<Tensor>& inputs, Stream& stream, int& moved) {
  const std::shared_ptr<Memory> memory = Memory::New({});
  std::vector<Array> values(program.graph().values.size());
  for (const auto& [value, array] : program.constants()) values[static_cast<size_t>(value)] = array;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Array input = *memory->Allocate(inputs[i].dtype, inputs[i].shape);
    std::ranges::copy(inputs[i].bytes, input.data.get());
    values[static_cast<size_t>(program.graph().inputs[i])] = input;
  }
  for (size_t n = 0; n < program.graph().nodes.size(); ++n) {
    const Node& node = program.graph().nodes[n];
    std::vector<Array> given;
    for (const int value : node.inputs) given.push_back(values[static_cast<size_t>(value)]);
    const StatusOr<Results> results = program.Compute(n, given, *memory, stream);
    if (!results.ok()) {
      ADD_FAILURE() << results.status();
      return {};
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      moved += (*results)[i].moved != nullptr ? 1 : 0;
      values[static_cast<size_t>(node.outputs[i])] = *Settled((*results)[i], *memory, stream, nullptr);
    }
  }
  std::vector<Array> outputs;
  for (const GraphOutput& output : program.graph().outputs)
    outputs.push_back(values[static_cast<size_t>(output.value)]);
  return outputs;
}

TEST(MovedGraphs, MakeWhatTheirNodesMakeOneByOne) {
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const std::unique_ptr<Stream> stream = *backend->NewStream(2);
  std::vector<Tensor> inputs;
  for (const Shape& shape : {Shape{4, 12, 10, 6}, Shape{2, 8, 8, 16}, Shape{1}}) {
    std::vector<float> values(static_cast<size_t>(ProductOf(shape, 0, static_cast<int64_t>(shape.size()))));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251) + 1;
    inputs.push_back(Floats(shape, values));
  }
  constexpr unsigned kRounds = 100;
  int moved = 0;
  for (unsigned seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    const RandomMoves graph(seed);
    const auto flat = ReadProgram(std::span<const std::byte>(graph.flat().Bytes()), {}, Nodes::kAll);
    ASSERT_THAT(flat, IsOk());
    const std::vector<Array> expected = OneByOne(**flat, inputs, *stream, moved);
    if (::testing::Test::HasFailure()) return;
    for (const OnnxBuilder* const builder : {&graph.nested(), &graph.flat()}) {
      const StatusOr<std::vector<Array>> made = Execute(*builder, inputs);
      ASSERT_THAT(made, IsOk());
      ASSERT_EQ(made->size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ((*made)[i].shape, expected[i].shape);
        ASSERT_EQ((*made)[i].dtype, expected[i].dtype);
        ASSERT_TRUE(std::ranges::equal((*made)[i].AsBytes(), expected[i].AsBytes())) << "output " << i;
      }
    }
  }
  EXPECT_GT(moved, 300);
}

TEST(MovedGraphs, AnErrorNamesTheNodeThatMoves) {
  OnnxBuilder builder;
  builder.Input("x", {64, 64}).Node("Transpose", {"x"}, {"turned"}).Node("Relu", {"turned"}, {"y"}).Output("y");
  const Tensor x = Floats({64, 64}, std::vector<float>(4096, 1));
  EXPECT_THAT(Execute(builder, {x}, {.max_live_bytes = 20000}),
              IsError(StatusCode::kResourceExhausted, "Transpose node 'turned_node': the model's values together"));
}

TEST(MovedGraphs, WhatMovesAnOutputIsTheTimeOfItsNode) {
  OnnxBuilder builder;
  builder.Input("x", {64, 64}).Node("Transpose", {"x"}, {"y"}).Output("y");
  const auto program = ReadProgram(std::span<const std::byte>(builder.Bytes()));
  ASSERT_THAT(program, IsOk());
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const std::unique_ptr<Stream> stream = *backend->NewStream(1);
  const Tensor x = Floats({64, 64}, std::vector<float>(4096, 1));
  const TensorView views[] = {{x.dtype, x.shape, x.bytes}};
  std::vector<TurnTime> times;
  ASSERT_THAT((*program)->Run(views, *stream, {}, nullptr, {.times = &times}), IsOk());
  ASSERT_EQ(times.size(), 2u);  // to say what is moved, and to move it
  for (const TurnTime& time : times) EXPECT_EQ(time.first_node, 0);
}

}  // namespace
}  // namespace swizzle::interpreter
