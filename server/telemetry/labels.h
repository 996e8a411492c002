// Values of labels, as enums: what is recorded by one of them can't be misspelt, nor dropped because nobody knows it.
// kLabelValues<Enum> has their names, in the enum's order. To add a value, add it to both.
#ifndef SWIZZLE_SERVER_TELEMETRY_LABELS_H_
#define SWIZZLE_SERVER_TELEMETRY_LABELS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

// Why a batch was formed.
enum class BatchReason : uint8_t {
  kFull,       // no row or token is left, or the next request does not fit
  kIdle,       // an executor was idle and no delay was asked for
  kDelay,      // the oldest request has waited for max_delay
  kPreferred,  // a preferred size was reached before max_delay
  kSingle,     // batching is off
  kRetry,      // one request alone, after the batch that it was in has failed
};

// Why a request never ran.
enum class Rejection : uint8_t {
  kQueueFull,
  kTimeout,
  kCancelled,
  kDraining,
  kExpectedWait,     // it would have waited longer than the queue allows, or than until its deadline
  kConnectionShare,  // its connection has as much of the queue as one may
};

// What a cache of answers had for a request.
enum class CacheLookup : uint8_t { kHit, kMiss };

// Why a call ended before it reached a model, or its response a client.
enum class CallRefusal : uint8_t {
  kMalformed,         // no message of the protocol
  kTooLarge,          // beyond the limits of the server or the model
  kInflightBytes,     // no room for it
  kSlowReader,        // its response was not read in time
  kUnauthenticated,   // it showed no token, or none that there is
  kPermissionDenied,  // its token does not allow it, or nobody may here
};

// Why a connection was closed.
enum class ConnectionRefusal : uint8_t {
  kLimit,   // there were as many as may be
  kFiles,   // there was no file descriptor
  kGreedy,  // it had more calls open, or cancelled more, than a client may
  kSlow,    // it had begun a request, and did not end it
};

// Which limit a connection had reached that ended by itself.
enum class ConnectionEnd : uint8_t {
  kHandshake,  // no HTTP/2 had begun in the time for it
  kAge,        // it had the age at which gRPC asks its client to connect anew
  kIdle,       // it had no call for as long as one may have none
  kKeepalive,  // its client answered no ping
  kOther,      // none: its client ended it, or it broke
};

// What became of files that were replaced while the server runs.
enum class ReloadOutcome : uint8_t {
  kReplaced,  // what they hold is used
  kFailed,    // it cannot be; what they held before is used on
};

// Files that are read again when they change.
enum class WatchedFiles : uint8_t { kTls, kTokens };

// Whom memory is promised to.
enum class MemoryUse : uint8_t {
  kModels,    // to executors, at their largest batches
  kRequests,  // what clients may make the server hold
};

// How far a request of a stream is that was read.
enum class StreamedRequest : uint8_t {
  kRunning,  // it is not over
  kUnread,   // it is, but its answers, or those before it, are not read
};

// Calls as gRPC counts them.
enum class CallState : uint8_t { kStarted, kSucceeded, kFailed };

// Where a request's time goes.
enum class Stage : uint8_t { kQueue, kInput, kCompute, kOutput };

// How the bytes of a model's weights are counted.
enum class WeightBytes : uint8_t {
  kDense,   // had they been stored so
  kStored,  // in the model's formats
  kDevice,  // as the kernels hold them
};

// How far the tuning of a model's plan is.
enum class TuningState : uint8_t {
  kOff,        // nothing is measured, by configuration, or because the model has nothing to choose
  kWaiting,    // for its turn, or until requests leave time
  kMeasuring,  // now
  kDone,       // all is known, or the budget is spent
  kFailed,     // the plan that was loaded runs on
};

// What became of a line of the request log.
enum class LineOutcome : uint8_t { kWritten, kDropped };

// What became of a trace's spans.
enum class SpanOutcome : uint8_t {
  kExported,      // the collector has them
  kQueueFull,     // there was no room for them
  kNotDelivered,  // the collector was not there, or did not answer
  kRejected,      // it did not want them
};

// Why a request failed, as Triton tells it.
enum class TritonFailure : uint8_t { kRejected, kCanceled, kBackend, kOther };

template <typename Value>
inline constexpr bool kLabelValues = false;

template <>
inline constexpr std::array<std::string_view, 6> kLabelValues<BatchReason> = {"full",      "idle",   "delay",
                                                                              "preferred", "single", "retry"};
template <>
inline constexpr std::array<std::string_view, 6> kLabelValues<Rejection> = {
    "queue_full", "timeout", "cancelled", "draining", "expected_wait", "connection_share"};
template <>
inline constexpr std::array<std::string_view, 2> kLabelValues<CacheLookup> = {"hit", "miss"};
template <>
inline constexpr std::array<std::string_view, 6> kLabelValues<CallRefusal> = {
    "malformed", "too_large", "inflight_bytes", "slow_reader", "unauthenticated", "permission_denied"};
template <>
inline constexpr std::array<std::string_view, 4> kLabelValues<ConnectionRefusal> = {"limit", "files", "greedy",
                                                                                    "slow_sender"};
template <>
inline constexpr std::array<std::string_view, 5> kLabelValues<ConnectionEnd> = {"handshake", "age", "idle", "keepalive",
                                                                                "other"};
template <>
inline constexpr std::array<std::string_view, 2> kLabelValues<ReloadOutcome> = {"replaced", "failed"};
template <>
inline constexpr std::array<std::string_view, 2> kLabelValues<WatchedFiles> = {"tls", "tokens"};
template <>
inline constexpr std::array<std::string_view, 2> kLabelValues<MemoryUse> = {"models", "requests"};
template <>
inline constexpr std::array<std::string_view, 2> kLabelValues<StreamedRequest> = {"running", "unread"};
template <>
inline constexpr std::array<std::string_view, 3> kLabelValues<CallState> = {"started", "succeeded", "failed"};
template <>
inline constexpr std::array<std::string_view, 4> kLabelValues<Stage> = {"queue", "input", "compute", "output"};
template <>
inline constexpr std::array<std::string_view, 3> kLabelValues<WeightBytes> = {"dense", "stored", "device"};
template <>
inline constexpr std::array<std::string_view, 5> kLabelValues<TuningState> = {"off", "waiting", "measuring", "done",
                                                                              "failed"};
template <>
inline constexpr std::array<std::string_view, 2> kLabelValues<LineOutcome> = {"written", "dropped"};
template <>
inline constexpr std::array<std::string_view, 4> kLabelValues<SpanOutcome> = {"exported", "queue_full", "not_delivered",
                                                                              "rejected"};
template <>
inline constexpr std::array<std::string_view, 4> kLabelValues<TritonFailure> = {"REJECTED", "CANCELED", "BACKEND",
                                                                                "OTHER"};
// gRPC's canonical codes, as absl::StatusCodeToString writes them.
template <>
inline constexpr std::array<std::string_view, 17> kLabelValues<StatusCode> = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

template <typename Value>
constexpr std::string_view LabelValue(Value value) {
  return kLabelValues<Value>[static_cast<size_t>(value)];
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_LABELS_H_
