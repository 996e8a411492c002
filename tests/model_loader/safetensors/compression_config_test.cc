#include "model_loader/safetensors/compression_config.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;

StatusOr<Compression> Read(const std::string& fields) {
  return ReadCompression(R"({"quantization_config":{)" + fields + "}}");
}

// Of one group of layers, in the format int-quantized.
StatusOr<Compression> ReadGroup(const std::string& fields) {
  return Read(R"("format":"int-quantized","config_groups":{"group_0":{)" + fields + "}}");
}

TEST(CompressionConfig, ReadsHowWeightsAreSparse) {
  const std::pair<const char*, SparsityFormat> configs[] = {
      {"{}", SparsityFormat::kDense},
      {R"({"quantization_config":null})", SparsityFormat::kDense},
      {R"({"quantization_config":{"quant_method":"compressed-tensors","sparsity_config":{}}})", SparsityFormat::kDense},
      {R"({"quantization_config":{"format":"dense","sparsity_config":{"format":"dense"}}})", SparsityFormat::kDense},
      {R"({"quantization_config":{"sparsity_config":{"format":"sparse-bitmask"},"transform_config":{}}})",
       SparsityFormat::kBitmask},
      {R"({"compression_config":{"config_groups":{},"sparsity_config":{"format":"sparse-24-bitmask"}}})",
       SparsityFormat::kTwoFourBitmask},
  };
  for (const auto& [config, expected] : configs) {
    const auto compression = ReadCompression(config);
    ASSERT_THAT(compression, IsOk()) << config;
    EXPECT_EQ(compression->sparsity, expected) << config;
    EXPECT_FALSE(compression->quantised) << config;
  }
}

TEST(CompressionConfig, ReadsHowActivationsAreRounded) {
  const std::string weights = R"("weights":{"num_bits":8,"type":"int"})", static_int8 = R"("num_bits":8)";
  const std::pair<std::string, ActivationRounding> groups[] = {
      {weights, ActivationRounding::kNone},
      {R"("weights":{"num_bits":4},"input_activations":null)", ActivationRounding::kNone},
      {weights + R"(,"input_activations":{"num_bits":8,"strategy":"tensor","dynamic":false})",
       ActivationRounding::kByScale},
      {weights + R"(,"format":"int-quantized","input_activations":{"num_bits":8})", ActivationRounding::kByScale},
      {weights + R"(,"input_activations":{"strategy":"token","dynamic":true})", ActivationRounding::kByToken},
      {weights + R"(,"input_activations":{"strategy":"tensor","dynamic":true},"output_activations":null)",
       ActivationRounding::kByToken},
  };
  for (const auto& [group, expected] : groups) {
    const auto compression = ReadGroup(group);
    ASSERT_THAT(compression, IsOk()) << group;
    EXPECT_TRUE(compression->quantised) << group;
    EXPECT_EQ(compression->activations, expected) << group;
  }
  const auto naive = Read(R"("format":"naive-quantized","sparsity_config":{"format":"sparse-bitmask"})");
  ASSERT_THAT(naive, IsOk());
  EXPECT_TRUE(naive->quantised);
  EXPECT_EQ(naive->sparsity, SparsityFormat::kBitmask);
}

TEST(CompressionConfig, RefusesOtherFormats) {
  EXPECT_THAT(Read(R"("sparsity_config":{"format":"marlin-24"})"),
              IsError(kUnsupported, "compressed in the format 'marlin-24', which is not supported: save"));
  EXPECT_THAT(Read(R"("format":"marlin-24")"), IsError(kUnsupported, "quantised, in the format 'marlin-24'"));
  EXPECT_THAT(Read(R"("format":"pack-quantized","config_groups":{"group_0":{}})"),
              IsError(kUnsupported, "'pack-quantized'"));
  EXPECT_THAT(Read(R"("config_groups":{"group_0":{}})"), IsError(kUnsupported, "quantised, in the format 'unnamed'"));
  EXPECT_THAT(Read(R"("format":"dense","config_groups":{"group_0":{}})"), IsError(kUnsupported, "format 'dense'"));
  EXPECT_THAT(Read(R"("quant_method":"gptq")"), IsError(kUnsupported, "by the method 'gptq'"));
  EXPECT_THAT(Read(R"("quant_method":"a\nb")"), IsError(kUnsupported, "by the method that is not printable"));
  EXPECT_THAT(Read(R"("transform_config":{"a":1})"), IsError(kUnsupported, "weights are transformed"));
  EXPECT_THAT(Read(R"("format":"int-quantized","kv_cache_scheme":{})"), IsError(kUnsupported, "keys and values"));
}

TEST(CompressionConfig, RefusesOtherGroups) {
  const std::string weights = R"("weights":{"num_bits":8})";
  EXPECT_THAT(ReadGroup(R"("input_activations":{"num_bits":8})"), IsError(kUnsupported, "weights are not quantised"));
  EXPECT_THAT(ReadGroup(R"("weights":{"type":"float"})"), IsError(kUnsupported, "weights are of the type 'float'"));
  EXPECT_THAT(ReadGroup(R"("weights":{"num_bits":16})"), IsError(kUnsupported, "weights have another number of bits"));
  EXPECT_THAT(ReadGroup(R"("weights":{"num_bits":-8})"), IsError(kUnsupported, "weights have another number of bits"));
  EXPECT_THAT(ReadGroup(weights + R"(,"input_activations":{"num_bits":4})"), IsError(kUnsupported, "activations have"));
  EXPECT_THAT(ReadGroup(weights + R"(,"input_activations":{"dynamic":"local"})"), IsError(kUnsupported, "neither"));
  EXPECT_THAT(ReadGroup(weights + R"(,"input_activations":{"strategy":"token"})"), IsError(kUnsupported, "'token'"));
  EXPECT_THAT(ReadGroup(weights + R"(,"input_activations":{"strategy":"group","dynamic":true})"),
              IsError(kUnsupported, "by the strategy 'group'"));
  EXPECT_THAT(ReadGroup(weights + R"(,"output_activations":{"num_bits":8})"), IsError(kUnsupported, "outputs are"));
  EXPECT_THAT(ReadGroup(weights + R"(,"format":"pack-quantized")"), IsError(kUnsupported, "'pack-quantized'"));
  EXPECT_THAT(Read(R"("format":"int-quantized","config_groups":{"a":{)" + weights + R"(},"b":{)" + weights +
                   R"(,"input_activations":{"dynamic":true}}})"),
              IsError(kUnsupported, "groups of layers differ in how they quantise activations"));
}

TEST(CompressionConfig, RefusesWhatIsMalformed) {
  EXPECT_THAT(Read(R"("sparsity_config":{"format":1})"), IsError(kInvalid, "its 'format' is not a string"));
  EXPECT_THAT(Read(R"("sparsity_config":[])"), IsError(kInvalid, "its 'sparsity_config' is not an object"));
  EXPECT_THAT(ReadCompression(R"({"quantization_config":3})"), IsError(kInvalid, "its 'quantization_config' is not"));
  EXPECT_THAT(ReadCompression(R"({"quantization_config":{"a":1},"compression_config":{"a":1}})"),
              IsError(kInvalid, "both a quantization_config and a compression_config"));
  EXPECT_THAT(Read(R"("format":"int-quantized","config_groups":{"W8A8":["Linear"]})"),
              IsError(kInvalid, "a group in its 'config_groups' that is not an object"));
  EXPECT_THAT(ReadGroup(R"("weights":[8])"), IsError(kInvalid, "its 'weights' is not an object"));
}

}  // namespace
}  // namespace swizzle
