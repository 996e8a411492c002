// Levels of a load, as perf_analyzer spells them.
#ifndef SWIZZLE_CLIENT_CLI_RANGE_H_
#define SWIZZLE_CLIENT_CLI_RANGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace swizzle::client {

// "START", "START:END" or "START:END:STEP": START and every STEP (1) more, up to END and including it. A usage error,
// naming the flag, where it is none such, is not from `least` to `most`, has more than 1000 levels, or, where they have
// to be `whole`, fractions.
absl::StatusOr<std::vector<double>> ParseRange(const std::string& flag, const std::string& text, double least,
                                               double most, bool whole);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_RANGE_H_
