// Where tokens stand in a text, as the `tokenizers` library says it: from what normalizers, pre-tokenizers and models
// keep of where each byte stems from. Internal to model_loader/text. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_TOKEN_OFFSETS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_TOKEN_OFFSETS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model_loader/text/pattern.h"
#include "model_loader/text/pre_tokenizers.h"
#include "model_loader/text/template.h"

namespace swizzle::text {

struct TokenOffsets {
  Range characters;                  // of the text, at first in bytes
  size_t leading = 0, trailing = 0;  // how many white spaces it begins and ends with
};

// The tokens of one text.
struct TextTokenIds {
  std::vector<int32_t> ids = {};
  std::vector<TokenOffsets> offsets = {};  // as many, if
  bool traced = false;
};

// Of a token that stands at `place` in a piece of what became of the text's part from `part` on, in bytes.
void AddOffsets(const Pieces& pieces, const Piece& piece, Range place, size_t part, TextTokenIds& tokens);
// Of a token that is a piece of the text as it came.
void AddOffsets(std::string_view text, const Piece& piece, TextTokenIds& tokens);

// Makes characters of the text of bytes.
void ToCharacters(std::string_view text, TextTokenIds& tokens);

// Leaves those of the ids that truncation left, without white space where the template says so.
void FinishOffsets(const Template& layout, const Truncation& truncation, TextTokenIds& tokens);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_TOKEN_OFFSETS_H_
