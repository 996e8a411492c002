#include "server/rest/rest_embeddings.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "model_loader/files/printable_name.h"
#include "server/model/text_model.h"
#include "server/rest/http_infer.h"
#include "server/rest/rest_answer.h"
#include "server/rpc/received_message.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

// Inferences of one request that are under way at a time: enough for a batch to be received while another runs, and few
// enough that others find room in the queue.
constexpr size_t kMostAtOnce = 4;

bool TakesTexts(const Model& model) {
  const auto facts = model.facts();
  const auto task = facts->properties.find("swizzle_text");
  return task != facts->properties.end() && task->second == text::TextTaskName(text::TextTask::kEmbedding);
}

// The elements of a tensor of strings, from the beginning on, that are the first `count`.
std::string_view FirstElements(std::string_view tensor, int64_t count) {
  size_t at = 0;
  for (; count > 0 && at < tensor.size(); --count) {
    uint32_t length;
    std::memcpy(&length, tensor.data() + at, sizeof(length));
    at += sizeof(length) + length;
  }
  return tensor.substr(0, at);
}

// Of those that serve and that the client may use.
StatusOr<std::shared_ptr<ServingModel>> OnlyTextModel(const InferCalls& calls, InferCalls::Shown shown) {
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRepository* repository, calls.repository());
  std::map<std::string, std::shared_ptr<ServingModel>> found;
  for (const ModelStatus& status : repository->List()) {
    if (!status.status.ok() || !calls.CheckModel(status.name, shown).ok()) continue;
    auto serving = repository->Find(status.name, "");
    if (serving.ok() && TakesTexts(*(*serving)->model)) found[status.name] = *std::move(serving);
  }
  if (found.size() == 1) return found.begin()->second;
  if (found.empty()) return MakeError(StatusCode::kNotFound, "no model that takes texts is served");
  std::string names;
  for (const auto& [name, serving] : found) names += (names.empty() ? "" : ", ") + QuotedName(name);
  return InvalidArgument("several models take texts: ", names, "; say which in 'model' of a request to /v1/embeddings");
}

StatusOr<std::shared_ptr<ServingModel>> ModelOf(const InferCalls& calls, const HttpCall& call,
                                                const std::string& name) {
  const auto shown = [&call] { return call.head().OnlyHeader("authorization"); };
  if (name.empty()) return OnlyTextModel(calls, shown);
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<ServingModel> serving, calls.Find(name, shown));
  if (TakesTexts(*serving->model)) return serving;
  return InvalidArgument("model ", QuotedName(name), " takes no texts; ModelMetadata says what it takes");
}

class EmbeddingsJob;

// One of the inferences that a job becomes. Deletes itself once its end is told.
class EmbeddingsPart final : public HttpInfer {
 public:
  EmbeddingsPart(InferCalls& calls, std::shared_ptr<EmbeddingsJob> job, std::shared_ptr<HttpCall> call, size_t index,
                 grpc::ByteBuffer bytes)
      : HttpInfer(calls, std::move(call), std::move(bytes)), job_(std::move(job)), index_(index) {}

 private:
  void Answer(inference::ModelInferResponse& response, std::unique_ptr<HeldOfAll>) override {
    vectors_ = std::move(*response.mutable_raw_output_contents(0));
    const auto tokens = response.parameters().find("swizzle_tokens");
    if (tokens != response.parameters().end()) tokens_ = tokens->second.int64_param();
  }
  void End(const Status& status) override;

  const std::shared_ptr<EmbeddingsJob> job_;
  const size_t index_;
  std::string vectors_;
  int64_t tokens_ = 0;
};

// A request from its texts to its answer. At most kMostAtOnce of its parts are under way; after one that failed, and
// once the client has left, no other begins. A part for which there is no room beside the job's others waits for one of
// these, and from then on there are fewer at a time. Thread-safe.
class EmbeddingsJob : public std::enable_shared_from_this<EmbeddingsJob> {
 public:
  EmbeddingsJob(InferCalls& calls, std::shared_ptr<HttpCall> call, EmbeddingsDialect dialect, EmbeddingsRequest request,
                std::shared_ptr<ServingModel> serving)
      : calls_(calls),
        dialect_(dialect),
        request_(std::move(request)),
        serving_(std::move(serving)),
        rows_of_part_(spec().max_batch_size > 0 ? spec().max_batch_size : request_.count),
        call_(std::move(call)),
        under_way_(calls, [this] { return call_->peer(); }),
        held_bytes_(static_cast<int64_t>(request_.texts.size())) {
    for (std::string_view left = request_.texts; !left.empty(); left.remove_prefix(parts_.back().size())) {
      waiting_.push_back(parts_.size());
      parts_.push_back(FirstElements(left, rows_of_part_));
    }
    vectors_.resize(parts_.size());
    held_.HoldAnyway(calls_.inflight, held_bytes_);
  }

  const ServingModel* serving() const { return serving_.get(); }

