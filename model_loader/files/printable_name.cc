#include "model_loader/files/printable_name.h"

#include <cstddef>

namespace swizzle {
namespace {

constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxQuotedBytes = 128;  // messages travel in headers of limited size

// The bytes `byte` announces for its UTF-8 sequence; 0 if it starts none.
size_t SequenceLength(unsigned char byte) {
  if (byte < 0x80) return 1;
  if (byte >= 0xC2 && byte < 0xE0) return 2;
  if (byte >= 0xE0 && byte < 0xF0) return 3;
  if (byte >= 0xF0 && byte < 0xF5) return 4;
  return 0;
}

// Overlong forms, surrogates and what lies past U+10FFFF show in the second byte.
bool IsSecondByte(unsigned char first, unsigned char second) {
  if (first == 0xE0) return second >= 0xA0;
  if (first == 0xED) return second < 0xA0;
  if (first == 0xF0) return second >= 0x90;
  if (first == 0xF4) return second < 0x90;
  return true;
}

bool IsPrintableUtf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const unsigned char first = static_cast<unsigned char>(text[i]);
    const size_t length = SequenceLength(first);
    if (length == 0 || i + length > text.size() || first < 0x20 || first == 0x7F) return false;
    for (size_t j = 1; j < length; ++j) {
      const unsigned char byte = static_cast<unsigned char>(text[i + j]);
      if ((byte & 0xC0) != 0x80 || (j == 1 && !IsSecondByte(first, byte))) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace

Status CheckName(const std::string& name, const std::string& what) {
  if (name.size() > kMaxNameBytes) {
    return InvalidArgument(what, " has a name of ", name.size(), " bytes; the limit is ", kMaxNameBytes);
  }
  if (!IsPrintableUtf8(name)) return InvalidArgument(what, " has a name that is not printable UTF-8");
  return {};
}

std::string QuotedName(std::string_view name) {
  std::string shown(name.substr(0, kMaxQuotedBytes));
  if (!IsPrintableUtf8(shown)) {
    for (char& c : shown) c = c >= 0x20 && c < 0x7F ? c : '?';
  }
  return Concat("'", shown, name.size() > kMaxQuotedBytes ? "...'" : "'");
}

}  // namespace swizzle
