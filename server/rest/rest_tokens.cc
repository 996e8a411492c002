#include "server/rest/rest_tokens.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <string_view>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/model/string_tensor.h"
#include "server/model/text_model.h"
#include "server/rest/element_json.h"
#include "server/rest/http_infer.h"
#include "server/rest/ids_json.h"
#include "server/rest/text_models.h"
#include "server/rest/text_parts.h"
#include "server/rest/tokens_json.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

// What takes memory while it becomes tokens, which are traced to where they stand: about so many bytes each.
constexpr int64_t kTracedMemory = 64;
constexpr int64_t kMostTextBytes = 4 << 20;  // of one text
// More tokens than any text has: requests are not truncated.
constexpr int64_t kAnyTokens = int64_t{1} << 40;

Status NoRoom(InferCalls& calls) {
  calls.refused.inflight_bytes.fetch_add(1, std::memory_order_relaxed);
  return MakeError(StatusCode::kResourceExhausted, "the server has no room for the texts now; try again later");
}

// A request from what it brings to its answer, of which one thread at a time writes a row after the other.
// Thread-compatible, but for Leave.
class TokensJob : public std::enable_shared_from_this<TokensJob> {
 public:
  TokensJob(InferCalls& calls, std::shared_ptr<HttpCall> call, TextEndpoint endpoint)
      : calls_(calls),
        endpoint_(endpoint),
        call_(std::move(call)),
        under_way_(calls, [this] { return call_->peer(); }),
        deadline_(calls.clock.Now() + calls.limits.max_deadline) {}

  void Run(std::shared_ptr<const HttpBody> body, const std::string& model) {
    const Status begun = Contain("take the request", [&] { return Read(std::move(body), model); });
    if (!begun.ok()) return Answer(begun);
    call_->OnLeft([weak = weak_from_this()] {
      if (const auto job = weak.lock()) job->has_left_.store(true, std::memory_order_relaxed);
    });
    Continue();
  }

 private:
  Status Read(std::shared_ptr<const HttpBody> body, const std::string& model) {
    if (calls_.refusing.load(std::memory_order_relaxed)) {
      return MakeError(StatusCode::kUnavailable, "the server is shutting down");
    }
    if (!held_.Hold(calls_.inflight, kTextJsonMemory * static_cast<int64_t>(body->size),
                    calls_.limits.max_inflight_bytes)) {
      return NoRoom(calls_);
    }
    const Status read = endpoint_ == TextEndpoint::kTeiDecode ? ReadIds(body->text()) : ReadTexts(body->text());
    if (!read.ok()) calls_.refused.malformed.fetch_add(1, std::memory_order_relaxed);
    SWIZZLE_RETURN_IF_ERROR(read);
    SWIZZLE_ASSIGN_OR_RETURN(serving_, ModelForTexts(calls_, *call_, endpoint_, model));
    rules_ = serving_->model->text_rules();
    SWIZZLE_CHECK(rules_ != nullptr);  // of a model of texts
    return absl::OkStatus();
  }
  Status ReadIds(std::string_view json) {
    SWIZZLE_ASSIGN_OR_RETURN(ids_, ReadIdsRequest(json));
    return absl::OkStatus();
  }
  Status ReadTexts(std::string_view json) {
    SWIZZLE_ASSIGN_OR_RETURN(texts_, ReadTextRequest(endpoint_, json));
    left_texts_ = texts_.texts;
    return absl::OkStatus();
  }

  int64_t rows() const { return endpoint_ == TextEndpoint::kTeiDecode ? std::ssize(ids_.ends) : texts_.count; }

  // Writes rows for as long as others may wait.
  void Continue() {
    int64_t done = 0;
    for (; row_ < rows() && done < kPieceBytes; ++row_) {
      const Status written = Contain("write the tokens", [&]() -> Status {
        SWIZZLE_RETURN_IF_ERROR(CheckTime());
        answer_ += row_ > 0 ? "," : "[";
        SWIZZLE_RETURN_IF_ERROR(endpoint_ == TextEndpoint::kTeiDecode ? DecodeRow(done) : TokenizeRow(done));
        return HoldAnswer();
      });
      if (!written.ok()) return Answer(written);
    }
    if (row_ == rows()) return Answer(absl::OkStatus());
    const Status added = Contain("go on with the tokens", [this] {
      calls_.decoders.Add([self = shared_from_this()] { self->Continue(); });
      return absl::OkStatus();
    });
    if (!added.ok()) Answer(added);
  }