  // INVALID_ARGUMENT, OUT_OF_RANGE: the request asks for what there is not, or for more than may be answered.
  Status Check() {
    const int64_t width = spec().outputs[0].dims.back();
    if (request_.dimensions != 0 && request_.dimensions != width) {
      return InvalidArgument("model '", spec().name, "' gives vectors of ", width, " dimensions, and not of ",
                             request_.dimensions);
    }
    if (request_.raw && serving_->model->facts()->properties.contains("swizzle_normalised")) {
      return InvalidArgument("'normalize' must be true or left out: the vectors of model '", spec().name,
                             "' have length 1");
    }
    const int64_t bytes = std::max<int64_t>(width, 1) * static_cast<int64_t>(sizeof(float));
    if (request_.count <= calls_.limits.max_response_bytes / bytes) return absl::OkStatus();
    return MakeError(StatusCode::kOutOfRange, "the vectors of ", request_.count, " texts have more than ",
                     calls_.limits.max_response_bytes, " bytes; send fewer at a time");
  }

  void Run() {
    call_->OnLeft([weak = weak_from_this()] {
      if (const auto job = weak.lock()) job->Leave();
    });
    const size_t first = std::min(kMostAtOnce, parts_.size());
    for (size_t i = 0; i < first; ++i) Advance();
  }

  void PartEnded(size_t index, const Status& status, std::string vectors, int64_t tokens) {
    {
      const MutexLock lock(mutex_);
      const bool was_alone = running_.extract(index).mapped().alone;
      if (absl::IsResourceExhausted(status) && !was_alone) {
        waiting_.push_back(index);
        at_once_ = std::max<size_t>(running_.size(), 1);
      } else if (status_.ok()) {
        status_ = status;
      }
      held_bytes_ += static_cast<int64_t>(vectors.size());
      held_.HoldAnyway(calls_.inflight, held_bytes_);
      vectors_[index] = std::move(vectors);
      tokens_ += tokens;
    }
    if (parts_.size() == 1) return Advance();
    // Not on the executor's thread, where texts would be tokenised while its batch's other requests wait for their end.
    const Status added = Contain("go on with the texts", [this] {
      calls_.decoders.Add([self = shared_from_this()] { self->Advance(); });
      return absl::OkStatus();
    });
    if (!added.ok()) Advance();
  }

 private:
  const ModelSpec& spec() const { return serving_->model->spec(); }

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

  // Begins a part, or answers once all have ended. A part may end while it begins: its turn is then taken by the loop
  // that is under way, so that a thousand parts that do need no deeper stack than one.
  void Advance() {
    if (turns_.fetch_add(1) > 0) return;
    const auto self = shared_from_this();
    do {
      Step();
    } while (turns_.fetch_sub(1) > 1);
  }

  void Step() {
    EmbeddingsPart* part = nullptr;
    {
      const MutexLock lock(mutex_);
      if (answered_) return;
      if (status_.ok() && !waiting_.empty() && running_.size() < at_once_) {
        StatusOr<EmbeddingsPart*> made = Contain("take the texts", [this] { return NextPart(); });
        status_ = made.status();
        if (made.ok()) part = *made;
      }
      if (part == nullptr) {
        if (!running_.empty()) return;
        answered_ = true;
      }
    }
    if (part == nullptr) return Answer();
    part->Start();
    part->Release();
  }

