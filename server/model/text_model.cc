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
#include "model_loader/plan/run/token_packing.h"
#include "server/model/string_tensor.h"
#include "server/model/token_pooling.h"

namespace swizzle {
namespace {

constexpr std::array<std::string_view, 3> kTokenInputs = {"input_ids", "attention_mask", "token_type_ids"};
constexpr double kLeastNorm = 1e-12;  // as PyTorch's functional.normalize has it

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

// Has the function change each vector of FP32.
template <typename Function>
void ForEachVector(size_t width, std::string& vectors, Function&& function) {
  std::vector<float> row(width);
  const size_t bytes = width * sizeof(float);
  for (size_t at = 0; at + bytes <= vectors.size() && width > 0; at += bytes) {
    std::memcpy(row.data(), vectors.data() + at, bytes);
    function(row);
    std::memcpy(vectors.data() + at, row.data(), bytes);
  }
}

// What of an encoder's outputs stands for a text.
struct EncoderOutput {
  size_t index = 0;
  bool per_token = false;                       // states of tokens, to be pooled here
  std::optional<size_t> states = std::nullopt;  // those that are kept, beside that or the same
};

// Neighbouring rows of a request, without the padding that only longer ones behind or before them need.
struct TextRun {
  int64_t first = 0, rows = 0, length = 0;
};

// Cuts rows of these many tokens each into runs whose padding is not more than their tokens: states of tokens take
// memory for padding, too, and one long text beside many short ones would else ask for a hundred times as much.
std::vector<TextRun> RunsOf(const TensorView& mask) {
  const int64_t rows = mask.shape[0], length = mask.shape[1];
  std::vector<TextRun> runs;
  int64_t tokens = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t own = length;
    while (own > 1 && WholeAt(mask, row * length + own - 1) == 0) --own;
    if (runs.empty() || (runs.back().rows + 1) * std::max(runs.back().length, own) > 2 * (tokens + own)) {
      runs.push_back({.first = row});
      tokens = 0;
    }
    ++runs.back().rows;
    runs.back().length = std::max(runs.back().length, own);
    tokens += own;
  }
  return runs;
}

class TextSession final : public Session {
 public:
  // `outputs` are those of the model of texts; what is referred to outlives this.
  TextSession(std::unique_ptr<Session> encoder, EncoderOutput from, size_t mask, const std::vector<TensorSpec>& outputs,
              const text::Pipeline& pipeline)
      : encoder_(std::move(encoder)), from_(from), mask_(mask), outputs_(outputs), pipeline_(pipeline) {}

  Status Run(std::span<BatchItem> batch, BatchTimes& times) override {
    std::vector<std::vector<TextRun>> runs;
    for (const BatchItem& item : batch) {
      const bool may_part = from_.per_token && !from_.states;  // whose states are kept has room for the padding
      runs.push_back(may_part ? RunsOf(item.inputs[mask_]) : std::vector<TextRun>());
    }
    const bool whole = std::ranges::all_of(runs, [](const auto& its) { return its.size() <= 1; });
    if (!whole) return RunInRuns(batch, runs, times);
    SWIZZLE_RETURN_IF_ERROR(encoder_->Run(batch, times));
    for (const BatchItem& item : batch) SWIZZLE_RETURN_IF_ERROR(Finish(item));
    return absl::OkStatus();
  }
  bool RunsAtOnce(uint64_t batch_class) const override { return encoder_->RunsAtOnce(batch_class); }

 private:
  // One run after the other, each pooled before the next, so that the states of one are there at a time.
  Status RunInRuns(std::span<BatchItem> batch, const std::vector<std::vector<TextRun>>& runs, BatchTimes& times) {
    for (size_t i = 0; i < batch.size(); ++i) {
      std::vector<std::string> all;
      std::vector<Shape> shapes;
      for (const TextRun& run : runs[i]) {
        SWIZZLE_RETURN_IF_ERROR(RunOne(batch[i], run, times));
        const std::vector<std::string>& outputs = *batch[i].outputs;
        if (all.empty()) {
          all = outputs;
          shapes = *batch[i].output_shapes;
          continue;
        }
        for (size_t k = 0; k < all.size(); ++k) {
          all[k] += outputs[k];
          shapes[k][0] += (*batch[i].output_shapes)[k][0];
        }
      }
      *batch[i].outputs = std::move(all);
      *batch[i].output_shapes = std::move(shapes);
    }
    return absl::OkStatus();
  }

