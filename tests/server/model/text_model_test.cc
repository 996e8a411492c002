#include "server/model/text_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/planner.h"
#include "server/model/derived_spec.h"
#include "server/model/prepared_request.h"
#include "server/model/served_model.h"
#include "server/model/string_tensor.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_encoder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;

// Each letter is a token, by its place in the alphabet, between 1 and 2; digits are none.
StatusOr<TextTokens> Letters(const TextRow& row, const TextOptions&) {
  TextTokens tokens;
  tokens.ids.push_back(1);
  for (const char letter : row.text) {
    if (letter < 'a') return InvalidArgument("'", std::string(1, letter), "' is no letter");
    tokens.ids.push_back(3 + letter - 'a');
  }
  tokens.ids.push_back(2);
  tokens.type_ids.resize(tokens.ids.size());
  return tokens;
}

class TextModelTest : public ::testing::Test {
 protected:
  TextModelTest() : backend_(NewCpuBackend()) { encoder_ = Encoder("pooled"); }

  // With this output alone: "pooled", or "hidden", the states of tokens.
  std::shared_ptr<Model> Encoder(const std::string& output) {
    const PlanOptions options{.max_batch = 8, .max_tokens = 64, .threads = 1, .tuning_budget = absl::ZeroDuration()};
    auto plan = MakePlan(testing::MakeRandomEncoder({}), *backend_, options);
    SWIZZLE_CHECK(plan.ok());
    ModelSpec spec = *DeriveSpec(InterfaceOf(**plan));
    spec.name = "m";
    spec.max_batch_size = 8;
    spec.max_batch_tokens = 64;
    std::erase_if(spec.outputs, [&](const TensorSpec& its) { return its.name != output; });
    return *NewServedModel(std::move(spec), {*plan});
  }

  // What comes of these texts in one request, or of the ids of one.
  StatusOr<std::vector<float>> Run(Model& model, Request request, std::vector<std::string>* all = nullptr) {
    SWIZZLE_RETURN_IF_ERROR(PrepareRequest(model, request));
    SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, model.NewSession(Clock::Real()));
    std::vector<std::string> outputs;
    std::vector<Shape> shapes;
    BatchItem items[] = {{request.inputs, request.rows, &outputs, &shapes}};
    BatchTimes times;
    SWIZZLE_RETURN_IF_ERROR(session->Run(items, times));
    EXPECT_EQ(shapes[0], (Shape{request.rows, 24}));
    const std::vector<float> floats = FloatsOf(outputs[0]);
    if (all != nullptr) *all = std::move(outputs);
    return floats;
  }
  static std::vector<float> FloatsOf(const std::string& bytes) {
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  }
  // Where `all` is not null, all outputs go there.
  StatusOr<std::vector<float>> Embed(Model& model, const std::vector<std::string>& texts,
                                     std::vector<std::string>* all = nullptr) {
    std::string tensor;
    for (const std::string& text : texts) AppendElement(text, tensor);
    Request request;
    request.rows = static_cast<int64_t>(texts.size());
    request.inputs = {{DType::kString, {request.rows, 1}, std::as_bytes(std::span(tensor))}};
    return Run(model, std::move(request), all);
  }
  std::shared_ptr<Model> TextModel(bool normalises) {
    return NewTextModel(*TextSpec(encoder_->spec(), {}), encoder_,
                        {.encode = Letters, .pipeline = {.normalises = normalises}});
  }

  const std::unique_ptr<Backend> backend_;
  std::shared_ptr<Model> encoder_;
};

TEST_F(TextModelTest, GivesWhatTheEncoderSaysOfTheTokens) {
  const auto model = TextModel(false);
  EXPECT_EQ(model->spec().inputs[0].dims, Shape{1});
  EXPECT_EQ(model->spec().inputs[0].dtype, DType::kString);
  EXPECT_EQ(model->spec().outputs[0].name, "embedding");
  const auto texts = Embed(*model, {"ab", "abcdef", ""});
  ASSERT_THAT(texts, IsOk());
  const std::vector<int64_t> ids = {1, 3, 4, 2, 0, 0, 0, 0, 1, 3, 4, 5, 6, 7, 8, 2, 1, 2, 0, 0, 0, 0, 0, 0};
  std::vector<int64_t> mask(24);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = ids[i] != 0 ? 1 : 0;
  const std::vector<int32_t> types(24);
  Request request;
  request.rows = 3;
  request.inputs = {{DType::kInt64, {3, 8}, std::as_bytes(std::span(ids))},
                    {DType::kInt64, {3, 8}, std::as_bytes(std::span(mask))},
                    {DType::kInt32, {3, 8}, std::as_bytes(std::span(types))}};
  const auto tokens = Run(*encoder_, std::move(request));
  ASSERT_THAT(tokens, IsOk());
  EXPECT_EQ(*texts, *tokens);
}

