#include "model_loader/text/utf8.h"

#include <algorithm>

namespace swizzle::text {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// The bytes that begin at `at` and may begin a code point: all of one that is well-formed, else its maximal subpart.
struct Sequence {
  size_t bytes;
  bool well_formed;
};

Sequence SequenceAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t bytes = BytesOf(text[at]);
  // What the second byte has to be within; the others have the whole range.
  unsigned char least = 0x80, most = 0xBF;
  if (lead == 0xE0) least = 0xA0;
  if (lead == 0xED) most = 0x9F;
  if (lead == 0xF0) least = 0x90;
  if (lead == 0xF4) most = 0x8F;
  for (size_t i = 1; i < bytes; ++i) {
    if (at + i >= text.size() || byte(at + i) < least || byte(at + i) > most) return {i, false};
    least = 0x80;
    most = 0xBF;
  }
  return {bytes, true};
}

// Where the first ill-formed sequence begins, at `from` or later; the text's size if there is none.
size_t FindIllFormed(std::string_view text, size_t from) {
  for (size_t at = from; at < text.size();) {
    const Sequence sequence = SequenceAt(text, at);
    if (!sequence.well_formed) return at;
    at += sequence.bytes;
  }
  return text.size();
}

}  // namespace

bool IsWellFormed(std::string_view text) { return FindIllFormed(text, 0) == text.size(); }

std::string WellFormed(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = FindIllFormed(text, at);
    result.append(text.substr(at, end - at));
    if (end == text.size()) break;
    result += kReplacement;
    at = end + SequenceAt(text, end).bytes;
  }
  return result;
}

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char byte) { return IsAscii(byte); });
}

void Append(char32_t value, std::string& text) {
  const auto byte = [](char32_t bits) { return static_cast<char>(static_cast<unsigned char>(bits)); };
  if (value < 0x80) {
    text += byte(value);
  } else if (value < 0x800) {
    text += {byte(0xC0 | value >> 6), byte(0x80 | (value & 0x3F))};
  } else if (value < 0x10000) {
    text += {byte(0xE0 | value >> 12), byte(0x80 | (value >> 6 & 0x3F)), byte(0x80 | (value & 0x3F))};
  } else {
    text += {byte(0xF0 | value >> 18), byte(0x80 | (value >> 12 & 0x3F)), byte(0x80 | (value >> 6 & 0x3F)),
             byte(0x80 | (value & 0x3F))};
  }
}

}  // namespace swizzle::text
