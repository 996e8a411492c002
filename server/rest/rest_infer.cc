#include "server/rest/rest_infer.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/rest/http_infer.h"
#include "server/rest/infer_reader.h"
#include "server/rest/infer_writer.h"
#include "server/rest/rest_answer.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

// Deletes itself once its answer is sent.
class RestInfer final : public HttpInfer {
 public:
  RestInfer(InferCalls& calls, std::shared_ptr<HttpCall> call, RestInferRequest request)
      : HttpInfer(calls, std::move(call), request.message),
        forms_(std::move(request.forms)),
        under_way_(calls, [this] { return call_->peer(); }) {}

  void Run() {
    call_->OnLeft([this] { Cancel(); });
    Retain();  // the answer may be sent before Start returns
    Start();
    Release();
  }

 private:
  void Answer(inference::ModelInferResponse& message, std::unique_ptr<HeldOfAll>) override {
    StatusOr<HttpAnswer> written = WriteRestInfer(message, forms_, calls_.limits.max_response_bytes);
    if (written.ok()) {
      answer_ = *std::move(written);
    } else {
      unwritten_ = written.status();
    }
  }

  void End(const Status& status) override {
    const Status& its = status.ok() ? unwritten_ : status;
    if (!its.ok()) answer_ = too_large() ? ErrorAnswer(413, std::string(its.message())) : ErrorAnswer(its);
    const std::shared_ptr<HttpCall> call = std::move(call_);
    call->Answer(std::move(answer_), [this] { Release(); });
  }

  const OutputForms forms_;
  const CallUnderWay under_way_;
  HttpAnswer answer_;
  Status unwritten_;
};

// The body as it was before it was compressed, bounded in size and by the bytes in flight.
StatusOr<std::shared_ptr<const HttpBody>> Inflate(InferCalls& calls, const HttpBody& body) {
  google::protobuf::io::ArrayInputStream in(body.bytes.get(), static_cast<int>(body.size));
  google::protobuf::io::GzipInputStream inflated(&in);  // gzip and deflate, whichever it is
  const auto most = static_cast<size_t>(calls.limits.max_message_bytes);
  auto whole = std::make_shared<HttpBody>();
  size_t capacity = 0;
  const void* piece;
  int size;
  while (inflated.Next(&piece, &size)) {
    const auto bytes = static_cast<size_t>(size);
    if (whole->size + bytes > most) {
      return MakeError(StatusCode::kOutOfRange, "the body has more than ", most, " bytes without its compression");
    }
    if (whole->size + bytes > capacity) {
      capacity = std::clamp(2 * capacity, whole->size + bytes, std::max(most, whole->size + bytes));
      if (!whole->held.Hold(calls.inflight, static_cast<int64_t>(capacity), calls.limits.max_inflight_bytes)) {
        return MakeError(StatusCode::kResourceExhausted, "the server has no room for the body now; try again later");
      }
      auto more = std::make_unique_for_overwrite<char[]>(capacity);
      std::copy_n(whole->bytes.get(), whole->size, more.get());
      whole->bytes = std::move(more);
    }
    std::memcpy(whole->bytes.get() + whole->size, piece, bytes);
    whole->size += bytes;
  }
  if (inflated.ZlibErrorCode() < 0) return InvalidArgument("the body is not compressed as its Content-Encoding says");
  return whole;
}

// How many of the body's bytes are JSON.
StatusOr<size_t> JsonBytes(const HttpCall& call, size_t body) {
  const std::string_view text = call.head().Header("inference-header-content-length");
  if (text.empty()) return body;
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error == std::errc() && end == text.data() + text.size() && bytes <= body) return bytes;
  return InvalidArgument("the header Inference-Header-Content-Length is ", QuotedName(text), ", and the body has ",
                         body, " bytes; it must be how many of them are JSON");
}

// Reads the request and starts it, or answers what is wrong with it. What is too large is OUT_OF_RANGE here.
void ReadAndStart(InferCalls& calls, const std::shared_ptr<HttpCall>& call, std::shared_ptr<const HttpBody> body,
                  bool compressed, const std::string& model, const std::string& version) {
  const Status status = Contain("take the request", [&]() -> Status {
    if (compressed) {
      SWIZZLE_ASSIGN_OR_RETURN(body, Inflate(calls, *body));
    }
    SWIZZLE_ASSIGN_OR_RETURN(const size_t json, JsonBytes(*call, body->size));
    StatusOr<RestInferRequest> request = ReadRestInfer(body, json, model, version, calls.limits.max_message_bytes);
    body = nullptr;
    if (absl::IsResourceExhausted(request.status())) {
      return MakeError(StatusCode::kOutOfRange, std::string(request.status().message()));
    }
    SWIZZLE_RETURN_IF_ERROR(request.status());
    auto* const infer = new RestInfer(calls, call, *std::move(request));
    infer->Run();
    return absl::OkStatus();
  });
  if (status.ok()) return;
  if (absl::IsOutOfRange(status)) {
    calls.refused.too_large.fetch_add(1, std::memory_order_relaxed);
    return call->Answer(ErrorAnswer(413, std::string(status.message())), nullptr);
  }
  if (absl::IsInvalidArgument(status)) calls.refused.malformed.fetch_add(1, std::memory_order_relaxed);
  call->Answer(ErrorAnswer(status), nullptr);
}

}  // namespace

void StartRestInfer(InferCalls& calls, std::shared_ptr<HttpCall> call, std::string model, std::string version) {
  const std::string_view encoding = call->head().Header("content-encoding");
  const bool compressed = encoding == "gzip" || encoding == "deflate";
  if (!compressed && !encoding.empty() && encoding != "identity") {
    return call->Answer(ErrorAnswer(415, Concat("Content-Encoding ", QuotedName(encoding),
                                                " is not known; known are gzip, deflate and identity")),
                        nullptr);
  }
  std::shared_ptr<const HttpBody> body = call->TakeBody();
  const StatusOr<size_t> json = JsonBytes(*call, std::numeric_limits<size_t>::max());
  const size_t work = compressed ? std::numeric_limits<size_t>::max() : std::min(body->size, json.ok() ? *json : 0);
  if (work <= kMostInlineJson) return ReadAndStart(calls, call, std::move(body), compressed, model, version);
  calls.decoders.Add([&calls, call = std::move(call), body = std::move(body), compressed, model = std::move(model),
                      version = std::move(version)]() mutable {
    ReadAndStart(calls, call, std::move(body), compressed, model, version);
  });
}

}  // namespace swizzle