  Status CheckTime() const {
    if (has_left_.load(std::memory_order_relaxed)) return absl::CancelledError("the client has left");
    if (calls_.clock.Now() < deadline_) return absl::OkStatus();
    return absl::DeadlineExceededError("the texts took longer than a request may; send fewer at a time");
  }

  Status HoldAnswer() {
    if (static_cast<int64_t>(answer_.size()) > calls_.limits.max_response_bytes) {
      return MakeError(StatusCode::kOutOfRange, "the answer has more than ", calls_.limits.max_response_bytes,
                       " bytes; send fewer texts at a time");
    }
    const bool fits =
        held_answer_.Hold(calls_.inflight, static_cast<int64_t>(answer_.capacity()), calls_.limits.max_inflight_bytes);
    return fits ? absl::OkStatus() : NoRoom(calls_);
  }

  Status TokenizeRow(int64_t& done) {
    const TextOptions options = {.prompt = texts_.prompt};
    SWIZZLE_ASSIGN_OR_RETURN(const std::string_view prompt, rules_->prompt(options));
    const std::string text = Concat(prompt, TakeElement(left_texts_));
    const auto bytes = static_cast<int64_t>(text.size());
    if (bytes > kMostTextBytes) {
      return MakeError(StatusCode::kOutOfRange, "a text has ", bytes, " bytes; at most ", kMostTextBytes,
                       " are shown token by token. Send it in parts");
    }
    HeldBytes held;
    if (!held.Hold(calls_.inflight, kTracedMemory * bytes, calls_.limits.max_inflight_bytes)) return NoRoom(calls_);
    const text::EncodeOptions encoding = {
        .max_tokens = kAnyTokens, .add_special_tokens = texts_.special_tokens, .offsets = true};
    const StatusOr<text::Encoding> tokens = rules_->tokenizer->Encode(text, encoding);
    if (!tokens.ok()) return Annotate(tokens.status(), Concat("element ", row_));
    done += bytes + static_cast<int64_t>(kTextBytes);
    return WriteTokens(*rules_->tokenizer, *tokens, text, calls_.limits.max_response_bytes, answer_);
  }

  Status DecodeRow(int64_t& done) {
    const auto row = static_cast<size_t>(row_);
    const size_t begin = row == 0 ? 0 : ids_.ends[row - 1], count = ids_.ends[row] - begin;
    const std::span<const int32_t> ids = std::span(ids_.ids).subspan(begin, count);
    const StatusOr<std::string> text = rules_->tokenizer->Decode(ids, ids_.skip_special_tokens);
    if (!text.ok()) return Annotate(text.status(), Concat("element ", row_));
    done += static_cast<int64_t>(text->size() + ids.size_bytes() + kTextBytes);
    return WriteJsonString(*text, answer_);
  }

  void Answer(const Status& status) {
    if (absl::IsOutOfRange(status)) calls_.refused.too_large.fetch_add(1, std::memory_order_relaxed);
    const std::shared_ptr<HttpCall> call = std::move(call_);
    if (!status.ok()) return call->Answer(TextError(endpoint_, status), nullptr);
    answer_ += ']';
    call->Answer({.body = {std::move(answer_)}}, [self = shared_from_this()] {});
  }

  InferCalls& calls_;
  const TextEndpoint endpoint_;
  std::shared_ptr<HttpCall> call_;  // null once it is answered
  const CallUnderWay under_way_;
  const Instant deadline_;
  HeldBytes held_, held_answer_;
  std::atomic<bool> has_left_ = false;  // the client

  TextRequest texts_;  // of kTeiTokenize
  std::string_view left_texts_;
  IdsRequest ids_;  // of kTeiDecode
  std::shared_ptr<ServingModel> serving_;
  const TextRules* rules_ = nullptr;
  int64_t row_ = 0;  // the next
  std::string answer_;
};

}  // namespace

void RunRestTokens(InferCalls& calls, std::shared_ptr<HttpCall> call, std::shared_ptr<const HttpBody> body,
                   TextEndpoint endpoint, const std::string& model) {
  std::make_shared<TokensJob>(calls, std::move(call), endpoint)->Run(std::move(body), model);
}

}  // namespace swizzle
