// Regular expressions of tokenizer.json, which are written for Oniguruma, by ICU.
//
// What both have but mean differently is translated: \s, \w, \d and \h. What only one has is an error when the pattern
// is compiled. Immutable; const members are thread-safe. Offsets are in bytes.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_PATTERN_H_
#define SWIZZLE_MODEL_LOADER_TEXT_PATTERN_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

struct URegularExpression;

namespace swizzle::text {

struct Range {
  size_t begin, end;
};

class Pattern {
 public:
  // That of a regular expression. INVALID_ARGUMENT naming it if it is none, UNIMPLEMENTED for inline flags that mean
  // something else to ICU. REQUIRES: it is well-formed UTF-8.
  static StatusOr<Pattern> Of(const std::string& expression);
  // That of one text.
  static Pattern OfLiteral(std::string text);

  // Appends where it matches, from left to right, none within another. INVALID_ARGUMENT if this takes more time or
  // memory than a pattern for tokens should. REQUIRES: the text is well-formed.
  Status FindAll(std::string_view text, std::vector<Range>& matches) const;

 private:
  Pattern() = default;

  std::string literal_;  // where there is no expression
  std::shared_ptr<const URegularExpression> expression_;
};

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_PATTERN_H_
