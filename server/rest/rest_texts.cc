#include "server/rest/rest_texts.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "kernels/base/mutex.h"
#include "model_loader/files/printable_name.h"
#include "server/model/request_inputs.h"
#include "server/model/text_model.h"
#include "server/rest/embeddings_json.h"
#include "server/rest/http_infer.h"
#include "server/rest/rest_tokens.h"
#include "server/rest/scores_json.h"
#include "server/rest/text_models.h"
#include "server/rest/text_parts.h"
#include "server/rpc/received_message.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

// The query of a rerank, as often as there are texts, is at most so many times the largest request.
constexpr int64_t kMostQueryRequests = 16;

class TextsJob;

// How many of so many rows one inference takes, however long their texts are: those of a batch, which the batcher cuts
// by their tokens; or, of a model whose rows run together, as many as fit if all are of the longest. Vectors of tokens
// are those of one text, so that none stand for padding; batches then have several inferences.
int64_t MostRowsOf(const Model& model, TextEndpoint endpoint, int64_t count) {
  if (endpoint == TextEndpoint::kTeiEmbedAll) return 1;
  const ModelSpec& spec = model.spec();
  if (spec.max_batch_size > 0) return spec.max_batch_size;
  const auto facts = model.facts();
  const auto longest = facts->properties.find("swizzle_max_tokens");
  int64_t most = count, tokens = 0;
  if (longest != facts->properties.end() && absl::SimpleAtoi(longest->second, &tokens) && spec.max_batch_tokens > 0) {
    most = std::clamp<int64_t>(spec.max_batch_tokens / std::max<int64_t>(tokens, 1), 1, most);
  }
  return most;
}

// One of the inferences that a job becomes. Deletes itself once its end is told.
class TextsPart final : public HttpInfer {
 public:
  TextsPart(InferCalls& calls, std::shared_ptr<TextsJob> job, std::shared_ptr<HttpCall> call, size_t index,
            const grpc::ByteBuffer& bytes)
      : HttpInfer(calls, std::move(call), bytes), job_(std::move(job)), index_(index) {}

 private:
  void Answer(inference::ModelInferResponse& response, std::unique_ptr<HeldOfAll>) override {
    numbers_ = std::move(*response.mutable_raw_output_contents(0));
    const auto tokens = response.parameters().find("swizzle_tokens");
    if (tokens != response.parameters().end()) tokens_ = tokens->second.int64_param();
  }
  void End(const Status& status) override;
  Instant AskedDeadline() const override;

  const std::shared_ptr<TextsJob> job_;
  const size_t index_;
  std::string numbers_;
  int64_t tokens_ = 0;
};

// A request from its texts to its answer. Of its parts as many are under way as PartsAtOnce says; after one that
// failed, and once the client has left, no other begins. A part for which there is no room beside the job's others
// waits for one of these, and from then on there are fewer at a time. Thread-safe.
class TextsJob : public std::enable_shared_from_this<TextsJob> {
 public:
  TextsJob(InferCalls& calls, std::shared_ptr<HttpCall> call, TextEndpoint endpoint, TextRequest request,
           std::shared_ptr<ServingModel> serving)
      : calls_(calls),
        endpoint_(endpoint),
        places_(GroupKinds(request)),
        request_(std::move(request)),
        serving_(std::move(serving)),
        parts_(PartsOf(request_, MostRowsOf(*serving_->model, endpoint, request_.count))),
        call_(std::move(call)),
        under_way_(calls, [this] { return call_->peer(); }),
        deadline_(calls.clock.Now() + calls.limits.max_deadline),
        held_bytes_(BytesOf(request_) +
                    static_cast<int64_t>(places_.size() * sizeof(int64_t) + parts_.size() * kPartMemory)) {
    for (size_t i = 0; i < parts_.size(); ++i) waiting_.push_back(i);
    if (endpoint == TextEndpoint::kTeiEmbedAll) at_once_ = SingleRowsAtOnce(spec());
    numbers_.resize(parts_.size());
    held_.HoldAnyway(calls_.inflight, held_bytes_);
  }

