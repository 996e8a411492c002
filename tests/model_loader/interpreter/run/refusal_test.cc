#include "model_loader/interpreter/run/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_loader/interpreter/run/program_runner.h"
#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using swizzle::testing::OnnxBuilder;
using ::testing::IsSupersetOf;

constexpr auto kHopeless = StatusCode::kFailedPrecondition;

// A run as servers make it.
Status Served(const OnnxBuilder& builder, const std::vector<Tensor>& inputs) {
  const std::shared_ptr<const Program> program = *ReadProgram(std::span<const std::byte>(builder.Bytes()));
  std::vector<TensorView> views;
  for (const Tensor& tensor : inputs) views.push_back({tensor.dtype, tensor.shape, tensor.bytes});
  HostProgramRunner runner(program, *NewCpuBackend()->NewStream(1), {}, nullptr);
  return runner.Run(views).status();
}

TEST(RefusalTest, ARequestIsAtFaultWhereAnotherWouldDo) {
  OnnxBuilder product = OneNode("MatMul", {-1, -1}, {"x", "w"});
  product.Counting("w", {3, 2});
  EXPECT_THAT(Served(product, {Floats({1, 3}, {1, 2, 3})}), IsOk());
  EXPECT_THAT(Served(product, {Floats({1, 2}, {1, 2})}), IsError(kInvalid, "have no product"));
  OnnxBuilder rows = OneNode("Gather", {-1}, {"x", "i"});
  rows.Int64s("i", {1}, {40});
  EXPECT_THAT(Served(rows, {Floats({2}, {1, 2})}), IsError(kInvalid, "Gather node"));
  OnnxBuilder shaped;
  shaped.Int64Input("shape", {2}).Counting("c", {3, 4}).Node("Reshape", {"c", "shape"}, {"y"}).Output("y");
  EXPECT_THAT(Served(shaped, {Tensor::Int64s({2}, std::vector<int64_t>{5, 5})}), IsError(kInvalid, "Reshape node"));
  const OnnxBuilder window = OneNode("MaxPool", {-1, -1, -1}, {"x"}, {{"kernel_shape", std::vector<int64_t>{77}}});
  EXPECT_THAT(Served(window, {Floats({1, 1, 3}, {1, 2, 3})}), IsError(kInvalid, "MaxPool node"));
  OnnxBuilder slope = OneNode("PRelu", {-1, -1}, {"x", "s"});
  slope.Counting("s", {5});
  EXPECT_THAT(Served(slope, {Floats({1, 3}, {1, 2, 3})}), IsError(kInvalid, "do not broadcast"));
}

TEST(RefusalTest, AModelIsAtFaultForTypesAttributesAndRanks) {
  const auto refuses = [](const OnnxBuilder& builder, const std::string& text) {
    EXPECT_THAT(Served(builder, {Floats({1, 3}, {1, 2, 3})}), IsError(kHopeless, text));
    EXPECT_THAT(Served(builder, {Floats({1, 3}, {1, 2, 3})}), IsError(kHopeless, "the model is at fault"));
    EXPECT_THAT(Execute(builder, {Floats({1, 3}, {1, 2, 3})}), IsError(kInvalid, text)) << "nobody asked whose fault";
  };
  refuses(OneNode("Softmax", {-1, -1}, {"x"}, {{"axis", int64_t{3}}}), "axis 3 is not one of 2 dimensions");
  refuses(OneNode("BitShift", {-1, -1}, {"x", "x"}, {{"direction", "UP"}}), "direction is neither");
  refuses(OneNode("And", {-1, -1}, {"x", "x"}), "input 0 is not BOOL");
}

TEST(RefusalTest, WhatABranchCannotComputeIsTheModelsFault) {
  OnnxBuilder builder, then, otherwise;
  builder.Input("x", {2}).Floats("limit", {}, {0}).Node("ReduceMax", {"x"}, {"top"}, {{"keepdims", int64_t{0}}});
  builder.Node("Greater", {"top", "limit"}, {"chosen"}).Node("If", {"chosen"}, {"y"}).Output("y");
  then.Node("Softmax", {"x"}, {"s"}, {{"axis", int64_t{5}}}).Output("s");
  otherwise.Node("Neg", {"x"}, {"n"}).Output("n");
  builder.Body("then_branch", {}, then).Body("else_branch", {}, otherwise);
  EXPECT_THAT(Served(builder, {Floats({2}, {-1, -1})}), IsOk());
  EXPECT_THAT(Served(builder, {Floats({2}, {1, 1})}), IsError(kHopeless, "If node 'y_node': Softmax node 's_node'"));
}

TEST(RefusalTest, SizesAreThoseThatTheNodeSpeaksOf) {
  OnnxBuilder builder = OneNode("Conv", {-1, 4, -1}, {"x", "w"}, {{"group", int64_t{2}}});
  builder.Counting("w", {6, 2, 9});
  const std::shared_ptr<const Program> program = *ReadProgram(std::span<const std::byte>(builder.Bytes()));
  const std::shared_ptr<Memory> memory = Memory::New({});
  const std::vector<Array> inputs = {*memory->Allocate(DType::kFloat32, {1, 4, 5}), program->constants()[0].second};
  EXPECT_THAT(SizesAround(program->graph().nodes[0], inputs), IsSupersetOf({2, 4, 6, 9, 18, 12}));
}

}  // namespace
}  // namespace swizzle::interpreter
