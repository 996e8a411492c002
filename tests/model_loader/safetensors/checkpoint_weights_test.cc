#include "model_loader/safetensors/checkpoint_weights.h"

#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/float_tensor.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::Floats;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;

constexpr char kPooler[] = "pooler.dense";

Tensor Int8s(Shape shape, const std::vector<int>& values) {
  Tensor tensor{DType::kInt8, std::move(shape), {}};
  for (const int value : values) tensor.bytes.push_back(static_cast<std::byte>(value));
  return tensor;
}

// Two rows of three weights, by rows; what they read by one scale.
TensorMap Layer() {
  return {{"bert.pooler.dense.weight", Int8s({2, 3}, {1, -2, 3, 127, 0, -128})},
          {"bert.pooler.dense.weight_scale", Floats({2, 1}, {0.5f, 2.0f})},
          {"bert.pooler.dense.input_scale", Floats({1}, {0.25f})},
          {"bert.pooler.dense.input_zero_point", Int8s({1}, {-7})}};
}

CheckpointWeights Weights(TensorMap tensors, ActivationRounding rounding = ActivationRounding::kByScale) {
  const Compression compression{.quantised = true, .activations = rounding};
  const char* const prefix = tensors.begin()->first.starts_with("bert.") ? "bert." : "";
  auto weights = CheckpointWeights::From({}, prefix, compression, std::move(tensors));
  SWIZZLE_CHECK(weights.ok());
  return *std::move(weights);
}

TEST(CheckpointWeights, KeepsWholeNumbersWhereActivationsAre) {
  CheckpointWeights weights = Weights(Layer());
  const auto linear = weights.TakeLinear(kPooler, {-1, 3});
  ASSERT_THAT(linear, IsOk());
  EXPECT_EQ(linear->matrix, Int8s({2, 3}, {1, -2, 3, 127, 0, -128}));
  ASSERT_TRUE(linear->numbers && linear->input && linear->input->zero_points);
  EXPECT_EQ(linear->numbers->scales, Floats({2}, {0.5f, 2.0f}));
  EXPECT_FALSE(linear->numbers->zero_points);
  EXPECT_EQ(linear->input->scales, Floats({}, {0.25f}));
  EXPECT_EQ(*linear->input->zero_points, Int8s({}, {-7}));
  EXPECT_THAT(weights.CheckAllTaken(), IsOk());
}

TEST(CheckpointWeights, MakesThemRealElsewhere) {
  TensorMap tensors = Layer();
  tensors.erase("bert.pooler.dense.input_scale");
  tensors.erase("bert.pooler.dense.input_zero_point");
  tensors["bert.pooler.dense.weight_zero_point"] = Int8s({2, 1}, {1, 0});
  CheckpointWeights weights = Weights(tensors, ActivationRounding::kNone);
  const auto linear = weights.TakeLinear(kPooler, {2, 3});
  ASSERT_THAT(linear, IsOk());
  EXPECT_EQ(linear->matrix, Floats({2, 3}, {0, -1.5f, 1, 254, 0, -256}));
  EXPECT_FALSE(linear->numbers || linear->input);
  EXPECT_THAT(weights.CheckAllTaken(), IsOk());
  // A table, of one scale in half precision.
  weights =
      Weights({{"embeddings.word_embeddings.weight", Int8s({1, 2}, {3, -4})},
               {"embeddings.word_embeddings.weight_scale", {DType::kBFloat16, {1}, {std::byte{0}, std::byte{0x40}}}}});
  const auto table = weights.Take("embeddings.word_embeddings.weight", {-1, 2});
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(*table, Floats({1, 2}, {6, -8}));
}

TEST(CheckpointWeights, TakesLayersThatAreNotQuantised) {
  CheckpointWeights weights = Weights({{"pooler.dense.weight", Floats({1, 2}, {1, 2})}});
  const auto linear = weights.TakeLinear(kPooler, {1, 2});
  ASSERT_THAT(linear, IsOk());
  EXPECT_EQ(linear->matrix, Floats({1, 2}, {1, 2}));
  EXPECT_FALSE(linear->numbers || linear->input);
}

struct WeightFault {
  const char* name;
  std::string key;  // after the layer's name
  std::optional<Tensor> tensor;
  const char* message;
  StatusCode code = kInvalid;
};

void PrintTo(const WeightFault& fault, std::ostream* out) { *out << fault.name; }

class CheckpointWeightsFaultTest : public ::testing::TestWithParam<WeightFault> {};

TEST_P(CheckpointWeightsFaultTest, IsRefused) {
  TensorMap tensors = Layer();
  const std::string name = "bert.pooler.dense" + GetParam().key;
  tensors.erase(name);
  if (GetParam().tensor) tensors.emplace(name, *GetParam().tensor);
  CheckpointWeights weights = Weights(std::move(tensors));
  auto linear = weights.TakeLinear(kPooler, {2, 3});
  const Status status = linear.ok() ? weights.CheckAllTaken() : linear.status();
  EXPECT_THAT(status, IsError(GetParam().code, GetParam().message));
}

const WeightFault kWeightFaults[] = {
    {"NoWeight", ".weight", std::nullopt, "lacks the tensor 'pooler.dense.weight'"},
    {"NoScale", ".weight_scale", std::nullopt, "lacks the tensor 'pooler.dense.weight_scale'"},
    {"NoInputScale", ".input_scale", std::nullopt, "lacks the tensor 'pooler.dense.input_scale'"},
    {"ScalesOfGroups", ".weight_scale", Floats({2, 3}, std::vector<float>(6, 1)),
     "has the shape [2,3]; supported are one scale, or one for each of 2 rows", kUnsupported},
    {"ScalesAcross", ".weight_scale", Floats({1, 2}, {1, 1}), "has the shape [1,2]", kUnsupported},
    {"ScaleNegative", ".weight_scale", Floats({1}, {-1}), "'pooler.dense.weight': its scale -1", kUnsupported},
    {"ScaleWhole", ".weight_scale", Int8s({1}, {1}), "a floating-point type is needed", kUnsupported},
    {"ZeroPointsFew", ".weight_zero_point", Int8s({1}, {1}), "it has 2 scales and 1 zero points"},
    {"ZeroPointFloat", ".weight_zero_point", Floats({2, 1}, {1, 1}), "its zero point is FP32", kUnsupported},
    {"ZeroPointUnsigned", ".input_zero_point", Tensor{DType::kUint8, {1}, {std::byte{1}}}, "is UINT8; only INT8",
     kUnsupported},
    {"InputScales", ".input_scale", Floats({2}, {1, 1}), "has the shape [2]", kUnsupported},
    {"WeightInt64", ".weight", Tensor::Int64s({2, 3}, std::vector<int64_t>(6)), "is INT64", kUnsupported},
    {"WeightReal", ".weight", Floats({2, 3}, std::vector<float>(6)), "'pooler.dense.input_scale', which is of no part"},
    {"Order", ".weight_g_idx", Tensor::Int64s({3}, std::vector<int64_t>(3)), "weight_g_idx', which is of no part"},
};

INSTANTIATE_TEST_SUITE_P(Faults, CheckpointWeightsFaultTest, ::testing::ValuesIn(kWeightFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

TEST(CheckpointWeights, AreRealUnlessTheConfigurationSaysSo) {
  auto weights = CheckpointWeights::From({}, "bert.", {}, Layer());
  ASSERT_THAT(weights, IsOk());
  EXPECT_THAT(weights->TakeLinear(kPooler, {2, 3}), IsError(kUnsupported, "'pooler.dense.weight' is INT8"));
}

}  // namespace
}  // namespace swizzle