  const ServingModel* serving() const { return serving_.get(); }
  Instant deadline() const { return deadline_; }
  // What is added to an error that names elements of a part alone: of which texts. Empty where the part is all of them.
  std::string TextsOf(size_t part) const {
    const TextPart& its = parts_[part];
    if (parts_.size() == 1 || (places_.empty() && its.first == 0)) return "";
    if (places_.empty()) return Concat(" (of the texts from number ", its.first, " on)");
    return Concat(its.pairs ? " (of the pairs" : " (of the single texts", " from number ",
                  places_[static_cast<size_t>(its.first)], " on)");
  }

  // INVALID_ARGUMENT, OUT_OF_RANGE: the request asks for what there is not, or for more than may be answered.
  Status Check() {
    SWIZZLE_ASSIGN_OR_RETURN(const size_t index, IndexOfOutput(spec(), output()));
    const int64_t width = spec().outputs[index].dims.back();
    if (request_.dimensions > width && width >= 0) {
      return InvalidArgument("model '", spec().name, "' gives vectors of ", width, " dimensions, and not of ",
                             request_.dimensions);
    }
    if (request_.raw && normalises()) {
      return InvalidArgument("'normalize' must be true or left out: the vectors of model '", spec().name,
                             "' have length 1");
    }
    const int64_t most = kMostQueryRequests * calls_.limits.max_message_bytes;
    if (request_.query && static_cast<int64_t>(request_.query->size()) > most / request_.count) {
      return MakeError(StatusCode::kOutOfRange, "the query, before each of ", request_.count, " texts, has more than ",
                       most, " bytes; send fewer at a time, or a shorter query");
    }
    const int64_t bytes = std::max<int64_t>(width, 1) * static_cast<int64_t>(sizeof(float));
    return request_.count <= calls_.limits.max_response_bytes / bytes ? absl::OkStatus() : TooMany();
  }

  // A short request's query may stand before thousands of texts, which no thread of HTTP's is to write.
  void Run(bool is_inline) {
    call_->OnLeft([weak = weak_from_this()] {
      if (const auto job = weak.lock()) job->Leave();
    });
    if (!is_inline || bytes() <= static_cast<int64_t>(kMostInlineJson)) return Advance();
    calls_.decoders.Add([self = shared_from_this()] { self->Advance(); });
  }

  void PartEnded(size_t index, const Status& status, std::string numbers, int64_t tokens) {
    {
      const MutexLock lock(mutex_);
      const bool was_alone = running_.extract(index).mapped().alone;
      running_bytes_ -= std::ssize(parts_[index].texts);
      if (absl::IsResourceExhausted(status) && !was_alone) {
        waiting_.push_back(index);
        at_once_.most = std::max<int64_t>(std::ssize(running_), 1);
      } else if (status_.ok()) {
        status_ = status;
      }
      held_bytes_ += static_cast<int64_t>(numbers.size());
      answer_bytes_ += static_cast<int64_t>(numbers.size());
      if (status_.ok() && answer_bytes_ > calls_.limits.max_response_bytes) status_ = TooMany();
      held_.HoldAnyway(calls_.inflight, held_bytes_);
      numbers_[index] = std::move(numbers);
      tokens_ += tokens;
    }
    if (parts_.size() == 1) return Advance();
    // Not on the executor's thread, where texts would be tokenised while its batch's other requests wait for their end.
    AdvanceLater();
  }

 private:
  // What is kept of a part until the job ends.
  static constexpr size_t kPartMemory = sizeof(TextPart) + sizeof(std::string) + sizeof(size_t);

  static int64_t BytesOf(const TextRequest& request) {
    return static_cast<int64_t>(request.texts.size() + (request.query ? request.query->size() : 0));
  }
  int64_t query_bytes() const { return request_.query ? std::ssize(*request_.query) : 0; }

  // Of all texts as the model is to see them, with the query before each.
  int64_t bytes() const { return std::ssize(request_.texts) + request_.count * query_bytes(); }

  Status TooMany() const {
    return MakeError(StatusCode::kOutOfRange, "what is asked for of ", request_.count, " texts has more than ",
                     calls_.limits.max_response_bytes, " bytes; send fewer at a time");
  }

