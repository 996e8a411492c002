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
using testing::LargestDifference;
using testing::TensorsOf;

constexpr char kStates[] = "last_hidden_state";

StatusOr<NomicBertConfig> ParseNomic(const std::string& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(const EncoderConfig config,
                           ParseEncoderConfig(Concat(R"({"model_type":"nomic_bert")", fields, "}")));
  return std::get<NomicBertConfig>(config);
}

TEST(NomicBertConfig, WhatIsLeftOutIsAsInItsCode) {
  const auto config = ParseNomic(R"(,"rotary_emb_fraction":1,"activation_function":"gelu")");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->hidden_size, 768);
  EXPECT_EQ(config->num_attention_heads, 12);
  EXPECT_EQ(config->num_hidden_layers, 12);
  EXPECT_EQ(config->theta, 10000.0f);
  EXPECT_EQ(config->scaling_factor, 0.0f);
  EXPECT_EQ(config->trained_positions, 2048);
  EXPECT_FALSE(config->interleaved);
  EXPECT_FALSE(config->is_gated);
  EXPECT_EQ(config->norm_eps, 1e-5f);
  EXPECT_TRUE(config->attention_bias && config->inner_bias && config->outer_bias);
  EXPECT_FALSE(config->classifies);
}

TEST(NomicBertConfig, ReadsPerceptrons) {
  const std::tuple<const char*, EncoderActivation, bool> perceptrons[] = {
      {"swiglu", EncoderActivation::kSilu, true},
      {"geglu", EncoderActivation::kGelu, true},
      {"glu", EncoderActivation::kSigmoid, true},
      {"gelu", EncoderActivation::kGelu, false},
  };
  for (const auto& [name, activation, is_gated] : perceptrons) {
    const auto config = ParseNomic(Concat(R"(,"rotary_emb_fraction":1.0,"activation_function":")", name, "\""));
    ASSERT_THAT(config, IsOk()) << name;
    EXPECT_EQ(config->activation, activation) << name;
    EXPECT_EQ(config->is_gated, is_gated) << name;
  }
}

// As transformers writes the configuration of a model that it saves.
TEST(NomicBertConfig, ReadsWhatTransformersWrites) {
  const auto config = ParseNomic(R"(,"hidden_size":8,"num_attention_heads":2,"num_hidden_layers":3,"head_dim":4,)"
                                 R"("hidden_act":"gelu","layer_norm_eps":1e-06,"max_position_embeddings":2048,)"
                                 R"("rope_parameters":{"rope_theta":500.0,"rope_type":"default"})");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->hidden_size, 8);
  EXPECT_EQ(config->num_attention_heads, 2);
  EXPECT_EQ(config->num_hidden_layers, 3);
  EXPECT_EQ(config->theta, 500.0f);
  EXPECT_EQ(config->scaling_factor, 0.0f);
  EXPECT_FALSE(config->interleaved);
  EXPECT_TRUE(config->is_gated);
  EXPECT_EQ(config->activation, EncoderActivation::kGelu);
  EXPECT_EQ(config->norm_eps, 1e-6f);
  EXPECT_FALSE(config->attention_bias || config->inner_bias || config->outer_bias);
  const auto scaled =
      ParseNomic(R"(,"max_position_embeddings":512,"rope_parameters":{"rope_type":"dynamic","factor":2.5})");
  ASSERT_THAT(scaled, IsOk());
  EXPECT_EQ(scaled->hidden_size, 768);
  EXPECT_EQ(scaled->activation, EncoderActivation::kSilu);
  EXPECT_EQ(scaled->norm_eps, 1e-12f);
  EXPECT_EQ(scaled->theta, 1000.0f);
  EXPECT_EQ(scaled->scaling_factor, 2.5f);
  EXPECT_EQ(scaled->trained_positions, 512);
}

