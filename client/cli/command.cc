#include "client/cli/command.h"

#include "absl/strings/cord.h"

namespace swizzle::client {
namespace {
constexpr char kUsage[] = "swizzle.dev/usage";
}  // namespace

absl::Status AsUsageError(const absl::Status& status) {
  absl::Status marked = status;
  marked.SetPayload(kUsage, absl::Cord());
  return marked;
}

absl::Status UsageError(const std::string& message) { return AsUsageError(absl::InvalidArgumentError(message)); }

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  if (IsUnreachable(status)) return kExitUnreachable;
  return status.GetPayload(kUsage).has_value() ? kExitUsage : kExitRefused;
}

}  // namespace swizzle::client
