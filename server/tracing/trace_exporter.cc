#include "server/tracing/trace_exporter.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "proto/opentelemetry/trace_service.grpc.pb.h"
#include "server/telemetry/containment.h"
#include "server/telemetry/logging.h"
#include "server/tracing/otlp_spans.h"

namespace swizzle {
namespace {

using opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;
using opentelemetry::proto::collector::trace::v1::TraceService;

// An answer says how many spans were refused, and perhaps why.
constexpr int kMostAnswerBytes = 64 << 10;

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address, const ExportLimits& limits) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostAnswerBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // a proxy for the web is none for collectors
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, static_cast<int>(absl::ToInt64Milliseconds(limits.most_pause)));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(limits.first_pause)));
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// Whether the same may be taken later. RESOURCE_EXHAUSTED is also what an answer beyond our bound ends in.
bool MayBeRepeated(StatusCode code) {
  switch (code) {
    case StatusCode::kCancelled:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kAborted:
    case StatusCode::kOutOfRange:
    case StatusCode::kUnavailable:
    case StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

int64_t CountSpans(std::span<const std::shared_ptr<const SampledRequest>> requests) {
  int64_t spans = 0;
  for (const auto& request : requests) spans += SpanCount(*request);
  return spans;
}

}  // namespace

struct TraceExporter::Connection {
  std::unique_ptr<TraceService::Stub> stub;
  grpc::ClientContext* call = nullptr;  // under way; guarded by the exporter's mutex
};

TraceExporter::TraceExporter(const std::string& address, const ExportLimits& limits)
    : limits_(limits),
      connection_(std::make_unique<Connection>()),
      pause_(limits.first_pause),
      thread_([this, address] {
        connection_->stub = TraceService::NewStub(ChannelTo(address, limits_));
        Run();
      }) {}

TraceExporter::~TraceExporter() { Stop(absl::ZeroDuration()); }

void TraceExporter::Add(std::shared_ptr<const SampledRequest> request) {
  const int64_t spans = SpanCount(*request);
  {
    const MutexLock lock(mutex_);
    if (!stopping_ && queue_.size() < limits_.most_waiting) {
      if (queue_.empty()) first_queued_ = clock_.Now();
      queue_.push_back(std::move(request));
      waiting_.store(queue_.size(), std::memory_order_relaxed);
      // A call for each request would cost more than it brings: the thread looks at the clock meanwhile.
      if (queue_.size() == 1 || queue_.size() == limits_.most_in_call) changed_.Signal();
      return;
    }
  }
  Drop(spans);
}

void TraceExporter::Stop(absl::Duration patience) {
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(stopping_, true)) stop_at_ = clock_.Now() + patience;
    changed_.Signal();
    while (!has_ended_ && clock_.Now() < stop_at_) clock_.WaitUntil(mutex_, ended_, stop_at_);
    if (connection_->call != nullptr) connection_->call->TryCancel();
  }
  if (thread_.joinable()) thread_.join();
}

std::array<int64_t, kLabelValues<SpanOutcome>.size()> TraceExporter::spans() const {
  std::array<int64_t, kLabelValues<SpanOutcome>.size()> counts;
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = spans_[i].load(std::memory_order_relaxed);
  return counts;
}

void TraceExporter::Run() {
  Requests batch;
  batch.reserve(limits_.most_in_call);
  while (Await(batch)) Send(batch);
  const MutexLock lock(mutex_);
  for (const auto& left : queue_) batch.push_back(left);
  queue_.clear();
  waiting_ = 0;
  Count(SpanOutcome::kNotDelivered, CountSpans(batch));
  has_ended_ = true;
  ended_.SignalAll();
}

// When there is something to do, if nothing happens before.
Instant TraceExporter::WakeTime(const Requests& batch) const {
  if (stopping_) return Instant::InfinitePast();
  if (batch.empty() && queue_.empty()) return Instant::InfiniteFuture();
  const bool is_full = !batch.empty() || queue_.size() >= limits_.most_in_call;
  return std::max(retry_at_, is_full ? Instant::InfinitePast() : first_queued_ + limits_.interval);
}

// Returns once `batch` is to be sent: what was not delivered, or else what waits. False: nothing more is.
bool TraceExporter::Await(Requests& batch) {
  const MutexLock lock(mutex_);
  for (Instant wake = WakeTime(batch); wake > clock_.Now(); wake = WakeTime(batch)) {
    clock_.WaitUntil(mutex_, changed_, wake);
  }
  if (stopping_ && ((batch.empty() && queue_.empty()) || clock_.Now() >= stop_at_)) return false;
  while (batch.size() < limits_.most_in_call && !queue_.empty() && attempts_ == 0) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  first_queued_ = clock_.Now();
  waiting_.store(queue_.size(), std::memory_order_relaxed);
  return true;
}

// Empties `batch`, unless it is to be sent again.
void TraceExporter::Send(Requests& batch) {
  const int64_t spans = CountSpans(batch);
  StatusCode code = StatusCode::kInternal;
  Contain("send traces", [&] {
    code = Call(batch, spans);
    return absl::OkStatus();
  }).IgnoreError();
  if (code != StatusCode::kOk) return PauseAfter(code, batch, spans);
  batch.clear();
  attempts_ = 0;
  pause_ = limits_.first_pause;
  if (std::exchange(failing_, false)) Log(LogLevel::kInfo, "traces are delivered again");
}

StatusCode TraceExporter::Call(const Requests& batch, int64_t spans) {
  grpc::ClientContext context;
  {
    const MutexLock lock(mutex_);
    Instant end = clock_.Now() + limits_.call_time;
    if (stopping_) end = std::min(end, stop_at_);
    context.set_deadline(absl::ToChronoTime(clock_.WallNow() + (end - clock_.Now())));
    connection_->call = &context;
  }
  ExportTraceServiceResponse response;
  const grpc::Status status = connection_->stub->Export(&context, MakeExport(batch), &response);
  {
    const MutexLock lock(mutex_);
    connection_->call = nullptr;
  }
  if (!status.ok()) return static_cast<StatusCode>(status.error_code());
  const int64_t rejected = std::clamp<int64_t>(response.partial_success().rejected_spans(), 0, spans);
  Count(SpanOutcome::kRejected, rejected);
  Count(SpanOutcome::kExported, spans - rejected);
  return StatusCode::kOk;
}

void TraceExporter::PauseAfter(StatusCode failure, Requests& batch, int64_t spans) {
  ++failures_;
  if (!std::exchange(failing_, true)) {
    Log(LogLevel::kWarning, "traces are not delivered", {{"code", LabelValue(failure)}});
  }
  const MutexLock lock(mutex_);
  if (stopping_ || !MayBeRepeated(failure) || ++attempts_ >= limits_.most_attempts) {
    Count(SpanOutcome::kNotDelivered, spans);
    batch.clear();
    attempts_ = 0;
  }
  retry_at_ = clock_.Now() + pause_;
  pause_ = std::min(2 * pause_, limits_.most_pause);
}

}  // namespace swizzle
