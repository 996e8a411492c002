#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "model_loader/safetensors/checkpoint.h"
#include "model_loader/safetensors/encoder_config.h"
#include "tests/support/shipped_checkpoint.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::ConfigOf;
using testing::ExpectedOf;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;
using testing::TensorsOf;

StatusOr<ModernBertConfig> ParseModernBert(const std::string& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(const EncoderConfig config,
                           ParseEncoderConfig(Concat(R"({"model_type":"modernbert")", fields, "}")));
  return std::get<ModernBertConfig>(config);
}

TEST(ModernBertConfig, WhatIsLeftOutIsAsInTransformers) {
  const auto config = ParseModernBert("");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->hidden_size, 768);
  EXPECT_EQ(config->num_attention_heads, 12);
  ASSERT_EQ(config->is_local.size(), 22u);
  for (size_t layer = 0; layer < 22; ++layer) EXPECT_EQ(config->is_local[layer], layer % 3 != 0) << layer;
  EXPECT_EQ(config->reach, 64);
  EXPECT_EQ(config->global_theta, 160000.0f);
  EXPECT_EQ(config->local_theta, 10000.0f);
  EXPECT_EQ(config->activation, EncoderActivation::kGelu);
  EXPECT_EQ(config->norm_eps, 1e-5f);
  EXPECT_FALSE(config->norm_bias || config->attention_bias || config->mlp_bias || config->classifier_bias);
  EXPECT_FALSE(config->classifies);
  EXPECT_EQ(config->pooling, ClassifierPooling::kFirst);
  EXPECT_EQ(config->classifier_activation, EncoderActivation::kGelu);
}

// As transformers writes it from version 5 on.
TEST(ModernBertConfig, ReadsTypesAndPeriodsOfLayers) {
  const auto config = ParseModernBert(
      R"(,"num_hidden_layers":2,"layer_types":["sliding_attention","full_attention"],"rope_parameters":{)"
      R"("full_attention":{"rope_theta":5.0,"rope_type":"default"},"sliding_attention":{"rope_theta":7}})");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->is_local, (std::vector<bool>{true, false}));
  EXPECT_EQ(config->global_theta, 5.0f);
  EXPECT_EQ(config->local_theta, 7.0f);
}

TEST(ModernBertConfig, APeriodThatIsNullIsTheOther) {
  const auto config = ParseModernBert(R"(,"global_rope_theta":50.0,"local_rope_theta":null)");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->local_theta, 50.0f);
}

TEST(ModernBertConfig, RefusesWhatIsWrongByItsName) {
  const std::tuple<const char*, StatusCode, const char*> faults[] = {
      {R"(,"hidden_size":36)", kInvalid,
       "its hidden size 36 is not made of heads of an even size by its num_attention"},
      {R"(,"global_attn_every_n_layers":0)", kInvalid,
       "its global_attn_every_n_layers is 0; it must be a whole number"},
      {R"(,"global_rope_theta":0)", kInvalid, "its global_rope_theta is 0; it must be a number above 0"},
      {R"(,"global_rope_theta":1e39)", kInvalid, "its global_rope_theta is 1e+39; it must be a number above 0"},
      {R"(,"local_rope_theta":"a")", kInvalid, "its local_rope_theta is \"a\"; it must be a number above 0"},
      {R"(,"norm_bias":1)", kInvalid, "its norm_bias is 1; it must be true or false"},
      {R"(,"hidden_activation":"prelu")", kUnsupported, "its hidden_activation is \"prelu\"; supported are gelu"},
      {R"(,"classifier_pooling":"max")", kInvalid, "its classifier_pooling is \"max\"; it must be cls or mean"},
      {R"(,"rope_scaling":{"type":"linear","factor":2.0})", kUnsupported, "its rope_scaling is {\"factor\":2.0,"},
      {R"(,"rope_scaling":[])", kInvalid, "its rope_scaling is []; it must be an object"},
      {R"(,"rope_parameters":{"sliding_attention":{"rope_type":"yarn"}})", kUnsupported, "its rope_parameters is {"},
      {R"(,"rope_parameters":{"full_attention":1})", kInvalid, "its full_attention is 1; it must be an object"},
      {R"(,"layer_types":["full_attention"])", kInvalid, "it must be a list of 22 strings, one for each of num_hidden"},
      {R"(,"layer_types":["chunked_attention"])", kUnsupported, "its layer_types has \"chunked_attention\"; supported"},
  };
  for (const auto& [fields, code, message] : faults) EXPECT_THAT(ParseModernBert(fields), IsError(code, message));
}

StatusOr<Graph> MakeModernBert(const TensorMap& tensors, const std::string& config = ConfigOf("modernbert")) {
  return MakeCheckpointGraph(config, tensors, {.find_operator = FindInterpretedOperator});
}

TensorMap Prefixed(const std::string& prefix, const TensorMap& tensors) {
  TensorMap prefixed;
  for (const auto& [name, tensor] : tensors) prefixed.emplace(prefix + name, tensor);
  return prefixed;
}