  const ModelSpec& spec() const { return serving_->model->spec(); }
  bool classifies() const { return TaskOf(endpoint_) == text::TextTask::kClassification; }
  bool normalises() const { return serving_->model->facts()->properties.contains("swizzle_normalised"); }
  std::string_view output() const {
    if (endpoint_ == TextEndpoint::kTeiEmbedAll) return kTokensOutput;
    return !classifies() ? kEmbeddingOutput : request_.raw_scores ? kLogitsOutput : kScoresOutput;
  }

  void Leave() {
    std::vector<InferCall*> running;
    {
      const MutexLock lock(mutex_);
      if (answered_) return;
      if (status_.ok()) status_ = absl::CancelledError("the client has left");
      for (const auto& [index, its] : running_) {
        its.part->Retain();
        running.push_back(its.part);
      }
    }
    for (InferCall* const part : running) {
      part->Cancel();
      part->Release();
    }
  }

  // Has a thread advance that others do not wait for, behind what they have for it.
  void AdvanceLater() {
    const Status added = Contain("go on with the texts", [this] {
      calls_.decoders.Add([self = shared_from_this()] { self->Advance(); });
      return absl::OkStatus();
    });
    if (!added.ok()) Advance();
  }

  // Begins parts, and has more begin later if there is room; or answers once all have ended. A part may end while
  // it begins: its turn is then taken by the loop that is under way, so that a thousand parts that do need no deeper
  // stack than one.
  void Advance() {
    if (turns_.fetch_add(1) > 0) return;
    const auto self = shared_from_this();
    do {
      Step();
    } while (turns_.fetch_sub(1) > 1);
  }

  // Parts begin one behind the other: executors take what there is, and are to find a batch.
  void Step() {
    for (int64_t begun = 0; begun < kPieceBytes;) {
      const auto [part, bytes, has_more] = Begin();
      if (part == nullptr) return;
      part->Start();
      part->Release();
      if (!has_more) return;
      begun += bytes + static_cast<int64_t>(kTextBytes);
    }
    AdvanceLater();
  }

  struct Begun {
    TextsPart* part = nullptr;  // null: none is to begin now
    int64_t bytes = 0;          // of its texts, with the query before each
    bool has_more = false;
  };
  // The next part, if there is room; answers where none is left.
  Begun Begin() {
    Begun begun;
    {
      const MutexLock lock(mutex_);
      if (answered_) return begun;
      if (status_.ok() && !waiting_.empty() && calls_.clock.Now() >= deadline_) {
        status_ = absl::DeadlineExceededError("the texts took longer than a request may; send fewer at a time");
      }
      if (status_.ok() && HasRoom()) {
        const TextPart& next = parts_[waiting_.front()];
        begun.bytes = std::ssize(next.texts) + next.rows * query_bytes();
        StatusOr<TextsPart*> made =
            Contain("take the texts", [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return NextPart(); });
        status_ = made.status();
        if (made.ok()) begun.part = *made;
        begun.has_more = made.ok() && HasRoom();
      }
      if (begun.part != nullptr || !running_.empty()) return begun;
      answered_ = true;
    }
    Answer();
    return begun;
  }

