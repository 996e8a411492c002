#include "server/model/text_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"

namespace swizzle {
namespace {

constexpr std::array<std::string_view, 3> kTokenInputs = {"input_ids", "attention_mask", "token_type_ids"};
constexpr float kLeastNorm = 1e-12f;  // as PyTorch's functional.normalize has it

// What an encoder reads of texts that are its rows, and what keeps that.
struct EncodedTexts {
  std::vector<std::vector<std::byte>> planes;  // by input of the encoder: [rows, tokens of the longest]
};

// Element `at` of the plane becomes this number, of INT64 or INT32.
void Put(DType dtype, int64_t value, size_t at, std::vector<std::byte>& plane) {
  const auto narrow = static_cast<int32_t>(value);
  const void* const from = dtype == DType::kInt64 ? static_cast<const void*>(&value) : &narrow;
  std::memcpy(plane.data() + at * ElementBytes(dtype), from, ElementBytes(dtype));
}

class TextSession final : public Session {
 public:
  TextSession(std::unique_ptr<Session> encoder, bool normalises)
      : encoder_(std::move(encoder)), normalises_(normalises) {}

  Status Run(std::span<BatchItem> batch, BatchTimes& times) override {
    SWIZZLE_RETURN_IF_ERROR(encoder_->Run(batch, times));
    for (const BatchItem& item : batch) {
      if (normalises_) NormaliseVectors(static_cast<size_t>((*item.output_shapes)[0].back()), (*item.outputs)[0]);
    }
    return absl::OkStatus();
  }
  bool RunsAtOnce(uint64_t batch_class) const override { return encoder_->RunsAtOnce(batch_class); }

 private:
  const std::unique_ptr<Session> encoder_;
  const bool normalises_;
};

class TextModel final : public Model {
 public:
  TextModel(ModelSpec spec, std::shared_ptr<Model> encoder, TextRules rules)
      : spec_(std::move(spec)), encoder_(std::move(encoder)), rules_(std::move(rules)) {}

  const ModelSpec& spec() const override { return spec_; }
  // Of the encoder's facts that there are now: requests ask, too.
  std::shared_ptr<const ModelFacts> facts() const override {
    const std::shared_ptr<const ModelFacts> its = encoder_->facts();
    const MutexLock lock(mutex_);
    if (its == described_) return facts_;
    auto facts = std::make_shared<ModelFacts>(*its);
    facts->properties["swizzle_text"] = "embedding";
    if (rules_.normalises) facts->properties["swizzle_normalised"] = "1";
    if (rules_.max_tokens > 0) facts->properties["swizzle_max_tokens"] = std::to_string(rules_.max_tokens);
    described_ = its;
    facts_ = std::move(facts);
    return facts_;
  }

