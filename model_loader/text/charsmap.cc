#include "model_loader/text/charsmap.h"

#include <algorithm>

#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

constexpr size_t kMostReplacementBytes = 1024;  // the longest of Unicode's compatibility forms has 33

uint32_t Load(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

bool KeyEnds(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
uint32_t Offset(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }
uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFF; }

bool IsBoundary(std::string_view text, size_t at) { return at == text.size() || BeginsCharacter(text[at]); }

int Base64Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

StatusOr<Charsmap> Charsmap::Parse(std::string_view bytes) {
  const auto malformed = [](const char* what) {
    return InvalidArgument("its precompiled_charsmap is damaged: ", what, "; get the file again");
  };
  if (bytes.size() < 4) return malformed("it is shorter than its header");
  const size_t array_bytes = Load(bytes, 0);
  if (array_bytes > bytes.size() - 4) return malformed("its table is longer than itself");
  if (array_bytes % 4 != 0 || array_bytes == 0) return malformed("its table is no whole number of units");
  Charsmap map;
  map.units_.reserve(array_bytes / 4);
  for (size_t at = 4; at < 4 + array_bytes; at += 4) map.units_.push_back(Load(bytes, at));
  map.replacements_ = bytes.substr(4 + array_bytes);
  map.replacements_ += '\0';
  if (!IsWellFormed(map.replacements_)) return malformed("its replacements are no UTF-8");
  for (size_t begin = 0, end; begin < map.replacements_.size(); begin = end + 1) {
    end = map.replacements_.find('\0', begin);
    if (end - begin > kMostReplacementBytes) return malformed("a replacement is too long");
  }
  return map;
}

std::optional<Charsmap::Replacement> Charsmap::Find(std::string_view text, bool longest) const {
  std::optional<Replacement> found;
  uint32_t at = Offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t label = static_cast<unsigned char>(text[i]);
    at ^= label;
    if (label == 0 || at >= units_.size() || Label(units_[at]) != label) break;
    const uint32_t unit = units_[at];
    at ^= Offset(unit);
    if (!KeyEnds(unit) || at >= units_.size() || !IsBoundary(text, i + 1)) continue;
    const size_t begin = Value(units_[at]);
    if (begin >= replacements_.size() || !IsBoundary(replacements_, begin)) continue;
    found = {i + 1, std::string_view(replacements_.data() + begin)};
    if (!longest) break;
  }
  return found;
}

StatusOr<std::string> DecodeBase64(std::string_view text) {
  const size_t digits = std::min(text.find('='), text.size());
  const size_t padding = text.size() - digits;
  const bool padded = padding <= 2 && text.size() % 4 == 0 && text.find_first_not_of('=', digits) == text.npos;
  std::string bytes;
  bytes.reserve(digits * 3 / 4);
  uint32_t bits = 0;
  for (size_t i = 0; padded && i < digits; ++i) {
    const int digit = Base64Digit(text[i]);
    if (digit < 0) return InvalidArgument("its precompiled_charsmap is no Base64; get the file again");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    const size_t whole_bytes = (i + 1) * 6 / 8, spare = (i + 1) * 6 % 8;
    if (whole_bytes > bytes.size()) bytes += static_cast<char>(bits >> spare & 0xFF);
  }
  if (!padded) return InvalidArgument("its precompiled_charsmap is no Base64; get the file again");
  return bytes;
}

}  // namespace swizzle::text
