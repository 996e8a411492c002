// Values of labels, as enums: what is recorded by one of them cannot be misspelt.
#ifndef SWIZZLE_SERVER_TELEMETRY_LABELS_H_
#define SWIZZLE_SERVER_TELEMETRY_LABELS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace swizzle {

// Why a batch was formed.
enum class BatchReason : uint8_t {
  kFull,       // no row or token is left, or the next request does not fit
  kIdle,       // an executor was idle and no delay was asked for
  kDelay,      // the oldest request has waited for max_delay
  kPreferred,  // a preferred size was reached before max_delay
  kSingle,     // batching is off
};
inline constexpr std::array<std::string_view, 5> kBatchReasonNames = {"full", "idle", "delay", "preferred", "single"};
inline std::string_view BatchReasonName(BatchReason reason) { return kBatchReasonNames[static_cast<size_t>(reason)]; }

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_LABELS_H_