  // The next part, which is held for whoever starts it, since it may end before Start returns.
  StatusOr<EmbeddingsPart*> NextPart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t index = waiting_.front();
    const int64_t rows = std::min(rows_of_part_, request_.count - static_cast<int64_t>(index) * rows_of_part_);
    inference::ModelInferRequest message;
    message.set_model_name(spec().name);
    message.set_model_version(std::to_string(spec().version));
    auto& input = *message.add_inputs();
    input.set_name(spec().inputs[0].name);
    input.set_datatype("BYTES");
    input.add_shape(rows);
    if (spec().max_batch_size > 0) {
      for (const int64_t dim : spec().inputs[0].wire_dims()) input.add_shape(dim);
    }
    message.add_raw_input_contents(std::string(parts_[index]));
    const grpc::Slice slice = SerializedSlice(message);
    auto made = std::make_unique<EmbeddingsPart>(calls_, shared_from_this(), call_, index, grpc::ByteBuffer(&slice, 1));
    running_.emplace(index, Running{.part = made.get(), .alone = running_.empty()});
    waiting_.pop_front();
    EmbeddingsPart* const part = made.release();  // it deletes itself
    part->Retain();
    return part;
  }

  // By the one that has set answered_: nobody changes the rest of the job any more.
  void Answer() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    StatusOr<HttpAnswer> answer =
        status_.ok() ? Contain("write the answer", [this] { return Written(); }) : StatusOr<HttpAnswer>(status_);
    const std::shared_ptr<HttpCall> call = std::move(call_);
    call->Answer(answer.ok() ? *std::move(answer) : EmbeddingsError(dialect_, answer.status()),
                 [self = shared_from_this()] {});
  }

  StatusOr<HttpAnswer> Written() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    size_t bytes = 0;
    for (const std::string& vectors : vectors_) bytes += vectors.size();
    const size_t width = bytes / sizeof(float) / static_cast<size_t>(request_.count);
    if (request_.unit) {
      for (std::string& vectors : vectors_) NormaliseVectors(width, vectors);
    }
    const Embeddings embeddings = {.model = spec().name, .rows = vectors_, .width = width, .tokens = tokens_};
    SWIZZLE_ASSIGN_OR_RETURN(std::string text,
                             WriteEmbeddings(dialect_, request_, embeddings, calls_.limits.max_response_bytes));
    return HttpAnswer{.body = {std::move(text)}};
  }

  struct Running {
    InferCall* part;
    bool alone;  // it began while no other part was under way
  };

  InferCalls& calls_;
  const EmbeddingsDialect dialect_;
  const EmbeddingsRequest request_;
  const std::shared_ptr<ServingModel> serving_;  // of all parts
  const int64_t rows_of_part_;
  std::vector<std::string_view> parts_;  // the texts of each, in request_
  std::shared_ptr<HttpCall> call_;       // null once it is answered
  const CallUnderWay under_way_;

  Mutex mutex_;
  int64_t held_bytes_ ABSL_GUARDED_BY(mutex_);  // of texts and vectors
  HeldBytes held_ ABSL_GUARDED_BY(mutex_);
  std::deque<size_t> waiting_ ABSL_GUARDED_BY(mutex_);         // parts
  std::map<size_t, Running> running_ ABSL_GUARDED_BY(mutex_);  // likewise
  std::vector<std::string> vectors_ ABSL_GUARDED_BY(mutex_);   // by part
  size_t at_once_ ABSL_GUARDED_BY(mutex_) = kMostAtOnce;
  Status status_ ABSL_GUARDED_BY(mutex_);
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int> turns_ = 0;
};

// What a client should try again, and what not, differs from a single inference's.
void EmbeddingsPart::End(const Status& status) {
  Status its = status;
  const bool other_model = serving() == nullptr ? index_ > 0 && absl::IsNotFound(status) : serving() != job_->serving();
  if (other_model) {
    its = MakeError(StatusCode::kUnavailable, "the model was replaced while texts were embedded; try again");
  } else if (too_large()) {
    its = MakeError(StatusCode::kOutOfRange, std::string(status.message()));
  }
  job_->PartEnded(index_, its, std::move(vectors_), tokens_);
  Release();
}

void ReadAndStart(InferCalls& calls, const std::shared_ptr<HttpCall>& call, std::shared_ptr<const HttpBody> body,
                  EmbeddingsDialect dialect) {
  const Status status = Contain("take the request", [&]() -> Status {
    const auto bytes = static_cast<int64_t>(body->size);
    HeldBytes held;
    if (!held.Hold(calls.inflight, kEmbeddingsJsonMemory * bytes, calls.limits.max_inflight_bytes)) {
      calls.refused.inflight_bytes.fetch_add(1, std::memory_order_relaxed);
      return MakeError(StatusCode::kResourceExhausted, "the server has no room for the texts now; try again later");
    }
    StatusOr<EmbeddingsRequest> read = ReadEmbeddings(dialect, body->text());
    body = nullptr;
    if (!read.ok()) calls.refused.malformed.fetch_add(1, std::memory_order_relaxed);
    SWIZZLE_ASSIGN_OR_RETURN(EmbeddingsRequest request, std::move(read));
    SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<ServingModel> serving, ModelOf(calls, *call, request.model));
    const auto job = std::make_shared<EmbeddingsJob>(calls, call, dialect, std::move(request), std::move(serving));
    held.Clear();  // the job counts the texts itself
    SWIZZLE_RETURN_IF_ERROR(job->Check());
    job->Run();
    return absl::OkStatus();
  });
  if (absl::IsOutOfRange(status)) calls.refused.too_large.fetch_add(1, std::memory_order_relaxed);
  if (!status.ok()) call->Answer(EmbeddingsError(dialect, status), nullptr);
}

}  // namespace

void StartRestEmbeddings(InferCalls& calls, std::shared_ptr<HttpCall> call, EmbeddingsDialect dialect) {
  const std::string_view encoding = call->head().Header("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    const std::string why = Concat("Content-Encoding ", QuotedName(encoding), " is not taken here; leave it out");
    return call->Answer(EmbeddingsError(dialect, 415, why), nullptr);
  }
  std::shared_ptr<const HttpBody> body = call->TakeBody();
  if (body->size <= kMostInlineJson) return ReadAndStart(calls, call, std::move(body), dialect);
  calls.decoders.Add([&calls, call = std::move(call), body = std::move(body), dialect]() mutable {
    ReadAndStart(calls, call, std::move(body), dialect);
  });
}

}  // namespace swizzle