// Beside the vector of the whole, whatever else runs with the text.
TEST_F(TextModelTest, KeepsStatesOfTokens) {
  const std::shared_ptr<Model> states = Encoder("hidden");
  const text::Pipeline pipeline = {.task = text::TextTask::kTokenEmbedding};
  const auto spec = TextSpec(states->spec(), pipeline);
  ASSERT_THAT(spec, IsOk());
  ASSERT_EQ(spec->outputs.size(), 2u);
  EXPECT_EQ(spec->outputs[1].name, "token_embeddings");
  EXPECT_EQ(spec->outputs[1].dims, (Shape{-1, 24}));
  const auto model = NewTextModel(*spec, states, {.encode = Letters, .pipeline = pipeline});
  EXPECT_EQ(model->facts()->properties.at("swizzle_text"), "token_embedding");
  ASSERT_NE(model->text_rules(), nullptr);
  std::vector<std::string> outputs;
  const auto vectors = Embed(*model, {"ab", "", std::string(40, 'h')}, &outputs);
  ASSERT_THAT(vectors, IsOk());
  ASSERT_EQ(outputs.size(), 2u);
  const std::vector<float> tokens = FloatsOf(outputs[1]);
  ASSERT_EQ(tokens.size(), 3u * 42 * 24);
  for (const auto& [row, length] : {std::pair(size_t{0}, size_t{4}), std::pair(size_t{1}, size_t{2})}) {
    for (size_t i = 0; i < 24; ++i) {
      float mean = 0.0f;
      for (size_t at = 0; at < length; ++at) mean += tokens[(row * 42 + at) * 24 + i] / static_cast<float>(length);
      EXPECT_NEAR(mean, (*vectors)[row * 24 + i], 1e-5);
      EXPECT_EQ(tokens[(row * 42 + length) * 24 + i], 0.0f) << "behind the text's own";
    }
  }
  EXPECT_THAT(TextSpec(encoder_->spec(), pipeline),
              IsError(StatusCode::kInvalidArgument, "no FP32 states of tokens, which text=token_embedding"));
  EXPECT_EQ(encoder_->text_rules(), nullptr);
}

// As of a packed network, and where the last token stands for a text.
TEST_F(TextModelTest, PoolsStatesOfTokens) {
  const std::shared_ptr<Model> states = Encoder("hidden");
  const auto embedded = [&](text::Pooling pooling, const std::vector<std::string>& texts) {
    const text::Pipeline pipeline = {.pooling = pooling};
    const auto spec = TextSpec(states->spec(), pipeline);
    EXPECT_THAT(spec, IsOk());
    EXPECT_EQ(spec->outputs[0].dims, Shape{24});
    const auto vectors = Embed(*NewTextModel(*spec, states, {.encode = Letters, .pipeline = pipeline}), texts);
    EXPECT_THAT(vectors, IsOk());
    return *vectors;
  };
  // The last is so long that those before it run apart.
  const std::vector<std::string> texts = {"ab", "abcdef", "", "", "", std::string(40, 'h')};
  for (const text::Pooling pooling : {text::Pooling::kMean, text::Pooling::kFirst, text::Pooling::kLast}) {
    const std::vector<float> together = embedded(pooling, texts);
    for (size_t row = 0; row < texts.size(); ++row) {
      const std::vector<float> alone = embedded(pooling, {texts[row]});
      for (size_t i = 0; i < 24; ++i) EXPECT_NEAR(together[row * 24 + i], alone[i], 1e-5) << "padding counts";
    }
  }
  EXPECT_NE(embedded(text::Pooling::kFirst, {"ab"}), embedded(text::Pooling::kLast, {"ab"}));
  ModelSpec maskless = states->spec();
  std::erase_if(maskless.inputs, [](const TensorSpec& input) { return input.name == "attention_mask"; });
  EXPECT_THAT(TextSpec(maskless, {}), IsError(StatusCode::kInvalidArgument, "not one FP32 vector of each text"));
}