  // Whether a part waits that may begin now.
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (waiting_.empty()) return false;
    return at_once_.HasRoom(std::ssize(running_), running_bytes_ + std::ssize(parts_[waiting_.front()].texts),
                            serving_->batcher->queued());
  }

  // The next part, which is held for whoever starts it, since it may end before Start returns.
  StatusOr<TextsPart*> NextPart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t index = waiting_.front();
    const TextPart& its = parts_[index];
    inference::ModelInferRequest message;
    message.set_model_name(spec().name);
    message.set_model_version(std::to_string(spec().version));
    auto& input = *message.add_inputs();
    input.set_name(spec().inputs[0].name);
    input.set_datatype("BYTES");
    input.add_shape(its.rows);
    if (classifies()) {
      input.add_shape(its.pairs || request_.query ? 2 : 1);
    } else if (spec().max_batch_size > 0) {
      for (const int64_t dim : spec().inputs[0].wire_dims()) input.add_shape(dim);
    }
    message.add_outputs()->set_name(std::string(output()));
    if (request_.prompt) (*message.mutable_parameters())["swizzle_prompt"].set_string_param(*request_.prompt);
    if (!request_.truncate) (*message.mutable_parameters())["swizzle_truncate"].set_bool_param(false);
    message.add_raw_input_contents(TensorOf(request_, its));
    const grpc::Slice slice = SerializedSlice(message);
    auto made = std::make_unique<TextsPart>(calls_, shared_from_this(), call_, index, grpc::ByteBuffer(&slice, 1));
    running_.emplace(index, Running{.part = made.get(), .alone = running_.empty()});
    running_bytes_ += std::ssize(its.texts);
    waiting_.pop_front();
    TextsPart* const part = made.release();  // it deletes itself
    part->Retain();
    return part;
  }

  // By the one that has set answered_: nobody changes the rest of the job any more.
  void Answer() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    StatusOr<HttpAnswer> answer =
        status_.ok() ? Contain("write the answer", [this] { return Written(); }) : StatusOr<HttpAnswer>(status_);
    const std::shared_ptr<HttpCall> call = std::move(call_);
    call->Answer(answer.ok() ? *std::move(answer) : TextError(endpoint_, answer.status()),
                 [self = shared_from_this()] {});
  }

  StatusOr<HttpAnswer> Written() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    size_t bytes = 0;
    for (const std::string& numbers : numbers_) bytes += numbers.size();
    const auto count = static_cast<size_t>(endpoint_ == TextEndpoint::kTeiEmbedAll ? tokens_ : request_.count);
    const size_t row_bytes = bytes / std::max<size_t>(count, 1), width = row_bytes / sizeof(float);
    if (width == 0 || width * sizeof(float) * count != bytes) {
      return MakeError(StatusCode::kInternal, "model '", spec().name, "' gave ", bytes, " bytes for ", request_.count,
                       " texts");
    }
    const int64_t most = calls_.limits.max_response_bytes;
    StatusOr<std::string> text = std::string();
    if (classifies()) {
      if (!places_.empty()) numbers_ = {RowsAt(places_, numbers_, row_bytes)};
      const std::vector<std::string> labels = Labels(width);
      const Scores scores = {.rows = numbers_, .labels = labels};
      text = endpoint_ == TextEndpoint::kTeiRerank ? WriteRanks(request_, scores, most)
                                                   : WritePredictions(request_, scores, most);
    } else if (endpoint_ == TextEndpoint::kTeiEmbedAll) {
      text = WriteTokenEmbeddings(numbers_, width, most);
    } else {
      const size_t kept = request_.dimensions > 0 ? std::min(width, static_cast<size_t>(request_.dimensions)) : width;
      const bool cut = kept < width;
      for (std::string& vectors : numbers_) {
        if (cut) CutVectors(width, kept, vectors);
        if (request_.unit || (cut && normalises())) NormaliseVectors(kept, vectors);
      }
      const Embeddings embeddings = {.model = spec().name, .rows = numbers_, .width = kept, .tokens = tokens_};
      text = endpoint_ == TextEndpoint::kTeiSimilarity ? WriteSimilarities(embeddings, most)
                                                       : WriteEmbeddings(endpoint_, request_, embeddings, most);
    }
    SWIZZLE_RETURN_IF_ERROR(text.status());
    return HttpAnswer{.body = {*std::move(text)}};
  }

  // As many as there are scores of a row, whatever a file of labels has.
  std::vector<std::string> Labels(size_t width) const {
    const auto scores = std::ranges::find(spec().outputs, output(), &TensorSpec::name);
    std::vector<std::string> labels;
    if (scores->labels != nullptr) labels = *scores->labels;
    labels.resize(std::min(labels.size(), width));
    while (labels.size() < width) labels.push_back(Concat("LABEL_", labels.size()));
    return labels;
  }

  struct Running {
    InferCall* part;
    bool alone;  // it began while no other part was under way
  };

  InferCalls& calls_;
  const TextEndpoint endpoint_;
  const std::vector<int64_t> places_;  // where the request's rows stood (GroupKinds)
  const TextRequest request_;
  const std::shared_ptr<ServingModel> serving_;  // of all parts
  const std::vector<TextPart> parts_;            // in request_
  std::shared_ptr<HttpCall> call_;               // null once it is answered
  const CallUnderWay under_way_;
  const Instant deadline_;  // of all parts together

  Mutex mutex_;
  int64_t held_bytes_ ABSL_GUARDED_BY(mutex_);  // of texts and numbers
  HeldBytes held_ ABSL_GUARDED_BY(mutex_);
  std::deque<size_t> waiting_ ABSL_GUARDED_BY(mutex_);         // parts
  std::map<size_t, Running> running_ ABSL_GUARDED_BY(mutex_);  // likewise
  std::vector<std::string> numbers_ ABSL_GUARDED_BY(mutex_);   // by part: vectors or scores
  int64_t running_bytes_ ABSL_GUARDED_BY(mutex_) = 0;          // of their texts
  PartsAtOnce at_once_ ABSL_GUARDED_BY(mutex_);
  Status status_ ABSL_GUARDED_BY(mutex_);
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t answer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of numbers
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int> turns_ = 0;
};