  // What the model says of a run of an item's rows, where the item's results belong.
  Status RunOne(const BatchItem& item, const TextRun& run, BatchTimes& times) {
    std::vector<std::vector<std::byte>> planes;
    std::vector<TensorView> inputs;
    for (const TensorView& input : item.inputs) {
      const size_t element = ElementBytes(input.dtype), line = static_cast<size_t>(run.length) * element;
      std::vector<std::byte>& plane = planes.emplace_back(static_cast<size_t>(run.rows) * line);
      for (int64_t row = 0; row < run.rows; ++row) {
        const size_t from = static_cast<size_t>((run.first + row) * input.shape[1]) * element;
        std::memcpy(plane.data() + static_cast<size_t>(row) * line, input.bytes.data() + from, line);
      }
      inputs.push_back({input.dtype, {run.rows, run.length}, plane});
    }
    BatchItem part = item;
    part.inputs = inputs;
    if (item.rows == item.inputs[mask_].shape[0]) part.rows = run.rows;
    BatchTimes own;
    SWIZZLE_RETURN_IF_ERROR(encoder_->Run(std::span(&part, 1), own));
    times.input += own.input;
    times.compute += own.compute;
    times.output += own.output;
    times.first_of_shape = times.first_of_shape || own.first_of_shape;
    return Finish(part);
  }

  // A graph may give another shape than the one that it declares. INTERNAL for one that no vectors of rows have, or
  // for another width than declared, which whoever asks for rows counts on.
  StatusOr<size_t> WidthOf(const Shape& shape) const {
    if (shape.size() != 2 || shape[1] < 0) {
      return MakeError(StatusCode::kInternal, "the model gave a tensor of shape ", ShapeText(shape),
                       ", and not one vector a row");
    }
    const int64_t declared = outputs_[0].dims.back();
    if (declared < 0 || declared == shape[1]) return static_cast<size_t>(shape[1]);
    return MakeError(StatusCode::kInternal, "the model gave ", shape[1],
                     text::Embeds(pipeline_.task) ? " numbers" : " scores", " a row, ", declared,
                     declared == 1 ? " is declared" : " are declared");
  }

  // INTERNAL for states of other tokens than the encoder was given.
  static Status CheckStates(const Shape& states, const Shape& tokens) {
    if (states.size() == 3 && states[0] == tokens[0] && states[1] == tokens[1]) return absl::OkStatus();
    return MakeError(StatusCode::kInternal, "the model gave states of shape ", ShapeText(states), " for tokens of ",
                     ShapeText(tokens));
  }

  Status Pool(const BatchItem& item, std::string& output, Shape& shape) const {
    const TensorView& mask = item.inputs[mask_];
    SWIZZLE_RETURN_IF_ERROR(CheckStates(shape, mask.shape));
    output = PooledStates(pipeline_.pooling, output, shape, mask);
    int64_t width = shape[2];
    for (const auto& layer : pipeline_.dense) {
      if (layer->weight.shape[0] != width) {
        return MakeError(StatusCode::kInternal, "module ", layer->name, " reads vectors of ", layer->weight.shape[0],
                         " numbers, and gets ", width);
      }
      ApplyDense(*layer, output);
      width = layer->weight.shape[1];
    }
    shape = {shape[0], width};
    return absl::OkStatus();
  }