TEST_F(TextModelTest, HoldsDenseModulesOfVectorsThatItPoolsAlone) {
  const std::vector<float> ones(24 * 2, 1.0f);
  for (const std::string output : {"pooled", "hidden"}) {
    text::DenseLayer layer{.name = "2_Dense", .weight = Tensor::Floats({24, 2}, ones), .bias = {}, .activation = ""};
    auto shared = std::make_shared<const text::DenseLayer>(std::move(layer));
    const std::weak_ptr<const text::DenseLayer> seen = shared;
    text::Pipeline pipeline;
    pipeline.dense.push_back(std::move(shared));
    const std::shared_ptr<Model> encoder = Encoder(output);
    ModelSpec spec = *TextSpec(encoder->spec(), pipeline);
    const auto model = NewTextModel(std::move(spec), encoder, {.encode = Letters, .pipeline = std::move(pipeline)});
    EXPECT_EQ(seen.expired(), output == "pooled") << "a plan that pools has them itself";
  }
}

TEST_F(TextModelTest, VectorsMayHaveLengthOne) {
  const auto plain = Embed(*TextModel(false), {"abc", "z"}), unit = Embed(*TextModel(true), {"abc", "z"});
  ASSERT_THAT(plain, IsOk());
  ASSERT_THAT(unit, IsOk());
  for (size_t row = 0; row < 2; ++row) {
    double squares = 0.0;
    for (size_t i = 0; i < 24; ++i) squares += static_cast<double>((*plain)[row * 24 + i]) * (*plain)[row * 24 + i];
    for (size_t i = 0; i < 24; ++i)
      EXPECT_NEAR((*unit)[row * 24 + i], (*plain)[row * 24 + i] / std::sqrt(squares), 1e-6);
  }
  EXPECT_EQ(TextModel(true)->facts()->properties.at("swizzle_normalised"), "1");
}

TEST(ScoreLogitsTest, ScoresAreTheFunctionOfLogits) {
  const auto scored = [](text::ScoreFunction function, size_t width, const std::vector<float>& logits) {
    std::string bytes(logits.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), logits.data(), bytes.size());
    ScoreLogits(function, width, bytes);
    std::vector<float> scores(logits.size());
    std::memcpy(scores.data(), bytes.data(), bytes.size());
    return scores;
  };
  const std::vector<float> logits = {0.0f, 1.0f, 500.0f, -500.0f};
  EXPECT_EQ(scored(text::ScoreFunction::kNone, 2, logits), logits);
  EXPECT_THAT(scored(text::ScoreFunction::kSigmoid, 2, logits),
              ElementsAre(FloatEq(0.5f), FloatNear(0.731059f, 1e-6f), FloatEq(1.0f), FloatNear(0.0f, 1e-30f)));
  EXPECT_THAT(scored(text::ScoreFunction::kSoftmax, 2, logits),
              ElementsAre(FloatNear(0.268941f, 1e-6f), FloatNear(0.731059f, 1e-6f), FloatEq(1.0f), FloatEq(0.0f)));
}

TEST(NormaliseVectorsTest, LargeAndSmallNumbersHaveALength) {
  const std::vector<float> numbers = {3e30f, 4e30f, 3e-10f, 4e-10f, 0, 0};
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  NormaliseVectors(2, bytes);
  std::vector<float> unit(numbers.size());
  std::memcpy(unit.data(), bytes.data(), bytes.size());
  EXPECT_THAT(unit, ElementsAre(FloatEq(0.6f), FloatEq(0.8f), FloatEq(0.6f), FloatEq(0.8f), 0, 0));
}

TEST(CutVectorsTest, LeavesTheFirstNumbers) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  CutVectors(3, 2, bytes);
  std::vector<float> cut(4);
  ASSERT_EQ(bytes.size(), cut.size() * sizeof(float));
  std::memcpy(cut.data(), bytes.data(), bytes.size());
  EXPECT_THAT(cut, ElementsAre(1, 2, 4, 5));
}