TEST(ModernBert, IsWrittenAsAnExporterWould) {
  const auto graph = MakeModernBert(TensorsOf("modernbert"));
  ASSERT_THAT(graph, IsOk());
  const auto ops_of = [&](const std::string& place) {
    std::string ops;
    for (const Node& node : graph->nodes) {
      if (node.name.starts_with(place)) ops += node.op + " ";
    }
    return ops;
  };
  const std::string rotation = "Mul Slice Slice Neg Concat Mul Add ";
  EXPECT_EQ(ops_of("layers.1."), "LayerNormalization MatMul Reshape Transpose Split Squeeze Squeeze Squeeze " +
                                     rotation + rotation +
                                     "Transpose MatMul Mul Add Softmax MatMul Transpose Reshape MatMul Add " +
                                     "LayerNormalization MatMul Split Div Erf Add Mul Mul Mul MatMul Add ");
  // The first layer reads what the embeddings' norm made.
  EXPECT_TRUE(ops_of("layers.0.").starts_with("MatMul Reshape ")) << ops_of("layers.0.");
  EXPECT_EQ(ops_of("window"), "Unsqueeze Transpose Sub Abs LessOrEqual Unsqueeze Not Where ");
  EXPECT_EQ(ops_of("angles.global"), "Unsqueeze Cast MatMul Transpose Concat Cos Unsqueeze Sin Unsqueeze ");
}

// The encoder alone, whatever is around it, and whatever it was trained for.
TEST(ModernBert, HeadsForOtherTasksAreLeftOut) {
  const auto plain = MakeModernBert(TensorsOf("modernbert"));
  ASSERT_THAT(plain, IsOk());
  for (const std::string wrapper : {"", "module."}) {
    TensorMap tensors = Prefixed(wrapper + "model.", TensorsOf("modernbert"));
    for (const char* name : {"head.dense.weight", "head.norm.weight", "decoder.weight", "decoder.bias"}) {
      tensors.emplace(wrapper + name, Tensor::Floats({1}, std::vector<float>{1}));
    }
    std::string config = ConfigOf("modernbert");
    config.replace(config.find('{'), 1, R"({"architectures":["ModernBertForMaskedLM"],)");
    const auto graph = MakeModernBert(tensors, config);
    ASSERT_THAT(graph, IsOk()) << wrapper;
    ASSERT_EQ(graph->outputs.size(), 1u);
    ASSERT_EQ(graph->values.size(), plain->values.size());
    for (size_t i = 0; i < plain->values.size(); ++i) EXPECT_EQ(graph->values[i].constant, plain->values[i].constant);
  }
}

TEST(ModernBert, PaddingChangesNothing) {
  for (const char* name : {"modernbert", "modernbert_classifier"}) {
    auto graph = MakeModernBert(TensorsOf(name), ConfigOf(name));
    ASSERT_THAT(graph, IsOk()) << name;
    const auto program = interpreter::Program::Make(*std::move(graph));
    ASSERT_THAT(program, IsOk()) << name;
    testing::ExpectPaddingChangesNothing(**program, ExpectedOf(name), 4);
  }
}

TEST(ModernBert, LayersHaveTheSizesOfTheirTensors) {
  TensorMap tensors = TensorsOf("modernbert");
  const auto drawn = [](Shape shape) {
    const auto count = static_cast<size_t>(*ElementCount(shape));
    return Tensor::Floats(std::move(shape), std::vector<float>(count, 0.5f));
  };
  // One of two heads, and four of twelve units.
  tensors["layers.2.attn.Wqkv.weight"] = drawn({12, 8});
  tensors["layers.2.attn.Wo.weight"] = drawn({8, 4});
  tensors["layers.2.mlp.Wi.weight"] = drawn({16, 8});
  tensors["layers.2.mlp.Wo.weight"] = drawn({8, 8});
  auto graph = MakeModernBert(tensors);
  ASSERT_THAT(graph, IsOk());
  const auto program = interpreter::Program::Make(*std::move(graph));
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(testing::Run(**program, ExpectedOf("modernbert")), IsOk());
}

TEST(ModernBert, SaysWhatIsWrong) {
  const auto floats = [](Shape shape) {
    const auto count = static_cast<size_t>(*ElementCount(shape));
    return Tensor::Floats(std::move(shape), std::vector<float>(count));
  };
  const std::tuple<const char*, std::optional<Tensor>, const char*> faults[] = {
      {"embeddings.tok_embeddings.weight", std::nullopt, "lacks the tensor 'embeddings.tok_embeddings.weight'"},
      {"layers.0.attn.Wqkv.weight", floats({23, 8}), "has 23 rows, which are no queries, keys and values of whole"},
      {"layers.1.attn_norm.weight", std::nullopt, "lacks the tensor 'layers.1.attn_norm.weight'"},
      {"layers.0.attn_norm.weight", floats({8}), "'layers.0.attn_norm.weight', which is of no part of the encoder"},
      {"layers.1.mlp.Wi.weight", floats({23, 8}), "has 23 rows, of which one half cannot gate the other"},
      {"layers.1.mlp.Wi.bias", floats({24}), "'layers.1.mlp.Wi.bias', which is of no part"},
      {"layers.4.mlp.Wi.weight", floats({24, 8}), "'layers.4.mlp.Wi.weight', which is of no part"},
      {"final_norm.weight", std::nullopt, "lacks the tensor 'final_norm.weight'"},
  };
  for (const auto& [name, tensor, message] : faults) {
    TensorMap tensors = TensorsOf("modernbert");
    tensors.erase(name);
    if (tensor) tensors.emplace(name, *tensor);
    EXPECT_THAT(MakeModernBert(tensors), IsError(kInvalid, message));
  }
  for (const char* name : {"head.dense.weight", "head.norm.bias", "classifier.bias", "model.layers.3.attn.Wo.bias"}) {
    TensorMap tensors = TensorsOf("modernbert_classifier");
    ASSERT_EQ(tensors.erase(name), 1u) << name;
    EXPECT_THAT(MakeModernBert(tensors, ConfigOf("modernbert_classifier")),
                IsError(kInvalid, "the checkpoint lacks the tensor '"));
  }
}

}  // namespace
}  // namespace swizzle
