// What became of files that are read again: who changes them learns it from the log and from metrics. Header only.
#ifndef SWIZZLE_SERVER_SECURITY_RELOADS_H_
#define SWIZZLE_SERVER_SECURITY_RELOADS_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "kernels/base/status.h"

namespace swizzle {

// What one look at the files found: neither, unless there is something to say.
struct Reload {
  bool replaced = false;
  Status error;  // what is there cannot be used; what was there before is used on
};

struct ReloadCounts {
  int64_t replaced = 0, failed = 0;
};

// Says each error once, when it has been there for two looks: files are not replaced all at once. Thread-compatible.
class ReloadLog {
 public:
  Reload Replaced() {
    Unchanged();
    ++counts_.replaced;
    return {.replaced = true, .error = {}};
  }
  Reload Failed(const Status& error) {
    const bool again = std::exchange(waiting_, error) == error;
    if (!again || said_ == error) return {};
    said_ = error;
    ++counts_.failed;
    return {.replaced = false, .error = error};
  }
  // What is there is what is used.
  Reload Unchanged() {
    waiting_.reset();
    said_.reset();
    return {};
  }
  // Whether what is there could not be used when it was looked at last.
  bool failing() const { return waiting_.has_value(); }
  const ReloadCounts& counts() const { return counts_; }

 private:
  std::optional<Status> waiting_, said_;
  ReloadCounts counts_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SECURITY_RELOADS_H_
