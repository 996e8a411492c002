// What tokenisers ask of a character, as the `tokenizers` library answers it. Free functions, thread-safe.
//
// That library asks tables of different versions of Unicode: what a function says of its version holds of characters
// that were added later, too, which it does not know. Where there is none, ICU's own version counts.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_CHARACTERS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_CHARACTERS_H_

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle::text {

bool IsWhiteSpace(char32_t c);        // the property White_Space
bool IsWord(char32_t c);              // \w of UTS #18: letters, marks, decimal digits, connectors, joiners
bool IsLetter(char32_t c);            // category L
bool IsNumber(char32_t c);            // categories Nd, Nl and No
bool IsPunctuation(char32_t c);       // category P of Unicode 8, and ASCII's symbols
bool IsControl(char32_t c);           // categories Cc, Cf and Co of Unicode 8, but tab, line feed and carriage return
bool IsNonspacingMark(char32_t c);    // category Mn of Unicode 8
bool IsCombiningMark(char32_t c);     // category M of Unicode 9
bool IsChineseCharacter(char32_t c);  // what BERT puts spaces around: CJK's ideographs, no kana and no hangul

// Appends `c` in lower case, by itself: a sigma that ends a word is no special case.
void AppendLowerCase(char32_t c, std::string& text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// `text` in a normal form of Unicode 9. INVALID_ARGUMENT for one of more than 2 GiB, INTERNAL where ICU lacks its data.
// REQUIRES: it is well-formed.
StatusOr<std::string> Normalised(std::string_view text, NormalForm form);

// A character of a text that was made of another, from left to right: by how many characters the text grew there. 0: it
// is in the place of the next one; 1: it was added; -2: it is in the place of the next one and of two behind that.
struct Change {
  char32_t value;
  int64_t growth = 0;
};
// The same by characters. What is put in order afterwards is in the places of what was there in any order.
StatusOr<std::vector<Change>> ChangesTo(std::string_view text, NormalForm form);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_CHARACTERS_H_
