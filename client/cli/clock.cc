#include "client/cli/clock.h"

#include "absl/time/clock.h"

namespace swizzle::client {

absl::Time WallNow() { return absl::Now(); }

}  // namespace swizzle::client