  // Of the encoder's outputs makes those that the model has.
  Status Finish(const BatchItem& item) const {
    std::vector<std::string>& outputs = *item.outputs;
    std::vector<Shape>& shapes = *item.output_shapes;
    std::string states = from_.states ? outputs[*from_.states] : std::string();
    const Shape shape_of_states = from_.states ? shapes[*from_.states] : Shape();
    if (from_.index > 0) {
      outputs[0] = std::move(outputs[from_.index]);
      shapes[0] = std::move(shapes[from_.index]);
    }
    outputs.resize(1);
    shapes.resize(1);
    if (from_.per_token) SWIZZLE_RETURN_IF_ERROR(Pool(item, outputs[0], shapes[0]));
    SWIZZLE_ASSIGN_OR_RETURN(const size_t width, WidthOf(shapes[0]));
    if (text::Embeds(pipeline_.task)) {
      if (pipeline_.normalises) NormaliseVectors(width, outputs[0]);
      if (!from_.states) return absl::OkStatus();
      outputs.push_back(std::move(states));
      shapes.push_back(shape_of_states);
      return CheckStates(shape_of_states, item.inputs[0].shape);
    }
    outputs.resize(outputs_.size(), outputs[0]);
    shapes.resize(outputs_.size(), shapes[0]);
    const text::ScoreFunction function = width == 1 ? text::ScoreFunction::kSigmoid : pipeline_.of_many;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].name == kScoresOutput) ScoreLogits(function, width, outputs[i]);
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<Session> encoder_;
  const EncoderOutput from_;
  const size_t mask_;  // of the encoder's inputs; where states of tokens are pooled
  const std::vector<TensorSpec>& outputs_;
  const text::Pipeline& pipeline_;
};

size_t MaskOf(const ModelSpec& encoder) {
  return static_cast<size_t>(std::ranges::find(encoder.inputs, kTokenInputs[1], &TensorSpec::name) -
                             encoder.inputs.begin());
}

// None where the encoder has no such output, or keeps no states where the task is to show them.
std::optional<EncoderOutput> OutputOf(const ModelSpec& encoder, text::TextTask task) {
  const size_t rank = encoder.max_batch_size > 0 ? 1 : 2;
  const auto named = [&](std::string_view name, size_t its_rank) -> std::optional<size_t> {
    const auto found = std::ranges::find(encoder.outputs, name, &TensorSpec::name);
    if (found == encoder.outputs.end() || found->dtype != DType::kFloat32 || found->dims.size() != its_rank) return {};
    return static_cast<size_t>(found - encoder.outputs.begin());
  };
  const bool embeds = text::Embeds(task), keeps = task == text::TextTask::kTokenEmbedding;
  const std::string_view only = encoder.outputs.size() == 1 ? std::string_view(encoder.outputs[0].name) : "";
  std::optional<size_t> states;
  for (const std::string_view name : {std::string_view("last_hidden_state"), text::kStatesName, only}) {
    if (!states) states = named(name, rank + 1);
  }
  if (keeps && !states) return std::nullopt;
  const std::optional<size_t> kept = keeps ? states : std::nullopt;
  for (const std::string_view name : {only, embeds ? text::kPooledName : std::string_view("logits")}) {
    if (const auto index = named(name, rank)) return EncoderOutput{*index, false, kept};
  }
  if (!embeds || !states || MaskOf(encoder) == encoder.inputs.size()) return std::nullopt;
  return EncoderOutput{*states, true, kept};
}

class TextModel final : public Model {
 public:
  TextModel(ModelSpec spec, std::shared_ptr<Model> encoder, TextRules rules)
      : spec_(std::move(spec)), encoder_(std::move(encoder)), rules_(std::move(rules)) {}

