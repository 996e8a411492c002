#include "model_loader/safetensors/bert_config.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "model_loader/safetensors/encoder_config.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;

using Fields = std::map<std::string, std::string>;  // name -> JSON; empty: left out

StatusOr<BertConfig> ParseBertConfig(std::string_view config, std::string_view type_of_tensors = "") {
  SWIZZLE_ASSIGN_OR_RETURN(const EncoderConfig encoder, ParseEncoderConfig(config, type_of_tensors));
  return std::get<BertConfig>(encoder);
}

// BERT-base, with these fields changed.
StatusOr<BertConfig> Parse(const Fields& changes) {
  Fields fields = {{"model_type", R"("bert")"},   {"hidden_size", "768"},
                   {"num_attention_heads", "12"}, {"num_hidden_layers", "12"},
                   {"intermediate_size", "3072"}, {"hidden_act", R"("gelu")"},
                   {"layer_norm_eps", "1e-12"},   {"max_position_embeddings", "512"},
                   {"vocab_size", "30522"}};
  for (const auto& [name, value] : changes) fields[name] = value;
  std::string json;
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    json.append(json.empty() ? "\"" : ",\"").append(name).append("\":").append(value);
  }
  return ParseBertConfig("{" + json + "}");
}

TEST(BertConfig, ReadsBert) {
  const auto config =
      Parse({{"pruned_heads", R"({"1":[0,2]})"}, {"is_decoder", "false"}, {"torch_dtype", R"("float16")"}});
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->family, BertFamily::kBert);
  EXPECT_EQ(config->hidden_size, 768);
  EXPECT_EQ(config->num_attention_heads, 12);
  EXPECT_EQ(config->head_size(), 64);
  EXPECT_EQ(config->num_hidden_layers, 12);
  EXPECT_EQ(config->activation, EncoderActivation::kGelu);
  EXPECT_EQ(config->layer_norm_eps, 1e-12f);
  EXPECT_EQ(config->max_position_embeddings, 512);
}

TEST(BertConfig, ReadsItsRelatives) {
  for (const char* type : {R"("roberta")", R"("xlm-roberta")"}) {
    const auto config = Parse({{"model_type", type}, {"pad_token_id", "1"}, {"hidden_act", R"("gelu_new")"}});
    ASSERT_THAT(config, IsOk());
    EXPECT_EQ(config->family, BertFamily::kRoberta);
    EXPECT_EQ(config->pad_token_id, 1);
    EXPECT_EQ(config->activation, EncoderActivation::kGeluTanh);
  }
  const auto distil = ParseBertConfig(R"({"model_type":"distilbert","dim":768,"n_heads":12,"n_layers":6,)"
                                      R"("hidden_dim":3072,"activation":"relu","max_position_embeddings":512})");
  ASSERT_THAT(distil, IsOk());
  EXPECT_EQ(distil->family, BertFamily::kDistilBert);
  EXPECT_EQ(distil->num_hidden_layers, 6);
  EXPECT_EQ(distil->activation, EncoderActivation::kRelu);
  EXPECT_EQ(distil->layer_norm_eps, 1e-12f);
}

TEST(BertConfig, WhatIsLeftOutIsAsInTransformers) {
  const struct {
    const char* type;
    int64_t hidden, heads, layers, pad, embedding;
  } defaults[] = {
      {"bert", 768, 12, 12, 0, 768},      {"roberta", 768, 12, 12, 1, 768},   {"xlm-roberta", 768, 12, 12, 1, 768},
      {"camembert", 768, 12, 12, 1, 768}, {"distilbert", 768, 12, 6, 0, 768}, {"electra", 256, 4, 12, 0, 128},
      {"mpnet", 768, 12, 12, 1, 768},
  };
  for (const auto& expected : defaults) {
    const auto config = ParseBertConfig(Concat(R"({"model_type":")", expected.type, R"(","hidden_size":null})"));
    ASSERT_THAT(config, IsOk()) << expected.type;
    EXPECT_EQ(config->hidden_size, expected.hidden) << expected.type;
    EXPECT_EQ(config->num_attention_heads, expected.heads) << expected.type;
    EXPECT_EQ(config->num_hidden_layers, expected.layers) << expected.type;
    EXPECT_EQ(config->pad_token_id, expected.pad) << expected.type;
    EXPECT_EQ(config->embedding_size, expected.embedding) << expected.type;
    EXPECT_EQ(config->max_position_embeddings, 512) << expected.type;
    EXPECT_EQ(config->layer_norm_eps, 1e-12f) << expected.type;
    EXPECT_EQ(config->activation, EncoderActivation::kGelu) << expected.type;
  }
}

TEST(BertConfig, TheKindFollowsFromTheArchitectureOrTheTensors) {
  const auto family = [](const char* architectures, const char* of_tensors) {
    const auto config = ParseBertConfig(Concat("{", architectures, "}"), of_tensors);
    EXPECT_THAT(config, IsOk()) << architectures;
    return config->family;
  };
  EXPECT_EQ(family(R"("architectures":["BertForMaskedLM"])", "roberta"), BertFamily::kBert);
  EXPECT_EQ(family(R"("architectures":["BertLMHeadModel"])", ""), BertFamily::kBert);
  EXPECT_EQ(family(R"("architectures":["ElectraForPreTraining"])", ""), BertFamily::kBert);
  EXPECT_EQ(family(R"("architectures":["RobertaModel"])", ""), BertFamily::kRoberta);
  EXPECT_EQ(family(R"("architectures":["XLMRobertaForSequenceClassification"])", ""), BertFamily::kRoberta);
  EXPECT_EQ(family(R"("architectures":["CamembertForMaskedLM"],"model_type":null)", ""), BertFamily::kRoberta);
  EXPECT_EQ(family(R"("architectures":["DistilBertModel"])", ""), BertFamily::kDistilBert);
  EXPECT_EQ(family(R"("architectures":[])", "roberta"), BertFamily::kRoberta);
  EXPECT_EQ(family("", "bert"), BertFamily::kBert);
}

