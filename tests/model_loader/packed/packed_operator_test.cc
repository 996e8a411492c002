#include "model_loader/packed/packed_operator.h"

#include <gtest/gtest.h>

#include <cctype>

#include "kernels/base/status.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

// "LAYER_KIND_DEPTHWISE_CONV" of "DepthwiseConv".
std::string SchemaName(std::string_view name) {
  std::string schema_name = "LAYER_KIND";
  for (const char c : name) {
    if (std::isupper(c) != 0) schema_name += '_';
    schema_name += static_cast<char>(std::toupper(c));
  }
  return schema_name;
}

TEST(PackedOperatorTest, NamesEveryOperatorOfNetworksAsTheSchema) {
  for (const OpTraits& traits : kOpTraits) {
    SCOPED_TRACE(traits.name);
    const packed::LayerKind kind = PackedOp(traits.op);
    if (traits.Has(OpTraits::kOfPlansOnly)) {
      EXPECT_EQ(kind, packed::LAYER_KIND_UNSPECIFIED);
    } else {
      EXPECT_EQ(packed::LayerKind_Name(kind), SchemaName(traits.name));
      EXPECT_EQ(UnpackedOp(kind), traits.op);
    }
  }
}

TEST(PackedOperatorTest, KeepsEveryOperatorOfNetworks) {
  const Operator layers[] = {
      {Op::kConv, Window{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, true}, {0.0f, 6.0f, true}},
      {Op::kFunction, Function{FunctionKind::kGeluTanh, 0.25f, 0.5f}, {.low = -1.0f}},
      {Op::kEmbedding, Lookup{true, 2}},
      {Op::kSparseAttention, Attention{2, 0.5f}},
      {Op::kAttention, Attention{.heads = 6, .scale = 0.5f, .group_size = 3}},
      {Op::kBiasedAttention, Attention{.heads = 2, .scale = 0.5f, .reach = 7}},
      {Op::kBiasedAttention, Attention{.heads = 2, .scale = 0.5f, .reach = 7, .group_size = 2}},
      {Op::kBiasedAttention, Attention{.heads = 2, .scale = 0.5f, .length = 9}},
      {Op::kDisentangledAttention, Attention{.heads = 2, .scale = 0.5f, .places = 11}},
      {Op::kBiasedAttention, Attention{.heads = 2, .scale = 0.5f, .length = 9, .windows = 4}},
      {Op::kPermuteTokens, std::monostate()},
      {Op::kPlaneTokens, std::monostate()},
      {Op::kLayerNorm, Normalisation{1e-5f}},
      {Op::kLayerNorm, Normalisation{1e-5f, false}},
      {Op::kLayerNorm, Normalisation{1e-5f, false, 4}},
      {Op::kRotary, Rotation{.heads = 3, .size = 64, .pairs = 16}},
      {Op::kSelectToken, TokenChoice{-1}},
      {Op::kConcat, ConcatParts{3, true, {5, 7, 1}}},
      {Op::kSlice, ChannelRange{17}},
      {Op::kResize, Resampling{true, Coordinates::kAlignCorners, {}, 0.0f, 1.5f}},
      {Op::kResize, Resampling{false, Coordinates::kAsymmetric, Nearest::kCeil, 2.0f, 2.0f}},
      {Op::kDepthToSpace, SpaceBlock{2, true}},
      {Op::kAdd, {}},
  };
  for (const Operator& layer : layers) {
    packed::Layer proto;
    PackOperator(layer, proto);
    const auto unpacked = UnpackOperator(proto);
    ASSERT_TRUE(unpacked.ok()) << unpacked.status();
    EXPECT_EQ(*unpacked, layer) << OpName(layer.op);
  }
}

TEST(PackedOperatorTest, RefusesWhatNoOperatorIsTold) {
  packed::Layer concat;
  PackOperator({Op::kConcat, ConcatParts{1, false, {1}}}, concat);
  for (int i = 0; i < kMaxParts; ++i) concat.mutable_parts()->add_sizes(1);
  EXPECT_THAT(UnpackOperator(concat), testing::IsError(StatusCode::kInvalidArgument, "it has 9 parts"));
  packed::Layer resize;
  PackOperator({Op::kResize, Resampling()}, resize);
  for (const int number : {0, 5, 99}) {
    resize.mutable_resampling()->set_coordinates(static_cast<packed::Coordinates>(number));
    EXPECT_THAT(UnpackOperator(resize), testing::IsError(StatusCode::kInvalidArgument, "coordinates"));
  }
  resize.mutable_resampling()->set_coordinates(packed::COORDINATES_ASYMMETRIC);
  resize.mutable_resampling()->set_nearest(static_cast<packed::Nearest>(5));
  EXPECT_THAT(UnpackOperator(resize), testing::IsError(StatusCode::kInvalidArgument, "nearest"));
}

TEST(PackedOperatorTest, KnowsNoOtherNumbers) {
  EXPECT_EQ(UnpackedOp(packed::LAYER_KIND_UNSPECIFIED), std::nullopt);
  EXPECT_EQ(UnpackedOp(static_cast<packed::LayerKind>(99)), std::nullopt);
}

}  // namespace
}  // namespace swizzle
