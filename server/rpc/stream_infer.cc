#include "server/rpc/stream_infer.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/rpc/failed_stream.h"
#include "server/rpc/grpc_infer_call.h"
#include "server/rpc/request_headers.h"
#include "server/rpc/wire_response.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

using grpc::ByteBuffer;

// What a request counts as until its answer is sent, however small its message is: about what it takes.
constexpr int64_t kLeastRequestBytes = ConnectionBytes::kLeastCounted;

// An answer until it is written.
struct Unsent {
  ByteBuffer bytes;
  std::unique_ptr<HeldOfAll> held;
};

// One call. What its requests are doing is guarded by its mutex; gRPC is told what to do under it, too, but Finish,
// after which this may be gone. Deletes itself when gRPC is done with it, which is after all requests have ended.
class StreamInfer final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>, public InferStreams::Stream {
 public:
  StreamInfer(InferCalls& calls, grpc::CallbackServerContext& context)
      : calls_(calls),
        context_(context),
        under_way_(calls, [&context] { return context.peer(); }),
        connection_(calls.connections.Of(context.peer())),
        errors_end_it_(HeaderOf(context, "triton_grpc_error") == "true") {
    calls_.streamed.streams.fetch_add(1, std::memory_order_relaxed);
  }
  ~StreamInfer() override { calls_.streamed.streams.fetch_sub(1, std::memory_order_relaxed); }

  // On gRPC's thread, before it hears of this object.
  void Begin() {
    const Status added =
        Contain("open the stream", [this] { return calls_.streams.Add(*this, context_.peer(), calls_.clock.Now()); });
    const Turn turn(*this);
    if (!added.ok()) Close(added);
  }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override {
    calls_.streams.Remove(*this);
    delete this;
  }
  void EndInOrder(const Status& why) override {
    const Turn turn(*this);
    Close(why);
  }

 private:
  class Streamed;

  // The lock for a change, and at its end what is then to be done. The stream may be gone afterwards, but within a
  // reaction.
  class ABSL_SCOPED_LOCKABLE Turn {
   public:
    explicit Turn(StreamInfer& stream) ABSL_EXCLUSIVE_LOCK_FUNCTION(stream.mutex_) : stream_(stream) {
      stream_.mutex_.Lock();
    }
    ~Turn() ABSL_UNLOCK_FUNCTION();

   private:
    StreamInfer& stream_;
  };

