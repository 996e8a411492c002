#include "client/cli/range.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"

namespace swizzle::client {
namespace {
constexpr double kMaxLevels = 1000;
constexpr double kRounding = 1e-9;  // an END that is some STEPs away is reached
}  // namespace

absl::StatusOr<std::vector<double>> ParseRange(const std::string& flag, const std::string& text, double least,
                                               double most, bool whole) {
  std::vector<double> numbers;
  for (const auto& word : absl::StrSplit(text, ':')) {
    double number = 0;
    if (!absl::SimpleAtod(word, &number) || !std::isfinite(number) || numbers.size() == 3) {
      return UsageError(absl::StrCat(flag, " ", text, " is not of the form START:END:STEP"));
    }
    if (whole && number != std::floor(number)) {
      return UsageError(absl::StrCat(flag, " ", text, ": ", number, " is no whole number"));
    }
    numbers.push_back(number);
  }
  const double start = numbers[0], end = numbers.size() > 1 ? numbers[1] : start;
  const double step = numbers.size() > 2 ? numbers[2] : 1;
  if (start < least || end > most) {
    return UsageError(absl::StrCat(flag, " ", text, " has to be from ", least, " to ", most));
  }
  if (end < start) return UsageError(absl::StrCat(flag, " ", text, " ends before it starts"));
  if (step <= 0) return UsageError(absl::StrCat(flag, " ", text, ": the step has to be more than 0"));
  const double steps = std::floor((end - start) / step + kRounding);
  if (steps >= kMaxLevels) return UsageError(absl::StrCat(flag, " ", text, " has more than ", kMaxLevels, " levels"));
  std::vector<double> levels;
  for (int i = 0; i <= static_cast<int>(steps); ++i) levels.push_back(start + i * step);
  return levels;
}

}  // namespace swizzle::client