  StatusOr<EncodedInputs> Encode(std::vector<TensorView>& inputs) const override {
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TextTokens> texts, TokensOf(inputs[0]));
    size_t longest = 1, all = 0;
    for (const TextTokens& text : texts) {
      longest = std::max(longest, text.ids.size());
      all += text.ids.size();
    }
    auto encoded = std::make_shared<EncodedTexts>();
    const Shape shape = {static_cast<int64_t>(texts.size()), static_cast<int64_t>(longest)};
    inputs.clear();
    for (const TensorSpec& input : encoder_->spec().inputs) {
      encoded->planes.push_back(PlaneOf(input, texts, longest));
      inputs.push_back({input.dtype, shape, encoded->planes.back()});
    }
    return EncodedInputs{.owner = std::move(encoded), .text_tokens = static_cast<int64_t>(all)};
  }
  StatusOr<int64_t> CheckRequest(std::span<const TensorView> inputs) const override {
    return encoder_->CheckRequest(inputs);
  }
  uint64_t BatchClass(std::span<const TensorView> inputs) const override { return encoder_->BatchClass(inputs); }
  std::shared_ptr<const void> Stage(std::span<TensorView> inputs) const override { return encoder_->Stage(inputs); }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock& clock) override {
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, encoder_->NewSession(clock));
    return std::make_unique<TextSession>(std::move(session), rules_.normalises);
  }

 private:
  StatusOr<std::vector<TextTokens>> TokensOf(const TensorView& texts) const {
    std::vector<TextTokens> tokens;
    for (std::span<const std::byte> left = texts.bytes; !left.empty();) {
      uint32_t length = 0;
      std::memcpy(&length, left.data(), sizeof(length));
      const auto text = left.subspan(sizeof(length), length);
      StatusOr<TextTokens> its = rules_.encode({reinterpret_cast<const char*>(text.data()), text.size()});
      if (!its.ok()) {
        return Annotate(its.status(), Concat("element ", tokens.size(), " of input '", spec_.inputs[0].name,
                                             "' of model '", spec_.name, "'"));
      }
      tokens.push_back(*std::move(its));
      left = left.subspan(sizeof(length) + length);
    }
    return tokens;
  }

  // What the encoder's input is of these texts: behind a text's tokens stand the padding, and zeros in the others.
  std::vector<std::byte> PlaneOf(const TensorSpec& input, const std::vector<TextTokens>& texts, size_t longest) const {
    std::vector<std::byte> plane(texts.size() * longest * ElementBytes(input.dtype));
    const bool is_ids = input.name == kTokenInputs[0], is_mask = input.name == kTokenInputs[1];
    for (size_t row = 0; row < texts.size(); ++row) {
      const TextTokens& text = texts[row];
      for (size_t i = 0; i < longest; ++i) {
        const bool is_token = i < text.ids.size();
        const int64_t value =
            is_ids ? (is_token ? text.ids[i] : rules_.pad_id) : (is_token ? (is_mask ? 1 : text.type_ids[i]) : 0);
        Put(input.dtype, value, row * longest + i, plane);
      }
    }
    return plane;
  }

  const ModelSpec spec_;
  const std::shared_ptr<Model> encoder_;
  const TextRules rules_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const ModelFacts> described_ ABSL_GUARDED_BY(mutex_);  // the encoder's; null: nobody asked
  mutable std::shared_ptr<const ModelFacts> facts_ ABSL_GUARDED_BY(mutex_);      // with those beside them
};

}  // namespace

StatusOr<ModelSpec> TextSpec(const ModelSpec& encoder) {
  for (const TensorSpec& input : encoder.inputs) {
    const bool is_whole = input.dtype == DType::kInt64 || input.dtype == DType::kInt32;
    if (std::ranges::find(kTokenInputs, input.name) != kTokenInputs.end() && is_whole) continue;
    return InvalidArgument("model '", encoder.name, "' cannot take texts: its input '", input.name, "' (",
                           DTypeName(input.dtype), ") is none that a tokeniser fills: input_ids, attention_mask, ",
                           "token_type_ids");
  }
  const size_t rank = encoder.max_batch_size > 0 ? 1 : 2;
  if (encoder.outputs.size() != 1 || encoder.outputs[0].dtype != DType::kFloat32 ||
      encoder.outputs[0].dims.size() != rank) {
    return InvalidArgument("model '", encoder.name, "' cannot embed texts: it has ", encoder.outputs.size(),
                           " outputs, and not one FP32 vector of each text");
  }
  ModelSpec spec = encoder;
  spec.inputs = {{std::string(kTextInput), DType::kString, encoder.max_batch_size > 0 ? Shape{1} : Shape{-1}}};
  spec.outputs = {{std::string(kEmbeddingOutput), DType::kFloat32, encoder.outputs[0].dims}};
  return spec;
}

void NormaliseVectors(size_t width, std::string& vectors) {
  std::vector<float> row(width);
  const size_t bytes = width * sizeof(float);
  for (size_t at = 0; at + bytes <= vectors.size() && width > 0; at += bytes) {
    std::memcpy(row.data(), vectors.data() + at, bytes);
    float squares = 0.0f;
    for (const float x : row) squares += x * x;
    const float norm = std::max(std::sqrt(squares), kLeastNorm);
    for (float& x : row) x /= norm;
    std::memcpy(vectors.data() + at, row.data(), bytes);
  }
}

std::shared_ptr<Model> NewTextModel(ModelSpec spec, std::shared_ptr<Model> encoder, TextRules rules) {
  return std::make_shared<TextModel>(std::move(spec), std::move(encoder), std::move(rules));
}

}  // namespace swizzle
