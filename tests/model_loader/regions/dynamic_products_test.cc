// Products that are quantised when they run are layers of regions, by whole numbers of each position's own scale: no
// request's result depends on what shares its batch.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

constexpr int64_t kWidth = 64, kRows = 32;
const Shape kOutput = {-1, -1, kRows};

void AddBytes(OnnxBuilder& builder, const std::string& name, const Shape& shape, const std::vector<int8_t>& values) {
  onnx::TensorProto& tensor = *builder.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT8);
  for (const int64_t extent : shape) tensor.add_dims(extent);
  tensor.set_raw_data(values.data(), values.size());
}

// Declares the output's shape, as batches of several requests want it.
OnnxBuilder WithOutput(OnnxBuilder builder, const Shape& dimensions) {
  auto& shape = *builder.Output("y").graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const int64_t dimension : dimensions) {
    auto& added = *shape.add_dim();
    if (dimension != -1) added.set_dim_value(dimension);
  }
  return builder;
}

std::vector<int8_t> DrawnBytes(int64_t count) {
  std::vector<int8_t> drawn(static_cast<size_t>(count));
  for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<int8_t>(static_cast<int>(i * 37 % 255) - 127);
  return drawn;
}

// What each model begins with: x [batch, length, kWidth], a weight and its scales, one a row.
OnnxBuilder Begun() {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, kWidth}).Floats("bias", {kRows}, std::vector<float>(kRows, 0.25f));
  AddBytes(builder, "w", {kWidth, kRows}, DrawnBytes(kWidth * kRows));
  std::vector<float> scales;
  for (int64_t row = 0; row < kRows; ++row) scales.push_back(0.00001f * static_cast<float>(1 + row % 3));
  builder.Floats("ws", {kRows}, scales);
  return builder;
}

// As quantise_dynamic writes it, node by node.
OnnxBuilder Chain() {
  OnnxBuilder builder = Begun();
  builder.Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"}).Node("MatMulInteger", {"q", "w", "z"}, {"i"});
  builder.Node("Cast", {"i"}, {"c"}, {{"to", int64_t{1}}})
      .Node("Mul", {"s", "ws"}, {"p"})
      .Node("Mul", {"c", "p"}, {"m"});
  builder.Node("Add", {"bias", "m"}, {"a"}).Node("Sin", {"a"}, {"y"});
  return WithOutput(builder, kOutput);
}

// As optimisers fuse it.
OnnxBuilder Fused() {
  OnnxBuilder builder = Begun();
  builder.MicrosoftNode("DynamicQuantizeMatMul", {"x", "w", "ws", "", "bias"}, {"m"});
  builder.Node("Sin", {"m"}, {"y"});
  return WithOutput(builder, kOutput);
}

// Two layers of one rounding, of which one is fused.
OnnxBuilder Shared() {
  OnnxBuilder builder = Begun();
  builder.Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  builder.MicrosoftNode("MatMulIntegerToFloat", {"q", "w", "s", "ws", "z", "", "bias"}, {"a"});
  builder.Node("MatMulInteger", {"q", "w", "z"}, {"i"}).Node("Cast", {"i"}, {"c"}, {{"to", int64_t{1}}});
  builder.Node("Mul", {"ws", "s"}, {"p"}).Node("Mul", {"p", "c"}, {"b"});
  builder.Node("Mul", {"a", "b"}, {"m"}).Node("Sin", {"m"}, {"y"});
  return WithOutput(builder, kOutput);
}

// A scale of channels before the layer, which must not become the weight's.
OnnxBuilder Scaled() {
  OnnxBuilder builder = Begun();
  std::vector<float> gain;
  for (int64_t i = 0; i < kWidth; ++i) gain.push_back(0.5f + static_cast<float>(i % 5) / 4);
  builder.Floats("gain", {kWidth}, gain).Node("Mul", {"x", "gain"}, {"g"});
  builder.Node("DynamicQuantizeLinear", {"g"}, {"q", "s", "z"}).Node("MatMulInteger", {"q", "w", "z"}, {"i"});
  builder.Node("Cast", {"i"}, {"c"}, {{"to", int64_t{1}}})
      .Node("Mul", {"s", "ws"}, {"p"})
      .Node("Mul", {"c", "p"}, {"m"});
  builder.Node("Sin", {"m"}, {"y"});
  return WithOutput(builder, kOutput);
}

struct Spelling {
  const char* name;
  OnnxBuilder (*make)();
  int products;
};

