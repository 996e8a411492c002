#include "model_loader/safetensors/tensor_names.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;

TensorMap Named(std::initializer_list<const char*> names) {
  TensorMap tensors;
  for (const char* name : names) tensors.emplace(name, Tensor());
  return tensors;
}

TEST(TensorNames, AnyWrapperIsAPrefix) {
  for (const std::string prefix :
       {"", "bert.", "roberta.", "electra.", "model.", "module.", "encoder.", "model.bert.", "0.auto_model.",
        "base_model.model.bert.", "_orig_mod.", "ctx_encoder.bert_model."}) {
    const std::string words = prefix + "embeddings.word_embeddings.weight";
    const auto found =
        EncoderPrefix(Named({words.c_str(), "classifier.weight", "x_embeddings.word_embeddings.weight"}));
    ASSERT_THAT(found, IsOk()) << prefix;
    EXPECT_EQ(*found, prefix);
    const auto canonical = [&](const std::string& name) {
      return CanonicalName(BertFamily::kBert, prefix, prefix + name);
    };
    for (const char* name : {"embeddings.word_embeddings.weight", "encoder.layer.0.output.dense.weight",
                             "pooler.dense.bias", "embeddings_project.weight"}) {
      EXPECT_EQ(canonical(name), name) << prefix;
    }
    EXPECT_EQ(canonical("cls.predictions.bias"), "") << prefix;
  }
  EXPECT_EQ(*EncoderPrefix(Named({"lm_head.weight"})), "");
}

TEST(TensorNames, TwoEncodersAreRefused) {
  EXPECT_THAT(
      EncoderPrefix(Named({"query.embeddings.word_embeddings.weight", "doc.embeddings.word_embeddings.weight"})),
      IsError(StatusCode::kInvalidArgument, "two encoders, of which the tensors begin with 'doc.' and 'query.'"));
}

TEST(TensorNames, TellTheKindOfModel) {
  EXPECT_EQ(TypeByNames(Named({"bert.x"}), "bert."), "bert");
  EXPECT_EQ(TypeByNames(Named({"model.roberta.x"}), "model.roberta."), "roberta");
  EXPECT_EQ(TypeByNames(Named({"electra.x"}), "electra."), "electra");
  EXPECT_EQ(TypeByNames(Named({"a.transformer.layer.0.ffn.lin1.bias"}), "a."), "distilbert");
  EXPECT_EQ(TypeByNames(Named({"distilbert.x"}), "distilbert."), "");
  EXPECT_EQ(TypeByNames(Named({"encoder.layer.0.x"}), ""), "");
}

TEST(TensorNames, AreTranslated) {
  const auto bert = [](const char* name) { return CanonicalName(BertFamily::kBert, "bert.", name); };
  EXPECT_EQ(bert("bert.encoder.layer.0.output.dense.bias"), "encoder.layer.0.output.dense.bias");
  EXPECT_EQ(bert("bert.embeddings.LayerNorm.gamma"), "embeddings.LayerNorm.weight");
  EXPECT_EQ(bert("bert.encoder.layer.11.output.LayerNorm.beta"), "encoder.layer.11.output.LayerNorm.bias");
  EXPECT_EQ(bert("bert.embeddings.position_ids"), "");
  EXPECT_EQ(bert("cls.predictions.bias"), "");
  EXPECT_EQ(bert("classifier.weight"), "");
  EXPECT_EQ(bert("pooler.dense.weight"), "") << "a task's, for it lies beside the encoder";
  EXPECT_EQ(bert("encoder.layer.0.output.dense.bias"), "encoder.layer.0.output.dense.bias") << "nobody else's";
  const auto distil = [](const char* name) { return CanonicalName(BertFamily::kDistilBert, "distilbert.", name); };
  EXPECT_EQ(distil("distilbert.transformer.layer.5.attention.q_lin.weight"),
            "encoder.layer.5.attention.self.query.weight");
  EXPECT_EQ(distil("transformer.layer.5.sa_layer_norm.bias"), "encoder.layer.5.attention.output.LayerNorm.bias");
  EXPECT_EQ(distil("distilbert.transformer.layer.5.ffn.lin2.weight"), "encoder.layer.5.output.dense.weight");
  EXPECT_EQ(distil("distilbert.transformer.layer.5.output_layer_norm.weight"),
            "encoder.layer.5.output.LayerNorm.weight");
  EXPECT_EQ(distil("distilbert.transformer.layer.5.adapter.weight"), "encoder.layer.5.adapter.weight");
  EXPECT_EQ(distil("vocab_transform.weight"), "");
  const auto mpnet = [](const char* name) { return CanonicalName(BertFamily::kMpnet, "mpnet.", name); };
  EXPECT_EQ(mpnet("mpnet.encoder.layer.3.attention.attn.k.bias"), "encoder.layer.3.attention.self.key.bias");
  EXPECT_EQ(mpnet("mpnet.encoder.layer.3.attention.attn.o.weight"), "encoder.layer.3.attention.output.dense.weight");
  EXPECT_EQ(mpnet("mpnet.encoder.layer.3.attention.LayerNorm.bias"), "encoder.layer.3.attention.output.LayerNorm.bias");
  EXPECT_EQ(mpnet("mpnet.encoder.layer.3.output.LayerNorm.weight"), "encoder.layer.3.output.LayerNorm.weight");
  EXPECT_EQ(mpnet("mpnet.encoder.relative_attention_bias.weight"), "encoder.relative_attention_bias.weight");
  EXPECT_EQ(mpnet("lm_head.bias"), "");
}