Instant TextsPart::AskedDeadline() const { return job_->deadline(); }

// What a client should try again, and what not, differs from a single inference's.
void TextsPart::End(const Status& status) {
  Status its = status;
  const bool other_model = serving() == nullptr ? index_ > 0 && absl::IsNotFound(status) : serving() != job_->serving();
  if (other_model) {
    its = MakeError(StatusCode::kUnavailable, "the model was replaced while its texts were under way; try again");
  } else if (too_large()) {
    its = MakeError(StatusCode::kOutOfRange, std::string(status.message()));
  }
  if (!its.ok()) its = MakeError(its.code(), std::string(its.message()), job_->TextsOf(index_));
  job_->PartEnded(index_, its, std::move(numbers_), tokens_);
  Release();
}

void ReadAndStart(InferCalls& calls, const std::shared_ptr<HttpCall>& call, std::shared_ptr<const HttpBody> body,
                  TextEndpoint endpoint, const std::string& model) {
  const Status status = Contain("take the request", [&]() -> Status {
    if (endpoint == TextEndpoint::kTeiTokenize || endpoint == TextEndpoint::kTeiDecode) {
      RunRestTokens(calls, call, std::move(body), endpoint, model);
      return absl::OkStatus();
    }
    const auto bytes = static_cast<int64_t>(body->size);
    const bool is_inline = body->size <= kMostInlineJson;
    HeldBytes held;
    if (!held.Hold(calls.inflight, kTextJsonMemory * bytes, calls.limits.max_inflight_bytes)) {
      calls.refused.inflight_bytes.fetch_add(1, std::memory_order_relaxed);
      return MakeError(StatusCode::kResourceExhausted, "the server has no room for the texts now; try again later");
    }
    StatusOr<TextRequest> read = ReadTextRequest(endpoint, body->text());
    body = nullptr;
    if (!read.ok()) calls.refused.malformed.fetch_add(1, std::memory_order_relaxed);
    SWIZZLE_ASSIGN_OR_RETURN(TextRequest request, std::move(read));
    if (!model.empty()) request.model = model;
    SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<ServingModel> serving,
                             ModelForTexts(calls, *call, endpoint, request.model));
    const auto job = std::make_shared<TextsJob>(calls, call, endpoint, std::move(request), std::move(serving));
    held.Clear();  // the job counts the texts itself
    SWIZZLE_RETURN_IF_ERROR(job->Check());
    job->Run(is_inline);
    return absl::OkStatus();
  });
  if (absl::IsOutOfRange(status)) calls.refused.too_large.fetch_add(1, std::memory_order_relaxed);
  if (!status.ok()) call->Answer(TextError(endpoint, status), nullptr);
}

}  // namespace

void StartRestTexts(InferCalls& calls, std::shared_ptr<HttpCall> call, TextEndpoint endpoint,
                    const std::string& model) {
  const std::string_view encoding = call->head().Header("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    const std::string why = Concat("Content-Encoding ", QuotedName(encoding), " is not taken here; leave it out");
    return call->Answer(TextError(endpoint, 415, why), nullptr);
  }
  std::shared_ptr<const HttpBody> body = call->TakeBody();
  if (body->size <= kMostInlineJson) return ReadAndStart(calls, call, std::move(body), endpoint, model);
  calls.decoders.Add([&calls, call = std::move(call), body = std::move(body), endpoint, model]() mutable {
    ReadAndStart(calls, call, std::move(body), endpoint, model);
  });
}

}  // namespace swizzle