class DynamicProductsTest : public ::testing::TestWithParam<Spelling> {
 protected:
  // Values of which each position has another range.
  static std::vector<float> Input(int64_t positions) {
    std::vector<float> x(static_cast<size_t>(positions * kWidth));
    for (size_t i = 0; i < x.size(); ++i) {
      const float range = static_cast<float>(1 + i / kWidth % 7 * 10);
      x[i] = range * static_cast<float>(static_cast<int>(i * 29 % 67) - 30) / 40;
    }
    return x;
  }

  std::vector<float> Run(const interpreter::Program& program, const Shape& shape, std::span<const float> x) {
    const std::vector<TensorView> inputs = {{DType::kFloat32, shape, std::as_bytes(x)}};
    const auto stream = backend_->NewStream(2);
    EXPECT_TRUE(stream.ok());
    const auto outputs = program.Run(inputs, **stream, {}, nullptr, {});
    EXPECT_THAT(outputs, IsOk());
    const auto elements = outputs->at(0).As<float>();
    return {elements.begin(), elements.end()};
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
};

TEST_P(DynamicProductsTest, AreLayersOfWholeNumbersThatKeepRequestsApart) {
  const auto program = interpreter::ReadProgram(std::span<const std::byte>(GetParam().make().Bytes()));
  ASSERT_THAT(program, IsOk());
  EXPECT_TRUE((*program)->rows_are_independent()) << (*program)->batch_obstacle().value_or("");
  const auto regional = PlanRegions(*program, *backend_, {.threads = 2, .tuning_budget = absl::ZeroDuration()});
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.OperatorCounts(), "Sin:1");
  int products = 0;
  for (const LayerReport& layer : regional.regions[0]->plan()->report().layers) {
    if (layer.weight_rows != kRows || layer.op != "Conv") continue;
    ++products;
    EXPECT_NE(layer.kernels.at(0).find("_u8"), std::string::npos) << layer.kernels.at(0);
  }
  EXPECT_EQ(products, GetParam().products);

  constexpr int64_t kBatch = 3, kLength = 5;
  const std::vector<float> x = Input(kBatch * kLength);
  const std::vector<float> real = Run(**program, {kBatch, kLength, kWidth}, x);
  const std::vector<float> whole = Run(*regional.program, {kBatch, kLength, kWidth}, x);
  ASSERT_EQ(real.size(), whole.size());
  double noise = 0, signal = 0;
  for (size_t i = 0; i < real.size(); ++i) {
    noise += std::pow(double{real[i]} - whole[i], 2);
    signal += std::pow(double{real[i]}, 2);
  }
  EXPECT_LT(noise, 1e-3 * signal);
  for (int64_t row = 0; row < kBatch; ++row) {
    const auto alone = std::span(x).subspan(static_cast<size_t>(row * kLength * kWidth), kLength * kWidth);
    const std::vector<float> result = Run(*regional.program, {1, kLength, kWidth}, alone);
    EXPECT_TRUE(
        std::ranges::equal(result, std::span(whole).subspan(static_cast<size_t>(row) * result.size(), result.size())));
  }
}

INSTANTIATE_TEST_SUITE_P(Spellings, DynamicProductsTest,
                         ::testing::Values(Spelling{"Chain", Chain, 1}, Spelling{"Fused", Fused, 1},
                                           Spelling{"Shared", Shared, 2}, Spelling{"Scaled", Scaled, 1}),
                         [](const auto& spelling) { return std::string(spelling.param.name); });

// Windows have no positions of their own: the convolution is of real numbers.
TEST(DynamicConvolutionTest, IsALayerOfARegion) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4, -1, -1}).Floats("ws", {}, {0.01f});
  AddBytes(builder, "w", {8, 4, 3, 3}, DrawnBytes(8 * 4 * 9));
  builder.Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  builder.Node("ConvInteger", {"q", "w", "z"}, {"i"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  builder.Node("Cast", {"i"}, {"c"}, {{"to", int64_t{1}}})
      .Node("Mul", {"s", "ws"}, {"p"})
      .Node("Mul", {"c", "p"}, {"m"});
  builder.Node("Sin", {"m"}, {"y"});
  const std::vector<std::byte> model = WithOutput(builder, {-1, 8, -1, -1}).Bytes();
  const auto program = interpreter::ReadProgram(std::span<const std::byte>(model));
  ASSERT_THAT(program, IsOk());
  EXPECT_TRUE((*program)->rows_are_independent());
  const auto backend = NewCpuBackend();
  const auto regional = PlanRegions(*program, *backend, {.threads = 2, .tuning_budget = absl::ZeroDuration()});
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.OperatorCounts(), "Sin:1");
}

}  // namespace
}  // namespace swizzle::regions