TEST(NomicBertConfig, RefusesWhatIsWrongByItsName) {
  const std::tuple<const char*, StatusCode, const char*> faults[] = {
      {"", kUnsupported, "its rotary_emb_fraction is 0; only 1 is supported"},
      {R"(,"rotary_emb_fraction":0.5)", kUnsupported, "its rotary_emb_fraction is 0.5; only 1 is supported"},
      {R"(,"rotary_emb_fraction":1.0)", kUnsupported,
       "its activation_function is \"gelu_new\"; supported are swiglu, "},
      {R"(,"n_head":7)", kInvalid, "its hidden size 768 is not made of heads of an even size by its n_head, 7"},
      {R"(,"n_layer":0)", kInvalid, "its n_layer is 0; it must be a whole number"},
      {R"(,"prenorm":true)", kUnsupported, "its prenorm is true; only false is supported"},
      {R"(,"rotary_head_dim":true)", kUnsupported, "its rotary_head_dim is true; only false is supported"},
      {R"(,"causal":1)", kInvalid, "its causal is 1; it must be true or false"},
      {R"(,"moe_every_n_layers":2)", kUnsupported, "its moe_every_n_layers is 2; only null is supported"},
      {R"(,"rotary_emb_scale_base":512)", kUnsupported, "its rotary_emb_scale_base is 512; only null is supported"},
      {R"(,"rotary_emb_fraction":1,"rotary_scaling_factor":0)", kInvalid, "its rotary_scaling_factor is 0; it must be"},
      {R"(,"rotary_emb_fraction":1,"rope_parameters":{"rope_type":"dynamic","factor":2.0})", kUnsupported,
       "its rope_parameters is {\"factor\":2.0,"},
      {R"(,"rope_parameters":{"rope_type":"yarn","factor":2.0})", kUnsupported, "only the rope_type default is"},
      {R"(,"rope_parameters":{"rope_type":"dynamic"})", kInvalid, "\"dynamic\"}, without a factor"},
      {R"(,"rope_parameters":{"partial_rotary_factor":0.5})", kUnsupported, "its partial_rotary_factor is 0.5; only 1"},
      {R"(,"rope_parameters":{},"head_dim":32)", kUnsupported, "its head_dim is 32; only 64, hidden_size / num"},
      {R"(,"rope_parameters":{},"num_attention_heads":7)", kInvalid, "by its num_attention_heads, 7"},
  };
  for (const auto& [fields, code, message] : faults) EXPECT_THAT(ParseNomic(fields), IsError(code, message));
}

StatusOr<Graph> MakeNomicBert(const TensorMap& tensors, const std::string& config = ConfigOf("nomic_bert")) {
  return MakeCheckpointGraph(config, tensors, {.find_operator = FindInterpretedOperator});
}

TEST(NomicBert, IsWrittenAsAnExporterWould) {
  const auto graph = MakeNomicBert(TensorsOf("nomic_bert"));
  ASSERT_THAT(graph, IsOk());
  std::string ops;
  for (const Node& node : graph->nodes) {
    if (node.name.starts_with("encoder.layers.1.")) ops += node.op + " ";
  }
  const std::string rotation = "Mul Slice Slice Neg Concat Mul Add ";
  EXPECT_EQ(ops, "MatMul Reshape Transpose Split Squeeze Squeeze Squeeze " + rotation + rotation +
                     "Transpose MatMul Mul Add Softmax MatMul Transpose Reshape MatMul Add LayerNormalization " +
                     "MatMul MatMul Sigmoid Mul Mul MatMul Add LayerNormalization ");
}

// The configuration of the shipped checkpoint with angles that are scaled beyond so many positions.
std::string ScaledConfig(int trained) {
  std::string config = ConfigOf("nomic_bert");
  const std::string field = R"("rotary_scaling_factor": null)";
  return config.replace(config.find(field), field.size(),
                        Concat(R"("rotary_scaling_factor": 2.0, "max_trained_positions": )", trained));
}

// The other shipped checkpoint has longer sequences than it was trained for.
TEST(NomicBert, ThetaStaysInSequencesAsLongAsTrained) {
  auto graph = MakeNomicBert(TensorsOf("nomic_bert"), ScaledConfig(7));
  ASSERT_THAT(graph, IsOk());
  const auto program = interpreter::Program::Make(*std::move(graph));
  ASSERT_THAT(program, IsOk());
  testing::ExpectAsExpected(**program, ExpectedOf("nomic_bert"), 1e-5);
}

// The shipped checkpoints as transformers would have saved them: by its own configuration, with Nomic's names.
TEST(NomicBert, ReadsWhatTransformersSaves) {
  const std::string common = R"({"model_type":"nomic_bert","hidden_size":8,"num_attention_heads":2,)"
                             R"("num_hidden_layers":2,"hidden_act":"silu","layer_norm_eps":1e-12,)"
                             R"("max_position_embeddings":5,"rope_parameters":{"rope_theta":1000.0,)";
  const TensorMap expected = ExpectedOf("nomic_bert");
  const auto outputs_of = [&](const std::string& config) -> StatusOr<TensorMap> {
    SWIZZLE_ASSIGN_OR_RETURN(Graph graph, MakeNomicBert(TensorsOf("nomic_bert"), config));
    SWIZZLE_ASSIGN_OR_RETURN(const auto program, interpreter::Program::Make(std::move(graph)));
    return testing::Run(*program, expected);
  };
  const auto plain = outputs_of(common + R"("rope_type":"default"}})");
  ASSERT_THAT(plain, IsOk());
  EXPECT_LT(LargestDifference(plain->at(kStates), expected.at(kStates)), 1e-5);
  const auto scaled = outputs_of(common + R"("rope_type":"dynamic","factor":2.0}})");
  ASSERT_THAT(scaled, IsOk());
  const auto by_nomic = outputs_of(ScaledConfig(5));
  ASSERT_THAT(by_nomic, IsOk());
  EXPECT_EQ(scaled->at(kStates).bytes, by_nomic->at(kStates).bytes);
  EXPECT_GT(LargestDifference(scaled->at(kStates), expected.at(kStates)), 1e-3) << "sequences are longer than trained";
}

