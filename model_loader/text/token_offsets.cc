#include "model_loader/text/token_offsets.h"

#include <algorithm>

#include "model_loader/text/characters.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

constexpr char32_t kByteOfBlank = 0x120;  // byte_level.h

bool IsBlank(char32_t c) { return c == kByteOfBlank || IsWhiteSpace(c); }

void Add(std::string_view token, Range bytes, TextTokenIds& tokens) {
  TokenOffsets offsets{bytes};
  for (size_t at = 0; at < token.size() && IsBlank(CodePointAt(token, at).value); at += BytesOf(token[at])) {
    ++offsets.leading;
  }
  for (size_t end = token.size(); end > 0; ++offsets.trailing) {
    const CodePoint last = CodePointBefore(token, end);
    if (!IsBlank(last.value)) break;
    end -= last.bytes;
  }
  tokens.offsets.push_back(offsets);
}

}  // namespace

void AddOffsets(const Pieces& pieces, const Piece& piece, Range place, size_t part, TextTokenIds& tokens) {
  const Range in_all = {piece.begin + place.begin, piece.begin + place.end};
  Range bytes = {part, part};
  if (in_all.begin < in_all.end) {
    const size_t begin = pieces.origins[in_all.begin].begin;
    bytes = {part + begin, part + std::max(begin, pieces.origins[in_all.end - 1].end)};
  }
  Add(std::string_view(pieces.text).substr(in_all.begin, in_all.end - in_all.begin), bytes, tokens);
}

void AddOffsets(std::string_view text, const Piece& piece, TextTokenIds& tokens) {
  Add(text.substr(piece.begin, piece.end - piece.begin), {piece.begin, piece.end}, tokens);
}

void ToCharacters(std::string_view text, TextTokenIds& tokens) {
  std::vector<size_t> before(text.size() + 1);  // characters before a byte
  for (size_t at = 0; at < text.size(); ++at) before[at + 1] = before[at] + (BeginsCharacter(text[at]) ? 1 : 0);
  for (TokenOffsets& its : tokens.offsets) its.characters = {before[its.characters.begin], before[its.characters.end]};
}

void FinishOffsets(const Template& layout, const Truncation& truncation, TextTokenIds& tokens) {
  const auto gone = std::ssize(tokens.offsets) - std::ssize(tokens.ids);
  const auto begin = truncation.from_left ? tokens.offsets.begin() : tokens.offsets.end() - gone;
  tokens.offsets.erase(begin, begin + gone);
  if (!layout.trims_offsets) return;
  for (size_t i = 0; i < tokens.offsets.size(); ++i) {
    TokenOffsets& its = tokens.offsets[i];
    Range& range = its.characters;
    if (its.leading > 0) {
      const bool is_added = its.leading == 1 && layout.keeps_first_blank && (i == 0 || range.begin == 0);
      range.begin = std::min(range.begin + (is_added ? 0 : its.leading), range.end);
    }
    if (its.trailing > 0 && range.end >= its.trailing) range.end = std::max(range.end - its.trailing, range.begin);
  }
}

}  // namespace swizzle::text