  const ModelSpec& spec() const override { return spec_; }
  const TextRules* text_rules() const override { return &rules_; }
  // Of the encoder's facts that there are now: requests ask, too.
  std::shared_ptr<const ModelFacts> facts() const override {
    const std::shared_ptr<const ModelFacts> its = encoder_->facts();
    const MutexLock lock(mutex_);
    if (its == described_) return facts_;
    auto facts = std::make_shared<ModelFacts>(*its);
    facts->properties["swizzle_text"] = text::TextTaskName(rules_.pipeline.task);
    if (text::Embeds(rules_.pipeline.task)) {
      facts->properties["swizzle_pooling"] = text::PoolingName(rules_.pipeline.pooling);
    }
    if (rules_.pipeline.normalises) facts->properties["swizzle_normalised"] = "1";
    if (rules_.max_tokens > 0) facts->properties["swizzle_max_tokens"] = std::to_string(rules_.max_tokens);
    described_ = its;
    facts_ = std::move(facts);
    return facts_;
  }

  StatusOr<EncodedInputs> Encode(std::vector<TensorView>& inputs, const TextOptions& options) const override {
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TextTokens> texts, TokensOf(inputs[0], options));
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
  StatusOr<std::vector<int64_t>> CheckRequest(std::span<const TensorView> inputs) const override {
    return encoder_->CheckRequest(inputs);
  }
  uint64_t BatchClass(std::span<const TensorView> inputs) const override { return encoder_->BatchClass(inputs); }
  std::shared_ptr<const void> Stage(std::span<TensorView> inputs) const override { return encoder_->Stage(inputs); }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock& clock) override {
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, encoder_->NewSession(clock));
    const ModelSpec& encoder = encoder_->spec();
    const auto from = OutputOf(encoder, rules_.pipeline.task);
    SWIZZLE_CHECK(from.has_value());  // TextSpec's
    return std::make_unique<TextSession>(std::move(session), *from, MaskOf(encoder), spec_.outputs, rules_.pipeline);
  }

 private:
  // INVALID_ARGUMENT for another number of texts in a row than one, or, to be classified, two.
  StatusOr<bool> ArePairs(const TensorView& texts) const {
    if (text::Embeds(rules_.pipeline.task)) return false;
    const int64_t in_a_row = texts.shape.back();
    if (in_a_row == 1 || in_a_row == 2) return in_a_row == 2;
    return InvalidArgument("input '", spec_.inputs[0].name, "' of model '", spec_.name, "' has ", in_a_row,
                           " texts in a row; send one, or two that are a pair");
  }

  StatusOr<std::vector<TextTokens>> TokensOf(const TensorView& texts, const TextOptions& options) const {
    SWIZZLE_ASSIGN_OR_RETURN(const bool pairs, ArePairs(texts));
    std::vector<TextTokens> tokens;
    std::string_view left(reinterpret_cast<const char*>(texts.bytes.data()), texts.bytes.size());
    while (!left.empty()) {
      TextRow row{.text = TakeElement(left)};
      if (pairs) row.pair = TakeElement(left);
      StatusOr<TextTokens> its = rules_.encode(row, options);
      if (!its.ok()) {
        const std::string at = pairs ? Concat("pair ", tokens.size()) : Concat("element ", tokens.size());
        return Annotate(its.status(), Concat(at, " of input '", spec_.inputs[0].name, "' of model '", spec_.name, "'"));
      }
      tokens.push_back(*std::move(its));
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

// As the pipeline calls them, or as transformers does those without names. Null where nothing says how many there are.
StatusOr<std::shared_ptr<const std::vector<std::string>>> LabelsOf(const text::Pipeline& pipeline, int64_t count) {
  std::vector<std::string> labels = pipeline.labels;
  if (labels.empty()) {
    for (int64_t i = 0; i < count; ++i) labels.push_back(Concat("LABEL_", i));
  }
  if (labels.empty()) return nullptr;
  if (count < 0 || std::ssize(labels) == count) return std::make_shared<const std::vector<std::string>>(labels);
  return InvalidArgument("config.json names ", labels.size(), " labels in id2label, but the classifier scores ", count);
}

}  // namespace

StatusOr<ModelSpec> TextSpec(const ModelSpec& encoder, const text::Pipeline& pipeline) {
  for (const TensorSpec& input : encoder.inputs) {
    const bool is_whole = input.dtype == DType::kInt64 || input.dtype == DType::kInt32;
    if (std::ranges::find(kTokenInputs, input.name) != kTokenInputs.end() && is_whole) continue;
    return InvalidArgument("model '", encoder.name, "' cannot take texts: its input '", input.name, "' (",
                           DTypeName(input.dtype), ") is none that a tokeniser fills: input_ids, attention_mask, ",
                           "token_type_ids");
  }
  const auto from = OutputOf(encoder, pipeline.task);
  if (!from && pipeline.task == text::TextTask::kTokenEmbedding && OutputOf(encoder, text::TextTask::kEmbedding)) {
    return InvalidArgument("model '", encoder.name, "' has no FP32 states of tokens, which text=token_embedding is to ",
                           "show; serve it with text=embedding");
  }
  if (!from) {
    return InvalidArgument("model '", encoder.name, "' cannot take texts: it has ", encoder.outputs.size(),
                           " outputs, and not one FP32 vector of each text");
  }
  const size_t rank = encoder.max_batch_size > 0 ? 1 : 2;
  Shape dims = encoder.outputs[from->index].dims;
  if (from->per_token) {
    dims.erase(dims.end() - 2);
    if (!pipeline.dense.empty()) dims.back() = pipeline.dense.back()->weight.shape[1];
  }
  ModelSpec spec = encoder;
  if (text::Embeds(pipeline.task)) {
    spec.inputs = {{std::string(kTextInput), DType::kString, rank == 1 ? Shape{1} : Shape{-1}}};
    spec.outputs = {{std::string(kEmbeddingOutput), DType::kFloat32, dims}};
    if (!from->states) return spec;
    spec.outputs.push_back({std::string(kTokensOutput), DType::kFloat32, encoder.outputs[*from->states].dims});
    return spec;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto labels, LabelsOf(pipeline, dims.back()));
  spec.inputs = {{std::string(kTextInput), DType::kString, Shape(rank, -1)}};
  spec.outputs = {{.name = std::string(kScoresOutput), .dims = dims, .labels = labels},
                  {.name = std::string(kLogitsOutput), .dims = dims, .labels = labels}};
  return spec;
}

void NormaliseVectors(size_t width, std::string& vectors) {
  ForEachVector(width, vectors, [](std::vector<float>& row) {
    double squares = 0.0;  // squares of large numbers are beyond FP32, and those of small ones nothing there
    for (const float x : row) squares += static_cast<double>(x) * x;
    const double norm = std::max(std::sqrt(squares), kLeastNorm);
    for (float& x : row) x = static_cast<float>(x / norm);
  });
}

void CutVectors(size_t width, size_t kept, std::string& vectors) {
  const size_t count = vectors.size() / (width * sizeof(float)), bytes = kept * sizeof(float);
  for (size_t row = 0; row < count; ++row) {
    std::memmove(vectors.data() + row * bytes, vectors.data() + row * width * sizeof(float), bytes);
  }
  vectors.resize(count * bytes);
}

void ScoreLogits(text::ScoreFunction function, size_t width, std::string& logits) {
  if (function == text::ScoreFunction::kSigmoid) {
    ForEachVector(width, logits, [](std::vector<float>& row) {
      for (float& x : row) x = 1.0f / (1.0f + std::exp(-x));
    });
  } else if (function == text::ScoreFunction::kSoftmax) {
    ForEachVector(width, logits, [](std::vector<float>& row) {
      const float largest = *std::ranges::max_element(row);
      float sum = 0.0f;
      for (float& x : row) sum += x = std::exp(x - largest);
      for (float& x : row) x /= sum;
    });
  }
}

std::shared_ptr<Model> NewTextModel(ModelSpec spec, std::shared_ptr<Model> encoder, TextRules rules) {
  // An encoder that pools has these weights in its own graph.
  const auto from = OutputOf(encoder->spec(), rules.pipeline.task);
  if (from && !from->per_token) rules.pipeline.dense.clear();
  return std::make_shared<TextModel>(std::move(spec), std::move(encoder), std::move(rules));
}

}  // namespace swizzle