TEST(BertConfig, ClassifiersAreToldByTheArchitecture) {
  const auto classifier = [](const char* type, const char* architecture) {
    const auto config =
        ParseBertConfig(Concat(R"({"model_type":")", type, R"(","architectures":[")", architecture, "\"]}"));
    EXPECT_THAT(config, IsOk()) << architecture;
    return config->classifier;
  };
  EXPECT_EQ(classifier("bert", "BertForSequenceClassification"), BertClassifier::kPooler);
  EXPECT_EQ(classifier("roberta", "RobertaForSequenceClassification"), BertClassifier::kTanh);
  EXPECT_EQ(classifier("xlm-roberta", "XLMRobertaForSequenceClassification"), BertClassifier::kTanh);
  EXPECT_EQ(classifier("camembert", "CamembertForSequenceClassification"), BertClassifier::kTanh);
  EXPECT_EQ(classifier("electra", "ElectraForSequenceClassification"), BertClassifier::kGelu);
  EXPECT_EQ(classifier("distilbert", "DistilBertForSequenceClassification"), BertClassifier::kRelu);
  EXPECT_EQ(classifier("bert", "BertForTokenClassification"), BertClassifier::kNone);
  EXPECT_EQ(classifier("bert", "BertModel"), BertClassifier::kNone);
}

TEST(BertConfig, DistilBertKnowsTheNamesOfBertsFields) {
  const auto config = ParseBertConfig(R"({"model_type":"distilbert","hidden_size":64,"num_attention_heads":4,)"
                                      R"("num_hidden_layers":3,"hidden_act":"relu"})");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->num_attention_heads, 4);
  EXPECT_EQ(config->num_hidden_layers, 3);
  EXPECT_EQ(config->activation, EncoderActivation::kRelu);
}

TEST(BertConfig, RefusesWhatIsWrongByItsName) {
  const std::tuple<Fields, StatusCode, const char*> faults[] = {
      {{{"model_type", ""}}, kInvalid, "lacks the field model_type, and neither architectures nor the names of"},
      {{{"model_type", ""}, {"architectures", R"(["BertGenerationEncoder"])"}},
       kUnsupported,
       "its architecture is \"BertGenerationEncoder\"; supported are bert, roberta,"},
      {{{"model_type", ""}, {"architectures", R"(["XLMRobertaXLModel"])"}}, kUnsupported, "XLMRobertaXLModel"},
      {{{"model_type", ""}, {"architectures", "7"}}, kInvalid, "lacks the field model_type"},
      {{{"model_type", "1"}}, kInvalid, "its model_type is 1; it must be a string"},
      {{{"model_type", R"("gpt2")"}}, kUnsupported, "its model_type is \"gpt2\"; supported are bert,"},
      {{{"model_type", R"("\u0007é")"}}, kUnsupported, "its model_type is \"\\u0007\\u00e9\"; supported"},
      {{{"hidden_size", "0"}}, kInvalid, "its hidden_size is 0; it must be a whole number from 1 to"},
      {{{"hidden_size", "-768"}}, kInvalid, "its hidden_size is -768"},
      {{{"hidden_size", "768.5"}}, kInvalid, "its hidden_size is 768.5"},
      {{{"hidden_size", "18446744073709551615"}}, kInvalid, "its hidden_size is 18446744073709551615"},
      {{{"hidden_size", R"("768")"}}, kInvalid, "its hidden_size is \"768\""},
      {{{"hidden_size", "100"}}, kInvalid, "its hidden size 100 is no multiple of its num_attention_heads, 12"},
      {{{"num_attention_heads", "[12]"}}, kInvalid, "its num_attention_heads is [12]"},
      {{{"num_hidden_layers", "1025"}}, kInvalid, "its num_hidden_layers is 1025"},
      {{{"max_position_embeddings", "0"}}, kInvalid, "its max_position_embeddings is 0"},
      {{{"layer_norm_eps", "0"}}, kInvalid, "its layer_norm_eps is 0; it must be a number between 0 and 1"},
      {{{"layer_norm_eps", "true"}}, kInvalid, "its layer_norm_eps is true"},
      {{{"hidden_act", R"("prelu")"}}, kUnsupported, "its hidden_act is \"prelu\"; supported are gelu"},
      {{{"hidden_act", "{}"}}, kInvalid, "its hidden_act is {}; it must be a string"},
      {{{"position_embedding_type", R"("relative_key")"}},
       kUnsupported,
       "its position_embedding_type is \"relative_key\""},
      {{{"is_decoder", "true"}}, kUnsupported, "its is_decoder is true; only encoders are supported"},
      {{{"add_cross_attention", "1"}}, kUnsupported, "its add_cross_attention is 1"},
      {{{"model_type", R"("roberta")"}, {"pad_token_id", "511"}}, kInvalid, "its pad_token_id is 511"},
  };
  for (const auto& [fields, code, message] : faults) EXPECT_THAT(Parse(fields), IsError(code, message));
  EXPECT_THAT(ParseBertConfig("{"), IsError(kInvalid, "not a JSON object"));
  EXPECT_THAT(ParseBertConfig(R"({"model_type":"bert","model_type":"bert"})"),
              IsError(kInvalid, "'model_type' is given twice"));
}

}  // namespace
}  // namespace swizzle
