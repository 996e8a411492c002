// Files of older format versions: they open as they did, and what is read of them survives being written in today's.
// Version 1 was written when Layer had all attributes side by side, version 2 (quantised.swz) when quantised weights
// took four bytes a value.
#include <gtest/gtest.h>

#include <string>

#include "model_loader/files/read_file.h"
#include "model_loader/packed/packed_reader.h"
#include "model_loader/packed/packed_writer.h"

namespace swizzle {
namespace {

class PackedFilesTest : public ::testing::TestWithParam<const char*> {};

StatusOr<std::vector<std::byte>> Stored(const std::string& name) {
  return ReadFile(SWIZZLE_SOURCE_DIR "/tests/testdata/packed/" + name, int64_t{1} << 20);
}

TEST_P(PackedFilesTest, OpensAndIsWrittenWhole) {
  const auto bytes = Stored(GetParam());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto network = ReadPacked(*bytes);
  ASSERT_TRUE(network.ok()) << network.status();

  const auto written = EncodePacked(*network);
  const auto again = ReadPacked(*written);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*EncodePacked(*again), *written);
  ASSERT_EQ(again->layers.size(), network->layers.size());
  for (size_t i = 0; i < network->layers.size(); ++i) {
    EXPECT_TRUE(static_cast<const Operator&>(again->layers[i]) == network->layers[i]) << network->layers[i].name;
  }
  ASSERT_EQ(again->weights.size(), network->weights.size());
  for (size_t i = 0; i < network->weights.size(); ++i) {
    EXPECT_EQ(again->weights[i].format(), network->weights[i].format());
    EXPECT_EQ(again->weights[i].ToDense().values, network->weights[i].ToDense().values);
    EXPECT_EQ(again->weights[i].bias, network->weights[i].bias);
    EXPECT_EQ(again->weights[i].quantisation, network->weights[i].quantisation);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackedFilesTest,
                         ::testing::Values("images.swz", "tokens.swz", "pattern.swz", "quantised.swz"),
                         [](const auto& file) {
                           const std::string name = file.param;
                           return name.substr(0, name.find('.'));
                         });

const Layer& FirstOf(const Network& network, Op op) {
  for (const Layer& layer : network.layers) {
    if (layer.op == op) return layer;
  }
  ADD_FAILURE() << "no " << OpName(op);
  return network.layers[0];
}

TEST(PackedFileTest, GivesAttributes) {
  const Network images = *ReadPacked(*Stored("images.swz"));
  EXPECT_EQ(images.producer, "pytorch 2.11.0");
  EXPECT_EQ(images.batch_size, 3);
  EXPECT_EQ(FirstOf(images, Op::kConv).window(), (Window{3, 3, 2, 2, 1, 1, 1, 1, 1, 1, false}));
  EXPECT_TRUE(FirstOf(images, Op::kAveragePool).window().count_include_pad);
  EXPECT_EQ(FirstOf(images, Op::kFunction).function(), (Function{FunctionKind::kHardSwish, 1.0f / 6, 0.5f}));
  EXPECT_EQ(FirstOf(images, Op::kConv).epilogue, (Epilogue{0.0f, 6.0f, false}));

  const Network tokens = *ReadPacked(*Stored("tokens.swz"));
  EXPECT_EQ(FirstOf(tokens, Op::kEmbedding).lookup(), Lookup{});
  EXPECT_EQ(tokens.layers[1].lookup(), (Lookup{true, 2}));
  EXPECT_EQ(FirstOf(tokens, Op::kLayerNorm).normalisation().epsilon, 1e-5f);
  EXPECT_EQ(FirstOf(tokens, Op::kAttention).attention(), (Attention{2, 0.3f, 0, 0}));
  EXPECT_EQ(FirstOf(tokens, Op::kSelectToken).token_choice().token, -1);

  const auto quantised_bytes = Stored("quantised.swz");
  const Network quantised = *ReadPacked(*quantised_bytes);
  ASSERT_TRUE(quantised.weights[0].quantisation);
  EXPECT_EQ(quantised.weights[0].quantisation->scales.size(), 8u);
  EXPECT_LT(EncodePacked(quantised)->size(), quantised_bytes->size()) << "a byte a value";

  const Network pattern = *ReadPacked(*Stored("pattern.swz"));
  const Attention& attention = FirstOf(pattern, Op::kSparseAttention).attention();
  EXPECT_EQ(attention.heads, 2);
  EXPECT_EQ(attention.length, 30);
  EXPECT_EQ(attention.nonzeros, pattern.weights[FirstOf(pattern, Op::kSparseAttention).weight].nonzeros());
}

}  // namespace
}  // namespace swizzle
