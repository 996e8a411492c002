// How a tokeniser splits a text into what its model takes one by one: the pre_tokenizers of tokenizer.json. Immutable;
// thread-safe. Offsets are in bytes.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_PRE_TOKENIZERS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_PRE_TOKENIZERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/text/pattern.h"

namespace swizzle::text {

// Part of a text, not empty.
struct Piece {
  static constexpr int32_t kNoToken = -1;

  size_t begin, end;
  int32_t token = kNoToken;  // an added token, which nothing splits
  bool from_start = false;   // its first character stems from the first of what is encoded
};

// A text in pieces, from left to right; what no piece has was left out. Well-formed, and so is each.
struct Pieces {
  std::string text;
  std::vector<Piece> list;
  std::vector<Range> origins = {};  // as NormalText has them
  bool traced = false;

  std::string_view Of(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Errors are those of Pattern::FindAll.
  virtual Status Apply(Pieces& pieces) const = 0;
};
using OwnedPreTokenizer = std::unique_ptr<const PreTokenizer>;

// What becomes of what a piece is split at. Of "the-final--countdown" at "-":
enum class Delimiters {
  kRemoved,             // the final countdown
  kIsolated,            // the - final - - countdown
  kMergedWithPrevious,  // the- final- - countdown
  kMergedWithNext,      // the -final - -countdown
  kContiguous,          // the - final -- countdown
};

enum class PrependScheme { kNever, kFirst, kAlways };
struct MetaspaceOptions {
  std::string replacement = "\xE2\x96\x81";  // one character, which takes the place of blanks: U+2581
  PrependScheme prepend = PrependScheme::kAlways;
  bool split = true;  // before each
};

OwnedPreTokenizer MakeBertPreTokenizer();
OwnedPreTokenizer MakeByteLevel(bool add_prefix_space, bool use_regex);  // see byte_level.h
OwnedPreTokenizer MakeWhitespace();  // words, and what stands between them and blanks
OwnedPreTokenizer MakeWhitespaceSplit();
OwnedPreTokenizer MakeMetaspace(MetaspaceOptions options);
// At what the pattern matches; if `inverted`, at what it doesn't.
OwnedPreTokenizer MakeSplit(Pattern pattern, Delimiters delimiters, bool inverted);
OwnedPreTokenizer MakePunctuation(Delimiters delimiters);
OwnedPreTokenizer MakeDigits(bool individual);
OwnedPreTokenizer MakeCharDelimiterSplit(char32_t delimiter);
OwnedPreTokenizer MakePreTokenizerSequence(std::vector<OwnedPreTokenizer> parts);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_PRE_TOKENIZERS_H_
