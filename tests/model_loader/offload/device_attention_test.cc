#include <gtest/gtest.h>

#include "tests/model_loader/offload/on_device.h"

namespace swizzle::offload {
namespace {

using swizzle::testing::OnDeviceTest;
using swizzle::testing::OnnxBuilder;
using swizzle::testing::Weights;

constexpr int64_t kHeads = 3, kChannels = 8, kWidth = kHeads * kChannels;

// Of queries, keys and values in one tensor, with a number added to each score.
OnnxBuilder Attention(int64_t tokens) {
  OnnxBuilder builder;
  builder.Input("x", {-1, tokens, 16}).Floats("w", {16, 3 * kWidth}, Weights(16 * 3 * kWidth));
  builder.Int64s("heads", {5}, {0, tokens, 3, kHeads, kChannels}).Int64s("whole", {3}, {0, tokens, kWidth});
  builder.Node("MatMul", {"x", "w"}, {"qkv"}).Node("Reshape", {"qkv", "heads"}, {"apart"});
  builder.Node("Transpose", {"apart"}, {"turned"}, {{"perm", std::vector<int64_t>{2, 0, 3, 1, 4}}});
  for (const auto& [name, at] : {std::pair("q", 0), {"k", 1}, {"v", 2}}) {
    const std::string index = std::string(name) + "_at";
    builder.Int64s(index, {}, {at}).Node("Gather", {"turned", index}, {name}, {{"axis", int64_t{0}}});
  }
  builder.Node("Transpose", {"k"}, {"kt"}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  builder.Floats("root", {}, {2.5f}).Floats("bias", {1, kHeads, tokens, tokens}, Weights(kHeads * tokens * tokens));
  builder.Node("MatMul", {"q", "kt"}, {"product"}).Node("Div", {"product", "root"}, {"scores"});
  builder.Node("Add", {"scores", "bias"}, {"biased"}).Node("Softmax", {"biased"}, {"p"}, {{"axis", int64_t{-1}}});
  builder.Node("MatMul", {"p", "v"}, {"mixed"});
  builder.Node("Transpose", {"mixed"}, {"back"}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  builder.Node("Reshape", {"back", "whole"}, {"y"}).Output("y");
  return builder;
}

class DeviceAttentionTest : public OnDeviceTest, public ::testing::WithParamInterface<Precision> {};

TEST_P(DeviceAttentionTest, IsWhatTheInterpreterComputes) {
  if (!host_->Computes(GetParam())) GTEST_SKIP() << PrecisionName(GetParam()) << " is not computed here";
  Plan(Attention(10), GetParam());
  EXPECT_EQ(regional_.interpreted_nodes(), 0u) << regional_.OperatorCounts();
  EXPECT_EQ(regional_.on_device->placement().device_nodes, 2);  // Reshapes
  const double tolerance = GetParam() == Precision::kFloat32 ? 1e-4 : 2e-2;
  for (const int64_t batch : {1, 2, 6}) ExpectSame({{batch, 10, 16}}, 0, tolerance);
}
INSTANTIATE_TEST_SUITE_P(All, DeviceAttentionTest, ::testing::Values(Precision::kFloat32, Precision::kBFloat16),
                         [](const auto& of) { return std::string(PrecisionName(of.param)); });

// Attention reads what the transposed queries are made of. Nothing else does once these are there, which keys wait for.
TEST_F(OnDeviceTest, QueriesLastUntilKeysThatGoByTheirShapeAreMade) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 6, 8}).Input("keys", {-1, 6, 16}).Floats("w", {8, 16}, Weights(8 * 16));
  builder.Int64s("heads", {4}, {0, 6, 2, 8}).Int64s("first", {1}, {0}).Int64s("others", {3}, {6, 2, 8});
  builder.Node("MatMul", {"x", "w"}, {"h"}).Node("Reshape", {"h", "heads"}, {"apart"});
  builder.Node("Transpose", {"apart"}, {"q"}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  builder.Node("Shape", {"q"}, {"shape"}).Node("Gather", {"shape", "first"}, {"batch"});
  builder.Node("Concat", {"batch", "others"}, {"target"}, {{"axis", int64_t{0}}});
  builder.Node("Reshape", {"keys", "target"}, {"k"});
  builder.Node("Transpose", {"k"}, {"kt"}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  builder.Node("MatMul", {"q", "kt"}, {"scores"}).Node("Softmax", {"scores"}, {"p"}, {{"axis", int64_t{-1}}});
  builder.Node("MatMul", {"p", "q"}, {"y"}).Output("y");
  Plan(builder);
  for (const int64_t batch : {1, 2, 2}) ExpectSame({{batch, 6, 8}, {batch, 6, 16}});
}

}  // namespace
}  // namespace swizzle::offload
