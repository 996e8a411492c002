// UTF-8: code points of text, and text that is certainly well-formed. Free functions, thread-safe. Offsets are in
// bytes.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_UTF8_H_
#define SWIZZLE_MODEL_LOADER_TEXT_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace swizzle::text {

// Whether `text` is well-formed, as table 3-7 of the Unicode Standard says: no surrogates, nothing beyond U+10FFFF, no
// longer forms than need be.
bool IsWellFormed(std::string_view text);

// `text` with U+FFFD for each maximal subpart of what is ill-formed, as the Unicode Standard recommends (section 3.9),
// and as Python's errors='replace' and Rust's from_utf8_lossy decode.
std::string WellFormed(std::string_view text);

inline bool IsAscii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }
bool IsAscii(std::string_view text);

// How many bytes the code point has that begins with `lead`. REQUIRES: `lead` begins one, in well-formed text.
inline size_t BytesOf(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// Whether a code point begins with this byte of well-formed text.
inline bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

struct CodePoint {
  char32_t value;
  size_t bytes;
};

// REQUIRES: a code point of well-formed text begins at `at`.
inline CodePoint CodePointAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  switch (BytesOf(text[at])) {
    case 1:
      return {byte(0), 1};
    case 2:
      return {(byte(0) & 0x1F) << 6 | (byte(1) & 0x3F), 2};
    case 3:
      return {(byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
    default:
      return {(byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
  }
}

// The one that ends at `end`. REQUIRES: 0 < end, and likewise.
inline CodePoint CodePointBefore(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (!BeginsCharacter(text[at])) --at;
  return CodePointAt(text, at);
}

// REQUIRES: `value` is a code point, and no surrogate.
void Append(char32_t value, std::string& text);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_UTF8_H_
