// Checks of single values of config.pbtxt.
#ifndef SWIZZLE_SERVER_CONFIG_CONFIG_CHECKS_H_
#define SWIZZLE_SERVER_CONFIG_CONFIG_CHECKS_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "kernels/base/status.h"

namespace swizzle {

// INVALID_ARGUMENT, naming the field, for a number out of [low, high].
template <typename Number>
Status CheckRange(std::string_view field, Number value, int64_t low, int64_t high) {
  if (std::cmp_greater_equal(value, low) && std::cmp_less_equal(value, high)) return absl::OkStatus();
  return InvalidArgument("'", field, "' is ", value, "; it must be from ", low, " to ", high);
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_CONFIG_CHECKS_H_
