// Images that requests bring as bytes: what models that cast them compute is what they compute of the same numbers in
// FP32, from ONNX and from a packed file.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/load/loader.h"
#include "model_loader/packed/packed_writer.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::DrawBytes;
using testing::ExpectClose;
using testing::MakeRandomNetwork;
using testing::MustPlan;
using testing::OnnxBuilder;
using testing::RunBytes;
using testing::RunImages;
using Ints = std::vector<int64_t>;

// (x / 255 - mean) / deviation, a padded convolution and the mean of its planes, of images in either order.
Network Normalising(bool bytes, bool nhwc) {
  OnnxBuilder builder;
  builder.Input("image", nhwc ? Shape{-1, 9, 9, 3} : Shape{-1, 3, 9, 9});
  if (bytes) {
    auto& type = *builder.graph().mutable_input(0)->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::UINT8);
  }
  builder.Floats("full", {}, {255}).Floats("mean", {1, 3, 1, 1}, {.48f, .45f, .4f});
  builder.Floats("deviation", {1, 3, 1, 1}, {.22f, .23f, .24f}).Counting("w", {4, 3, 3, 3});
  builder.Node("Cast", {"image"}, {"real"}, {{"to", int64_t{1}}});
  if (nhwc) builder.Node("Transpose", {"real"}, {"planes"}, {{"perm", Ints{0, 3, 1, 2}}});
  builder.Node("Div", {nhwc ? "planes" : "real", "full"}, {"unit"}).Node("Sub", {"unit", "mean"}, {"centred"});
  builder.Node("Div", {"centred", "deviation"}, {"normal"});
  builder.Node("Conv", {"normal", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}}).Node("Relu", {"c"}, {"r"});
  builder.Node("GlobalAveragePool", {"r"}, {"y"}).Output("y");
  auto graph = builder.Read();
  EXPECT_TRUE(graph.ok()) << graph.status();
  const auto passes = RunPasses(*graph);
  EXPECT_TRUE(passes.ok()) << passes.status();
  auto network = Lower(*std::move(graph));
  EXPECT_TRUE(network.ok()) << network.status();
  return *std::move(network);
}

void ExpectSameOfBytes(const Network& of_bytes, const Network& of_reals, float scale, int zero_point) {
  ASSERT_EQ(of_bytes.inputs[0].dtype, DType::kUint8);
  ASSERT_TRUE(of_bytes.Validate().ok()) << of_bytes.Validate();
  const auto cpu = NewCpuBackend();
  const auto plan = MustPlan(of_bytes, *cpu), expected = MustPlan(of_reals, *cpu);
  ASSERT_TRUE(plan != nullptr && expected != nullptr);
  auto runner = *plan->NewRunner({}), expected_runner = *expected->NewRunner({});
  for (const int64_t batch : {3, 1, 17}) {
    const auto bytes = DrawBytes(static_cast<size_t>(batch * of_bytes.values[0].elements()), 5);
    std::vector<float> reals;
    for (const std::byte x : bytes) reals.push_back(scale * static_cast<float>(std::to_integer<int>(x) - zero_point));
    ExpectClose(RunBytes(*runner, batch, bytes), RunImages(*expected_runner, batch, reals), 1e-5f);
  }
}

TEST(ByteInputPlanTest, NormalisedImagesEqualThoseInSingle) {
  for (const bool nhwc : {false, true}) {
    SCOPED_TRACE(nhwc ? "NHWC" : "NCHW");
    ExpectSameOfBytes(Normalising(true, nhwc), Normalising(false, nhwc), 1.0f, 0);
  }
}

TEST(ByteInputPlanTest, WholeNumbersOfAnyScaleArrive) {
  const Network reals = MakeRandomNetwork({.image = 15});
  Network bytes = reals;
  bytes.inputs[0].dtype = DType::kUint8;
  bytes.values[0].quantisation = Quantisation{DType::kUint8, {0.25f}, {100}};
  ExpectSameOfBytes(bytes, reals, 0.25f, 100);
}

TEST(ByteInputPlanTest, APackedModelKeepsTheType) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "model.swz";
  ASSERT_TRUE(WritePacked(Normalising(true, false), file).ok());
  auto loaded = LoadModel(file);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ExpectSameOfBytes(loaded->network, Normalising(false, false), 1.0f, 0);
}

TEST(ByteInputPlanTest, BytesWithoutAScaleAreRefused) {
  Network network = MakeRandomNetwork({});
  network.inputs[0].dtype = DType::kUint8;
  EXPECT_NE(network.Validate().message().find("does not say how to read"), std::string::npos) << network.Validate();
  network.values[0].quantisation = Quantisation{DType::kInt8, {0.25f}, {}};
  EXPECT_FALSE(network.Validate().ok());
}

}  // namespace
}  // namespace swizzle