TEST(NomicBert, PaddingChangesNothing) {
  auto graph = MakeNomicBert(TensorsOf("nomic_bert"));
  ASSERT_THAT(graph, IsOk());
  const auto program = interpreter::Program::Make(*std::move(graph));
  ASSERT_THAT(program, IsOk());
  testing::ExpectPaddingChangesNothing(**program, ExpectedOf("nomic_bert"), 4);
}

// Whatever wraps them, and with heads for other tasks; without the table that tells sentences apart.
TEST(NomicBert, ReadsWhatIsOfTheEncoder) {
  TensorMap tensors;
  for (const auto& [name, tensor] : TensorsOf("nomic_bert")) {
    if (name != "embeddings.token_type_embeddings.weight") tensors.emplace("bert." + name, tensor);
  }
  tensors.emplace("cls.predictions.decoder.bias", Tensor::Floats({1}, std::vector<float>{1}));
  const auto graph = MakeNomicBert(tensors);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->inputs.size(), 2u);
  EXPECT_EQ(graph->outputs.size(), 1u);
}

TEST(NomicBert, ClassifiersReadThePooler) {
  const auto drawn = [](Shape shape) {
    const auto count = static_cast<size_t>(*ElementCount(shape));
    return Tensor::Floats(std::move(shape), std::vector<float>(count, 0.25f));
  };
  std::string config = ConfigOf("nomic_bert_interleaved");
  config.replace(config.find('{'), 1, R"({"architectures":["NomicBertForSequenceClassification"],)");
  TensorMap tensors;
  for (const auto& [name, tensor] : TensorsOf("nomic_bert_interleaved")) tensors.emplace("bert." + name, tensor);
  tensors.emplace("classifier.weight", drawn({3, 8}));
  EXPECT_THAT(MakeNomicBert(tensors, config), IsError(kInvalid, "lacks the tensor 'classifier.bias'"));
  tensors.emplace("classifier.bias", drawn({3}));
  auto graph = MakeNomicBert(tensors, config);
  ASSERT_THAT(graph, IsOk());
  const auto program = interpreter::Program::Make(*std::move(graph));
  ASSERT_THAT(program, IsOk());
  const auto outputs = testing::Run(**program, ExpectedOf("nomic_bert_interleaved"));
  ASSERT_THAT(outputs, IsOk());
  const auto pooled = outputs->at("pooler_output").floats(), logits = outputs->at("logits").floats();
  ASSERT_EQ(logits.size(), 2 * 3u);
  for (size_t row = 0; row < 2; ++row) {
    float sum = 0.25f;
    for (size_t i = 0; i < 8; ++i) sum += 0.25f * pooled[row * 8 + i];
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(logits[row * 3 + i], sum, 1e-5);
  }
  tensors.erase("bert.pooler.dense.weight");
  tensors.erase("bert.pooler.dense.bias");
  EXPECT_THAT(MakeNomicBert(tensors, config), IsError(kInvalid, "lacks the tensor 'pooler.dense.weight'"));
}

TEST(NomicBert, SaysWhatIsWrong) {
  const auto floats = [](Shape shape) {
    const auto count = static_cast<size_t>(*ElementCount(shape));
    return Tensor::Floats(std::move(shape), std::vector<float>(count));
  };
  const std::tuple<const char*, std::optional<Tensor>, const char*> faults[] = {
      {"emb_ln.bias", std::nullopt, "lacks the tensor 'emb_ln.bias'"},
      {"encoder.layers.0.attn.Wqkv.weight", floats({23, 8}), "which are no queries, keys and values of whole heads"},
      {"encoder.layers.0.mlp.fc12.weight", floats({11, 8}), "has the shape [11,8]; it must be [12,8]"},
      {"encoder.layers.0.mlp.fc2.bias", floats({8}), "fc2.bias', which is of no part of the encoder"},
      {"encoder.layers.1.norm2.weight", std::nullopt, "lacks the tensor 'encoder.layers.1.norm2.weight'"},
      {"encoder.layers.2.norm2.weight", floats({8}), "'encoder.layers.2.norm2.weight', which is of no part"},
  };
  for (const auto& [name, tensor, message] : faults) {
    TensorMap tensors = TensorsOf("nomic_bert");
    tensors.erase(name);
    if (tensor) tensors.emplace(name, *tensor);
    EXPECT_THAT(MakeNomicBert(tensors), IsError(kInvalid, message));
  }
}

}  // namespace
}  // namespace swizzle