TEST(TensorNames, ClassifiersStandBesideTheEncoder) {
  EXPECT_EQ(ClassifierName("bert.", "classifier.weight"), "classifier.weight");
  EXPECT_EQ(ClassifierName("", "classifier.bias"), "classifier.bias");
  EXPECT_EQ(ClassifierName("module.roberta.", "module.classifier.out_proj.weight"), "classifier.out_proj.weight");
  EXPECT_EQ(ClassifierName("module.roberta.", "classifier.out_proj.weight"), "") << "outside of what wraps both";
  EXPECT_EQ(ClassifierName("distilbert.", "pre_classifier.weight"), "pre_classifier.weight");
  EXPECT_EQ(ClassifierName("bert.", "bert.pooler.dense.weight"), "");
  EXPECT_EQ(ClassifierName("bert.", "cls.predictions.bias"), "");
}

TEST(TensorNames, OtherFamiliesKeepTheirs) {
  EXPECT_EQ(*EncoderPrefix(Named({"module.model.embeddings.tok_embeddings.weight"})), "module.model.");
  ModernBertConfig config;
  const auto modern = [&](const char* name) { return TensorName(config, "module.model.", name); };
  EXPECT_EQ(modern("module.model.layers.3.attn.Wqkv.weight"), "layers.3.attn.Wqkv.weight");
  EXPECT_EQ(modern("module.model.final_norm.weight"), "final_norm.weight");
  EXPECT_EQ(modern("module.head.dense.weight"), "");
  EXPECT_EQ(modern("module.decoder.weight"), "");
  EXPECT_EQ(modern("layers.3.attn.Wqkv.weight"), "") << "outside of the encoder";
  config.classifies = true;
  EXPECT_EQ(modern("module.head.dense.weight"), "head.dense.weight");
  EXPECT_EQ(modern("module.classifier.bias"), "classifier.bias");
  EXPECT_EQ(modern("classifier.bias"), "") << "outside of what wraps both";
  EXPECT_EQ(modern("module.decoder.weight"), "");
  const auto nomic = [](const char* name) { return TensorName(NomicBertConfig(), "bert.", name); };
  EXPECT_EQ(nomic("bert.emb_ln.weight"), "emb_ln.weight");
  EXPECT_EQ(nomic("bert.encoder.layers.0.mlp.fc11.weight"), "encoder.layers.0.mlp.fc11.weight");
  EXPECT_EQ(nomic("classifier.weight"), "");
  EXPECT_EQ(nomic("cls.predictions.decoder.weight"), "");
  EXPECT_EQ(*EncoderPrefix(Named({"model.embed_tokens.weight", "lm_head.weight"})), "model.");
  const auto qwen = [](const char* name) { return TensorName(QwenConfig(), "model.", name); };
  EXPECT_EQ(qwen("model.layers.0.self_attn.q_norm.weight"), "layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(qwen("model.norm.weight"), "norm.weight");
  EXPECT_EQ(qwen("lm_head.weight"), "");
}

TEST(TensorNames, TheFirstFamilysTableOfWordsCounts) {
  EXPECT_EQ(*EncoderPrefix(Named({"bert.embeddings.word_embeddings.weight", "decoder.embed_tokens.weight"})), "bert.");
}

}  // namespace
}  // namespace swizzle