TEST_F(TextModelTest, ClassifiesTextsAndPairs) {
  const text::Pipeline pipeline = {.task = text::TextTask::kClassification};
  const auto spec = TextSpec(encoder_->spec(), pipeline);
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->inputs[0].dims, Shape{-1});
  ASSERT_EQ(spec->outputs.size(), 2u);
  EXPECT_EQ(spec->outputs[0].name, "scores");
  EXPECT_EQ(spec->outputs[1].name, "logits");
  EXPECT_EQ(spec->outputs[0].labels->at(23), "LABEL_23");
  const auto pairs = [](const TextRow& row, const TextOptions& options) {
    return Letters({row.pair ? std::string(row.text) + "z" + std::string(*row.pair) : std::string(row.text)}, options);
  };
  const auto model = NewTextModel(*spec, encoder_, {.encode = pairs, .pipeline = pipeline});
  const auto run = [&](const std::vector<std::string>& texts, int64_t in_a_row) -> StatusOr<std::vector<std::string>> {
    std::string tensor;
    for (const std::string& text : texts) AppendElement(text, tensor);
    Request request;
    request.rows = std::ssize(texts) / in_a_row;
    request.inputs = {{DType::kString, {request.rows, in_a_row}, std::as_bytes(std::span(tensor))}};
    SWIZZLE_RETURN_IF_ERROR(PrepareRequest(*model, request));
    std::vector<std::string> outputs;
    std::vector<Shape> shapes;
    BatchItem items[] = {{request.inputs, request.rows, &outputs, &shapes}};
    BatchTimes times;
    SWIZZLE_RETURN_IF_ERROR((*model->NewSession(Clock::Real()))->Run(items, times));
    EXPECT_EQ(shapes, (std::vector<Shape>{{request.rows, 24}, {request.rows, 24}}));
    return outputs;
  };
  const auto pair = run({"ab", "cd", "", "e"}, 2), text = run({"abzcd", "ze"}, 1);
  ASSERT_THAT(pair, IsOk());
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*pair, *text);
  std::string scores = (*text)[1];
  ScoreLogits(text::ScoreFunction::kSoftmax, 24, scores);
  EXPECT_EQ((*text)[0], scores);
  EXPECT_THAT(run({"a", "b", "c"}, 3), IsError(StatusCode::kInvalidArgument, "has 3 texts in a row; send one, or two"));
  EXPECT_THAT(run({"a", "1"}, 2), IsError(StatusCode::kInvalidArgument, "pair 0 of input 'text' of model 'm'"));
  EXPECT_THAT(TextSpec(encoder_->spec(), {.task = text::TextTask::kClassification, .labels = {"a", "b"}}),
              IsError(StatusCode::kInvalidArgument, "names 2 labels in id2label, but the classifier scores 24"));
}

TEST_F(TextModelTest, RefusesOtherScoresThanAreDeclared) {
  const text::Pipeline pipeline = {.task = text::TextTask::kClassification};
  ModelSpec spec = *TextSpec(encoder_->spec(), pipeline);
  for (TensorSpec& output : spec.outputs) output.dims.back() = 1;
  EXPECT_THAT(Embed(*NewTextModel(spec, encoder_, {.encode = Letters, .pipeline = pipeline}), {"ab"}),
              IsError(StatusCode::kInternal, "the model gave 24 scores a row, 1 is declared"));
}

TEST_F(TextModelTest, SaysWhichTextIsWrong) {
  EXPECT_THAT(Embed(*TextModel(false), {"ab", "a1"}),
              IsError(StatusCode::kInvalidArgument, "element 1 of input 'text' of model 'm': '1' is no letter"));
  EXPECT_THAT(Embed(*TextModel(false), {std::string(100, 'a')}), IsError(StatusCode::kInvalidArgument, "tokens"));
}

TEST_F(TextModelTest, WantsAnEncoderOfTokens) {
  ModelSpec spec = encoder_->spec();
  spec.inputs[0].name = "pixels";
  EXPECT_THAT(TextSpec(spec, {}),
              IsError(StatusCode::kInvalidArgument, "input 'pixels' (INT64) is none that a tokeniser"));
  spec = encoder_->spec();
  spec.outputs[0].dims = {-1, -1, 24};
  EXPECT_THAT(TextSpec(spec, {}), IsError(StatusCode::kInvalidArgument, "not one FP32 vector of each text"));
}

}  // namespace
}  // namespace swizzle
