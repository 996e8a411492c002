// The normalisation that a sentencepiece model brings along (precompiled_charsmap): which beginnings of a text to
// replace, and by what. Immutable; const members are thread-safe.
//
// It is, all numbers little-endian and of 4 bytes: the number of bytes of a double array; the double array, a unit of 4
// bytes each, as Darts-clone lays it out (https://github.com/s-yata/darts-clone); the replacements, each ended by a
// zero byte. A value of the array is where in these its replacement begins. A unit has its label in bits 0 to 7 and 31,
// whether a key ends at it in bit 8, and its children's offset in bits 10 to 30, times 256 if bit 9 is set. A unit that
// is a value has it in bits 0 to 30.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_CHARSMAP_H_
#define SWIZZLE_MODEL_LOADER_TEXT_CHARSMAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle::text {

class Charsmap {
 public:
  // INVALID_ARGUMENT if the bytes are not as above.
  static StatusOr<Charsmap> Parse(std::string_view bytes);

  // What to put for the first `bytes` of a text.
  struct Replacement {
    size_t bytes;
    std::string_view text;
  };
  std::optional<Replacement> Shortest(std::string_view text) const { return Find(text, /*longest=*/false); }
  std::optional<Replacement> Longest(std::string_view text) const { return Find(text, /*longest=*/true); }

 private:
  std::optional<Replacement> Find(std::string_view text, bool longest) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  // ends with a zero byte
};

// The bytes that `text` encodes (RFC 4648, section 4). INVALID_ARGUMENT if it does not.
StatusOr<std::string> DecodeBase64(std::string_view text);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_CHARSMAP_H_
