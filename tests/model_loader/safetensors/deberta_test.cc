#include <string>
#include <variant>

#include "gtest/gtest.h"
#include "model_loader/safetensors/encoder_config.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;

// With what every published checkpoint says.
StatusOr<DebertaConfig> Parse(const std::string& fields) {
  const std::string published = R"({"model_type":"deberta-v2","relative_attention":true,"position_biased_input":false)";
  SWIZZLE_ASSIGN_OR_RETURN(const EncoderConfig config, ParseEncoderConfig(published + fields + "}"));
  return std::get<DebertaConfig>(config);
}

TEST(DebertaConfig, WhatIsLeftOutIsAsInTransformers) {
  const auto config = Parse("");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->hidden_size, 1536);
  EXPECT_EQ(config->embedding_size, 1536);
  EXPECT_EQ(config->num_attention_heads, 24);
  EXPECT_EQ(config->num_hidden_layers, 24);
  EXPECT_EQ(config->layer_norm_eps, 1e-7f);
  EXPECT_FALSE(config->in_buckets);
  EXPECT_EQ(config->span, 512);
  EXPECT_FALSE(config->of_queries || config->of_keys || config->shares_projections || config->norms_places);
}

TEST(DebertaConfig, ReadsPlacesAsTransformersSpellsThem) {
  for (const char* types : {R"(["p2c","c2p"])", R"("p2c|c2p")", R"("C2P | p2c")", R"(" c2p|P2C|")"}) {
    const auto config = Parse(std::string(R"(,"pos_att_type":)") + types);
    ASSERT_THAT(config, IsOk()) << types;
    EXPECT_TRUE(config->of_queries && config->of_keys) << types;
  }
  EXPECT_TRUE(Parse(R"(,"pos_att_type":"c2p")")->of_queries);
  EXPECT_FALSE(Parse(R"(,"pos_att_type":"c2p")")->of_keys);
  EXPECT_FALSE(Parse(R"(,"pos_att_type":[])")->of_queries);
  EXPECT_TRUE(Parse(R"(,"norm_rel_ebd":"none | Layer_Norm")")->norms_places);
}

TEST(DebertaConfig, CountsPlaces) {
  const auto buckets = Parse(R"(,"position_buckets":256,"max_relative_positions":-1,"max_position_embeddings":512)");
  EXPECT_TRUE(buckets->in_buckets);
  EXPECT_EQ(buckets->span, 256);
  EXPECT_EQ(buckets->farthest, 512);
  EXPECT_EQ(Parse(R"(,"max_relative_positions":64)")->span, 64);
  EXPECT_THAT(Parse(R"(,"max_relative_positions":64,"max_position_embeddings":65536)"), IsOk());
}

TEST(DebertaConfig, RefusesWhatItDoesNotCompute) {
  const auto refused = [](const std::string& fields, const char* why) {
    EXPECT_THAT(Parse(fields), IsError(StatusCode::kUnimplemented, why)) << fields;
  };
  refused(R"(,"conv_kernel_size":3)", "its conv_kernel_size is 3; only 0 is supported");
  refused(R"(,"attention_head_size":32)", "its attention_head_size is 32; only 64");
  EXPECT_THAT(ParseEncoderConfig(R"({"model_type":"deberta-v2","position_biased_input":false})"),
              IsError(StatusCode::kUnimplemented, "its relative_attention is false; only true is supported"));
  EXPECT_THAT(ParseEncoderConfig(R"({"model_type":"deberta-v2","relative_attention":true})"),
              IsError(StatusCode::kUnimplemented, "its position_biased_input is true; only false is supported"));
  EXPECT_THAT(
      Parse(R"(,"hidden_size":100,"num_attention_heads":3)"),
      IsError(StatusCode::kInvalidArgument, "its hidden size 100 is no multiple of its num_attention_heads, 3"));
}

}  // namespace
}  // namespace swizzle
