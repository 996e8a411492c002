#include "model_loader/text/byte_level.h"

#include <array>

#include "model_loader/text/characters.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

constexpr bool IsPrintable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char32_t, 256> MakeByteCharacters() {
  std::array<char32_t, 256> characters{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) characters[byte] = IsPrintable(byte) ? static_cast<char32_t>(byte) : next++;
  return characters;
}
constexpr std::array<char32_t, 256> kByteCharacters = MakeByteCharacters();

// By character; -1: no byte's. None is beyond U+07FF.
constexpr std::array<int16_t, 0x800> MakeBytesOfCharacters() {
  std::array<int16_t, 0x800> bytes{};
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) bytes[kByteCharacters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}
constexpr std::array<int16_t, 0x800> kBytesOfCharacters = MakeBytesOfCharacters();

enum class Kind { kLetter, kNumber, kSpace, kOther };

Kind KindOf(char32_t c) {
  return IsLetter(c) ? Kind::kLetter : IsNumber(c) ? Kind::kNumber : IsWhiteSpace(c) ? Kind::kSpace : Kind::kOther;
}

size_t EndOfKind(std::string_view text, size_t at, Kind kind) {
  while (at < text.size()) {
    const CodePoint c = CodePointAt(text, at);
    if (KindOf(c.value) != kind) break;
    at += c.bytes;
  }
  return at;
}

// How many bytes the ending has that stands there; 0: none does.
size_t EndingBytes(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  return 0;
}

}  // namespace

void AppendByteCharacters(std::string_view bytes, std::string& text) {
  for (const char byte : bytes) Append(kByteCharacters[static_cast<unsigned char>(byte)], text);
}

bool AppendBytesOf(std::string_view text, std::string& bytes) {
  const size_t before = bytes.size();
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    const int byte = c.value < kBytesOfCharacters.size() ? kBytesOfCharacters[c.value] : -1;
    if (byte < 0) {
      bytes.resize(before);
      return false;
    }
    bytes += static_cast<char>(byte);
    at += c.bytes;
  }
  return true;
}

size_t ByteCharacterBytes(char byte) {
  return kByteCharacters[static_cast<unsigned char>(byte)] < 0x80 ? 1 : 2;  // none is beyond U+07FF
}

size_t WordEnd(std::string_view text, size_t begin) {
  if (const size_t bytes = EndingBytes(text.substr(begin)); bytes != 0) return begin + bytes;
  const size_t after_blank = begin + (text[begin] == ' ' ? 1 : 0);
  if (after_blank < text.size()) {
    const Kind kind = KindOf(CodePointAt(text, after_blank).value);
    if (kind != Kind::kSpace) return EndOfKind(text, after_blank, kind);
  }
  // The last character of white space goes with the word behind it, unless white space is all there is.
  const size_t end = EndOfKind(text, begin, Kind::kSpace);
  if (end == text.size()) return end;
  const size_t last = end - CodePointBefore(text, end).bytes;
  return last > begin ? last : end;
}

}  // namespace swizzle::text
