#include "model_loader/text/pattern.h"

#include <unicode/uregex.h>
#include <unicode/ustring.h>

#include <utility>

#include "model_loader/files/printable_name.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

// ICU counts in units of about a millisecond, for each match.
constexpr int32_t kMostTime = 2000;
constexpr int32_t kMostStackBytes = 64 << 20;
constexpr size_t kMostExpressionBytes = 1 << 16;

// What stands for an escape of Oniguruma's, by itself or within brackets; empty if it is the same to ICU.
std::string_view Translation(char escaped) {
  switch (escaped) {
    case 's':
      return "\\p{White_Space}";
    case 'S':
      return "\\P{White_Space}";
    case 'd':
      return "\\p{Nd}";
    case 'D':
      return "\\P{Nd}";
    case 'w':
      return "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]";
    case 'W':
      return "[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]";
    case 'h':
      return "[0-9a-fA-F]";
    case 'H':
      return "[^0-9a-fA-F]";
    default:
      return "";
  }
}

StatusOr<std::string> Translated(const std::string& expression) {
  std::string result;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] == '\\' && i + 1 < expression.size()) {
      const std::string_view translation = Translation(expression[++i]);
      result += translation.empty() ? expression.substr(i - 1, 2) : std::string(translation);
      continue;
    }
    result += expression[i];
    if (expression.compare(i, 2, "(?") != 0) continue;
    // To Oniguruma, m lets a dot match a line feed.
    const size_t flags_end = expression.find_first_not_of("imxsadu-", i + 2);
    if (flags_end == i + 2 || flags_end == std::string::npos) continue;
    const std::string flags = expression.substr(i + 2, flags_end - i - 2);
    if (flags.find_first_not_of("i-") != std::string::npos) {
      return Unimplemented("the regular expression ", QuotedName(expression), " has the flags ", QuotedName(flags),
                           "; only i is supported");
    }
  }
  return result;
}

struct Closer {
  void operator()(URegularExpression* expression) const { uregex_close(expression); }
};
using OwnedExpression = std::unique_ptr<URegularExpression, Closer>;

// REQUIRES: it is well-formed. An empty string that is not text's stands for more than ICU can count.
StatusOr<std::u16string> ToUtf16(std::string_view text) {
  constexpr size_t kMost = INT32_MAX / 2;
  if (text.size() > kMost) return InvalidArgument("a text of ", text.size(), " bytes is too long; ", kMost, " may be");
  std::u16string result(text.size(), u'\0');  // no code point takes more units than bytes
  int32_t length = 0;
  UErrorCode error = U_ZERO_ERROR;
  u_strFromUTF8(result.data(), static_cast<int32_t>(result.size()), &length, text.data(),
                static_cast<int32_t>(text.size()), &error);
  SWIZZLE_CHECK(U_SUCCESS(error));
  result.resize(static_cast<size_t>(length));
  return result;
}

// Turns offsets in UTF-16 into such in UTF-8, each no less than the one before.
class OffsetWalk {
 public:
  explicit OffsetWalk(std::string_view text) : text_(text) {}

  size_t To(size_t units) {
    while (units_ < units) {
      const size_t bytes = BytesOf(text_[bytes_]);
      bytes_ += bytes;
      units_ += bytes == 4 ? 2 : 1;
    }
    return bytes_;
  }

 private:
  const std::string_view text_;
  size_t bytes_ = 0, units_ = 0;
};

void FindLiteral(std::string_view literal, std::string_view text, std::vector<Range>& matches) {
  if (literal.empty()) return;
  for (size_t at = text.find(literal); at != text.npos; at = text.find(literal, at + literal.size())) {
    matches.push_back({at, at + literal.size()});
  }
}

}  // namespace

Pattern Pattern::OfLiteral(std::string text) {
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

StatusOr<Pattern> Pattern::Of(const std::string& expression) {
  if (expression.size() > kMostExpressionBytes) {
    return InvalidArgument("a regular expression has ", expression.size(), " bytes; at most ", kMostExpressionBytes,
                           " are supported");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::string translated, Translated(expression));
  SWIZZLE_ASSIGN_OR_RETURN(const std::u16string units, ToUtf16(translated));
  UErrorCode error = U_ZERO_ERROR;
  UParseError place;
  // As Oniguruma has it, ^ and $ are those of lines, and a line ends with a line feed alone.
  OwnedExpression compiled(uregex_open(units.data(), static_cast<int32_t>(units.size()),
                                       UREGEX_MULTILINE | UREGEX_UNIX_LINES, &place, &error));
  if (U_FAILURE(error)) {
    return InvalidArgument("the regular expression ", QuotedName(expression), " is none that ICU knows (",
                           u_errorName(error), " at character ", place.offset, ")");
  }
  Pattern pattern;
  pattern.expression_ = std::shared_ptr<const URegularExpression>(compiled.release(), Closer());
  return pattern;
}

Status Pattern::FindAll(std::string_view text, std::vector<Range>& matches) const {
  if (expression_ == nullptr) {
    FindLiteral(literal_, text, matches);
    return {};
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::u16string units, ToUtf16(text));
  UErrorCode error = U_ZERO_ERROR;
  const OwnedExpression matcher(uregex_clone(expression_.get(), &error));
  uregex_setTimeLimit(matcher.get(), kMostTime, &error);  // which a clone does not inherit
  uregex_setStackLimit(matcher.get(), kMostStackBytes, &error);
  uregex_setText(matcher.get(), units.data(), static_cast<int32_t>(units.size()), &error);
  OffsetWalk bytes(text);
  int32_t last_end = -1;
  while (uregex_findNext(matcher.get(), &error) && U_SUCCESS(error)) {
    const int32_t begin = uregex_start(matcher.get(), 0, &error), end = uregex_end(matcher.get(), 0, &error);
    if (begin == end && begin == last_end) continue;  // nothing, right behind the match before
    last_end = end;
    const size_t first = bytes.To(static_cast<size_t>(begin));
    matches.push_back({first, bytes.To(static_cast<size_t>(end))});
  }
  if (U_SUCCESS(error)) return {};
  return InvalidArgument("the tokenizer's regular expression takes too long, or too much memory, on this text (",
                         u_errorName(error), "); send a shorter one");
}

}  // namespace swizzle::text