  void Close(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Abandon(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Write(Streamed& first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Streamed& first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Streamed* NextUnwanted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Streamed* Take() ABSL_LOCKS_EXCLUDED(mutex_);

  InferCalls& calls_;
  grpc::CallbackServerContext& context_;
  const CallUnderWay under_way_;
  const std::shared_ptr<ConnectionAccount> connection_;
  const bool errors_end_it_;
  ByteBuffer read_;  // gRPC's while a read is under way
  ResponseWatch::Response sending_;

  Mutex mutex_;
  std::deque<Streamed*> open_ ABSL_GUARDED_BY(mutex_);  // in order; each is held
  Unsent written_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false, writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;    // nothing is read any more
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;  // nothing is written any more
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  int turns_ ABSL_GUARDED_BY(mutex_) = 0;  // that are at their end
  Status status_ ABSL_GUARDED_BY(mutex_);  // that the call ends with
};

// Made before the call that has a reference to it.
struct ReceivedBuffer {
  ByteBuffer bytes;
};

// One request of a stream.
class StreamInfer::Streamed final : private ReceivedBuffer, public GrpcInferCall {
 public:
  Streamed(StreamInfer& stream, ByteBuffer received)
      : ReceivedBuffer{std::move(received)},
        GrpcInferCall(stream.calls_, stream.context_, bytes, {.least_bytes = kLeastRequestBytes, .any_answers = true}),
        stream_(stream) {}

  // Guarded by the stream's mutex.
  bool ended = false;
  bool unwanted = false;     // it is cancelled, or about to be
  bool ends_stream = false;  // with `status`, which it ended with
  Status status;
  std::deque<Unsent> answers;

 private:
  void Answer(inference::ModelInferResponse& message, std::unique_ptr<HeldOfAll> held) override {
    Unsent answer;
    SerializeStreamInfer(message, answer.bytes);
    answer.held = std::move(held);
    const Turn turn(stream_);
    answers.push_back(std::move(answer));
  }

  void End(const Status& its) override {
    bool ends = !its.ok() && (malformed() || stream_.errors_end_it_);
    Unsent error;
    if (!its.ok() && !ends) {
      ends = !Contain("write the error", [&] {
                error.bytes = ErrorMessage(its);
                return absl::OkStatus();
              }).ok();
    }
    if (!its.ok()) bytes.Clear();  // which gRPC would count until the answer is sent
    stream_.calls_.streamed.unread.fetch_add(1, std::memory_order_relaxed);
    const Turn turn(stream_);
    ended = true;
    status = its;
    ends_stream = ends || !Keep(error);
  }

  ByteBuffer ErrorMessage(const Status& its) const {
    inference::ModelStreamInferResponse error;
    error.set_error_message(std::string(its.message()));
    error.mutable_infer_response()->set_id(Id());
    (*error.mutable_infer_response()->mutable_parameters())["swizzle_status_code"].set_int64_param(its.raw_code());
    return Serialize(error);
  }

  // Under the lock; whether there is memory for it, where there is an error to send.
  bool Keep(Unsent& error) {
    if (!error.bytes.Valid()) return true;
    return Contain("keep the error",
                   [&] {
                     answers.push_back(std::move(error));
                     return absl::OkStatus();
                   })
        .ok();
  }

  StreamInfer& stream_;
};

// Requests whose answers nobody will read are cancelled without the lock: they end meanwhile, which takes it.
StreamInfer::Turn::~Turn() {
  stream_.WriteNext();
  stream_.ReadNext();
  ++stream_.turns_;
  while (Streamed* const unwanted = stream_.NextUnwanted()) {
    stream_.mutex_.Unlock();
    unwanted->Cancel();
    unwanted->Release();
    stream_.mutex_.Lock();
  }
  --stream_.turns_;
  const bool over = stream_.closing_ && stream_.open_.empty() && !stream_.writing_;
  const bool finish = over && stream_.turns_ == 0 && !std::exchange(stream_.finished_, true);
  const Status status = stream_.status_;
  stream_.mutex_.Unlock();
  if (finish) stream_.Finish(ToGrpc(status));
}

// Held for who cancels it; null where there is none, or all are wanted.
StreamInfer::Streamed* StreamInfer::NextUnwanted() {
  if (!abandoned_) return nullptr;
  for (Streamed* const streamed : open_) {
    if (streamed->ended || std::exchange(streamed->unwanted, true)) continue;
    streamed->Retain();
    return streamed;
  }
  return nullptr;
}

void StreamInfer::Close(const Status& status) {
  if (closing_) return;
  closing_ = true;
  status_ = status;
}

void StreamInfer::Abandon(const Status& status) {
  if (abandoned_) return;
  closing_ = abandoned_ = true;
  status_ = status;
}

bool StreamInfer::MayRead() const {
  if (reading_ || closing_) return false;
  if (open_.empty()) return true;
  return open_.size() < static_cast<size_t>(calls_.limits.max_stream_requests) &&
         connection_->streamed.load(std::memory_order_relaxed) < calls_.limits.max_streams;
}

void StreamInfer::ReadNext() {
  if (!MayRead()) return;
  reading_ = true;
  StartRead(&read_);
}

// What there is of the first request's answers; it goes once it has had all.
void StreamInfer::WriteNext() {
  while (!writing_ && !open_.empty()) {
    Streamed& first = *open_.front();
    if (!abandoned_ && !first.answers.empty()) return Write(first);
    first.answers.clear();
    if (!first.ended) return;
    if (!abandoned_ && first.ends_stream) Abandon(first.status);
    Drop(first);
  }
}

void StreamInfer::Write(Streamed& first) {
  writing_ = true;
  written_ = std::move(first.answers.front());
  first.answers.pop_front();
  calls_.responses.Start(sending_, [this] { context_.TryCancel(); });
  StartWrite(&written_.bytes);
}

void StreamInfer::Drop(Streamed& first) {
  open_.pop_front();
  connection_->streamed.fetch_sub(1, std::memory_order_relaxed);
  calls_.streamed.unread.fetch_sub(1, std::memory_order_relaxed);
  calls_.streamed.requests.fetch_sub(1, std::memory_order_relaxed);
  first.Release();
}

// What was read as the last of the open requests, held for whoever starts it; null if it is not wanted any more.
StreamInfer::Streamed* StreamInfer::Take() {
  ByteBuffer received;
  received.Swap(&read_);
  auto* const streamed = new Streamed(*this, std::move(received));
  const MutexLock lock(mutex_);
  reading_ = false;
  if (closing_) {
    streamed->Release();
    return nullptr;
  }
  try {
    open_.push_back(streamed);
  } catch (...) {
    streamed->Release();
    throw;
  }
  connection_->streamed.fetch_add(1, std::memory_order_relaxed);
  calls_.streamed.requests.fetch_add(1, std::memory_order_relaxed);
  streamed->Retain();
  return streamed;
}

void StreamInfer::OnReadDone(bool ok) {
  if (!ok) {
    const Turn turn(*this);
    return Close(absl::OkStatus());
  }
  const auto streamed = Contain("take the request", [this]() -> StatusOr<Streamed*> { return Take(); });
  if (streamed.ok() && *streamed != nullptr) {
    (*streamed)->Start();
    (*streamed)->Release();
  }
  const Turn turn(*this);
  if (!streamed.ok()) Close(streamed.status());
}

void StreamInfer::OnWriteDone(bool ok) {
  calls_.responses.Stop(sending_);
  const Turn turn(*this);
  writing_ = false;
  written_ = Unsent();
  if (!ok) Abandon(absl::CancelledError("the client is gone"));
}

void StreamInfer::OnCancel() {
  Contain("count the call", [this] {
    calls_.cancelled.Add(context_.peer());
    return absl::OkStatus();
  }).IgnoreError();
  const Turn turn(*this);
  Abandon(absl::CancelledError("the call was cancelled"));
}

}  // namespace

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* StartStreamInfer(InferCalls& calls,
                                                                  grpc::CallbackServerContext& context) {
  const auto stream =
      Contain("open the stream", [&]() -> StatusOr<StreamInfer*> { return new StreamInfer(calls, context); });
  if (!stream.ok()) return new FailedStream<>(ToGrpc(stream.status()));
  (*stream)->Begin();
  return *stream;
}

}  // namespace swizzle
