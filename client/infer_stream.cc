#include "client/infer_stream.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

#include "client/wire_format.h"

namespace swizzle::client {
namespace {

constexpr size_t kMostUnsent = 16;

using Request = inference::ModelInferRequest;
using Response = inference::ModelStreamInferResponse;

// What is to be sent is guarded by the mutex, under which gRPC is told to write, too. A hold keeps gRPC from ending the
// call while callers may still write: until they close it, or a read or a write says that it is over.
class StreamCall final : public grpc::ClientBidiReactor<Request, Response> {
 public:
  StreamCall(StreamSetting setting, StreamCallbacks callbacks)
      : context_(std::move(setting.context)),
        status_(std::move(setting.status)),
        gone_(std::move(setting.gone)),
        callbacks_(std::move(callbacks)) {}

  void Start(inference::GRPCInferenceService::Stub& stub, std::shared_ptr<StreamCall> self) {
    self_ = std::move(self);
    stub.async()->ModelStreamInfer(context_.get(), this);
    AddHold();
    StartRead(&response_);
    StartCall();
  }

  absl::Status Send(const InferRequest& request);
  void HalfClose();
  void Cancel() { context_->TryCancel(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void WriteNext();
  void LetGo();
  void BeOver();

  // Which call's callback this thread is in.
  static thread_local const StreamCall* in_callback_;

  const std::unique_ptr<grpc::ClientContext> context_;
  const std::function<absl::Status(const grpc::Status&)> status_;
  absl::AnyInvocable<void() &&> gone_;
  StreamCallbacks callbacks_;
  Response response_;                 // gRPC's while a read is under way
  std::shared_ptr<StreamCall> self_;  // until OnDone

  std::mutex mutex_;  // not Abseil's: ThreadSanitizer would not see it
  std::condition_variable room_;
  std::deque<Request> unsent_;  // the first is gRPC's while a write is under way
  bool writing_ = false, closed_ = false, over_ = false, held_ = true;
};

thread_local const StreamCall* StreamCall::in_callback_ = nullptr;

absl::Status StreamCall::Send(const InferRequest& request) {
  Request message;
  if (absl::Status status = ToWire(request, message); !status.ok()) return status;
  // Without it nobody learns that a decoupled model has given its last answer.
  (*message.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  std::unique_lock lock(mutex_);
  if (in_callback_ != this) room_.wait(lock, [this] { return over_ || closed_ || unsent_.size() < kMostUnsent; });
  if (closed_) return absl::FailedPreconditionError("the stream was closed: nothing is sent after HalfClose");
  if (over_) return absl::UnavailableError("the stream has ended; open another");
  unsent_.push_back(std::move(message));
  if (!writing_) WriteNext();
  return absl::OkStatus();
}

void StreamCall::HalfClose() {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  closed_ = true;
  room_.notify_all();
  if (!writing_ && !over_) StartWritesDone();
  LetGo();
}

// Under the lock.
void StreamCall::WriteNext() {
  writing_ = true;
  StartWrite(&unsent_.front());
}

void StreamCall::LetGo() {
  if (std::exchange(held_, false)) RemoveHold();
}

void StreamCall::BeOver() {
  over_ = true;
  room_.notify_all();
  LetGo();
}

void StreamCall::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  unsent_.pop_front();
  room_.notify_one();
  if (!ok || over_) return BeOver();
  if (!unsent_.empty()) {
    WriteNext();
  } else if (closed_) {
    StartWritesDone();
  }
}

void StreamCall::OnReadDone(bool ok) {
  if (!ok) {
    const std::lock_guard lock(mutex_);
    return BeOver();
  }
  const StreamCall* const outer = std::exchange(in_callback_, this);
  callbacks_.on_answer(FromWire(std::move(response_)));
  in_callback_ = outer;
  response_.Clear();
  StartRead(&response_);
}

// The last owner of a channel joins gRPC's threads, so the call goes before the client may.
void StreamCall::OnDone(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    BeOver();
  }
  const StreamCall* const outer = std::exchange(in_callback_, this);
  std::move(callbacks_.on_end)(status.ok() ? absl::OkStatus() : status_(status));
  in_callback_ = outer;
  callbacks_ = StreamCallbacks();
  absl::AnyInvocable<void()&&> gone = std::move(gone_);
  self_.reset();  // `this` may be gone now
  std::move(gone)();
}

class Handle final : public InferStream {
 public:
  explicit Handle(std::shared_ptr<StreamCall> call) : call_(std::move(call)) {}
  ~Handle() override { call_->Cancel(); }

  absl::Status Send(const InferRequest& request) override { return call_->Send(request); }
  void HalfClose() override { call_->HalfClose(); }
  void Cancel() override { call_->Cancel(); }

 private:
  const std::shared_ptr<StreamCall> call_;
};

}  // namespace

std::unique_ptr<InferStream> StartStream(StreamSetting setting, StreamCallbacks callbacks) {
  inference::GRPCInferenceService::Stub& stub = setting.stub;
  const auto call = std::make_shared<StreamCall>(std::move(setting), std::move(callbacks));
  call->Start(stub, call);
  return std::make_unique<Handle>(call);
}

}  // namespace swizzle::client
