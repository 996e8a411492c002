#include "model_loader/text/characters.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

UChar32 Icu(char32_t c) { return static_cast<UChar32>(c); }

uint32_t CategoryMask(char32_t c) { return U_GET_GC_MASK(Icu(c)); }

// Whether Unicode had the character in this version. Those whose category is another by now are named where it is
// asked.
bool KnownIn(char32_t c, uint8_t major) {
  UVersionInfo age;
  u_charAge(Icu(c), age);
  return age[0] != 0 && (age[0] < major || (age[0] == major && age[1] == 0));
}

// What is asked most of the characters that most texts are made of.
enum AsciiClass : uint8_t { kSpace = 1, kPunctuation = 2, kControl = 4, kWord = 8, kLetter = 16, kDigit = 32 };

constexpr std::array<uint8_t, 128> MakeAsciiClasses() {
  std::array<uint8_t, 128> classes{};
  for (int c = 0; c < 128; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    const bool tab_or_end_of_line = c == '\t' || c == '\n' || c == '\r';
    const bool control = c < ' ' || c == 127;
    classes[c] =
        static_cast<uint8_t>((space ? kSpace : 0) | (control && !tab_or_end_of_line ? kControl : 0) |
                             (letter ? kLetter | kWord : 0) | (digit ? kDigit | kWord : 0) | (c == '_' ? kWord : 0) |
                             (!letter && !digit && !control && c != ' ' ? kPunctuation : 0));
  }
  return classes;
}
constexpr std::array<uint8_t, 128> kAsciiClasses = MakeAsciiClasses();

bool AsciiIs(char32_t c, AsciiClass one) { return (kAsciiClasses[c] & one) != 0; }

const icu::Normalizer2* WithData(NormalForm form, UErrorCode& error) {
  switch (form) {
    case NormalForm::kNfc:
      return icu::Normalizer2::getNFCInstance(error);
    case NormalForm::kNfd:
      return icu::Normalizer2::getNFDInstance(error);
    case NormalForm::kNfkc:
      return icu::Normalizer2::getNFKCInstance(error);
    case NormalForm::kNfkd:
      return icu::Normalizer2::getNFKDInstance(error);
  }
  return nullptr;
}

// The characters of Unicode 9; never freed. Null where ICU lacks its data.
const icu::UnicodeSet* UnicodeNine() {
  static const icu::UnicodeSet* const kSet = []() -> const icu::UnicodeSet* {
    UErrorCode error = U_ZERO_ERROR;
    auto set = std::make_unique<icu::UnicodeSet>(icu::UnicodeString(u"[:age=9.0:]"), error);
    if (U_FAILURE(error)) return nullptr;
    set->freeze();
    return set.release();
  }();
  return kSet;
}

}  // namespace

bool IsWhiteSpace(char32_t c) { return c < 128 ? AsciiIs(c, kSpace) : u_isUWhiteSpace(Icu(c)) != 0; }

bool IsLetter(char32_t c) { return c < 128 ? AsciiIs(c, kLetter) : (CategoryMask(c) & U_GC_L_MASK) != 0; }

bool IsNumber(char32_t c) { return c < 128 ? AsciiIs(c, kDigit) : (CategoryMask(c) & U_GC_N_MASK) != 0; }

bool IsWord(char32_t c) {
  if (c < 128) return AsciiIs(c, kWord);
  constexpr uint32_t kMask = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return (CategoryMask(c) & kMask) != 0 || u_hasBinaryProperty(Icu(c), UCHAR_ALPHABETIC) != 0 ||
         u_hasBinaryProperty(Icu(c), UCHAR_JOIN_CONTROL) != 0;
}

bool IsPunctuation(char32_t c) {
  if (c < 128) return AsciiIs(c, kPunctuation);
  if (c == 0x166D || c == 0x111C9) return true;
  return (CategoryMask(c) & U_GC_P_MASK) != 0 && KnownIn(c, 8);
}

bool IsControl(char32_t c) {
  if (c < 128) return AsciiIs(c, kControl);
  const uint32_t mask = CategoryMask(c);
  return (mask & (U_GC_CC_MASK | U_GC_CO_MASK)) != 0 || ((mask & U_GC_CF_MASK) != 0 && KnownIn(c, 8));
}

bool IsNonspacingMark(char32_t c) {
  if (c < 128 || c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9) return false;
  return c == 0x1734 || ((CategoryMask(c) & U_GC_MN_MASK) != 0 && KnownIn(c, 8));
}

bool IsCombiningMark(char32_t c) {
  if (c < 128 || c == 0x111C9) return false;
  return c == 0x1CF2 || c == 0x1CF3 || ((CategoryMask(c) & U_GC_M_MASK) != 0 && KnownIn(c, 9));
}

bool IsChineseCharacter(char32_t c) {
  if (c < 0x3400) return false;
  return (c >= 0x4E00 && c <= 0x9FFF) || c <= 0x4DBF || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void AppendLowerCase(char32_t c, std::string& text) {
  if (c < 128) {
    text += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  } else if (c == 0x130) {  // the one whose lower case is two characters: a capital I with a dot above
    text += "i\xCC\x87";
  } else {
    Append(static_cast<char32_t>(u_tolower(Icu(c))), text);
  }
}

StatusOr<std::string> Normalised(std::string_view text, NormalForm form) {
  if (IsAscii(text)) return std::string(text);
  if (text.size() > INT32_MAX) return InvalidArgument("a text of ", text.size(), " bytes is too long to normalise");
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* all = WithData(form, error);
  const icu::UnicodeSet* known = UnicodeNine();
  std::string result;
  if (all != nullptr && known != nullptr && U_SUCCESS(error)) {
    const icu::FilteredNormalizer2 normalizer(*all, *known);
    icu::StringByteSink<std::string> sink(&result, static_cast<int32_t>(text.size()));
    normalizer.normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, nullptr, error);
  }
  if (all == nullptr || known == nullptr || U_FAILURE(error)) {
    return MakeError(StatusCode::kInternal, "ICU can't normalise text (", u_errorName(error), ")");
  }
  return result;
}

namespace {

// Characters as they are decomposed: marks in the order of their classes, one that stays in the place of one that was
// there.
class Decomposed {
 public:
  Decomposed(const icu::Normalizer2& normalizer) : normalizer_(normalizer) {}

  void Add(char32_t c) {
    icu::UnicodeString parts;
    if (normalizer_.getDecomposition(Icu(c), parts) == 0) parts = icu::UnicodeString(Icu(c));
    for (int32_t at = 0; at < parts.length();) {
      const UChar32 part = parts.char32At(at);
      Put({static_cast<char32_t>(part), at > 0 ? 1 : 0});
      at += U16_LENGTH(part);
    }
  }

  std::vector<Change> Take() {
    Sort();
    return std::move(changes_);
  }

 private:
  void Put(const Change& part) {
    if (ClassOf(part) == 0) Sort();
    changes_.push_back(part);
  }
  uint8_t ClassOf(const Change& part) const { return normalizer_.getCombiningClass(Icu(part.value)); }
  void Sort() {
    std::stable_sort(changes_.begin() + static_cast<std::ptrdiff_t>(sorted_), changes_.end(),
                     [this](const Change& a, const Change& b) { return ClassOf(a) < ClassOf(b); });
    sorted_ = changes_.size();
  }

  const icu::Normalizer2& normalizer_;
  std::vector<Change> changes_;
  size_t sorted_ = 0;  // so many are in their order
};

// As section 3.11 of the Unicode Standard composes them (D117).
std::vector<Change> Composed(const icu::Normalizer2& normalizer, const std::vector<Change>& parts) {
  std::vector<Change> result;
  size_t starter = SIZE_MAX;  // in the result
  int last_class = -1;        // of what stands between it and what comes; -1: nothing does
  for (const Change& part : parts) {
    const int its_class = normalizer.getCombiningClass(Icu(part.value));
    const bool blocked = last_class >= 0 && last_class >= its_class;
    if (starter != SIZE_MAX && !blocked) {
      const UChar32 both = normalizer.composePair(Icu(result[starter].value), Icu(part.value));
      if (both >= 0) {
        result[starter] = {static_cast<char32_t>(both), result[starter].growth + part.growth - 1};
        continue;
      }
    }
    if (its_class == 0) {
      starter = result.size();
      last_class = -1;
    } else {
      last_class = its_class;
    }
    result.push_back(part);
  }
  return result;
}

}  // namespace

StatusOr<std::vector<Change>> ChangesTo(std::string_view text, NormalForm form) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* all = WithData(form, error);
  const icu::UnicodeSet* known = UnicodeNine();
  if (all == nullptr || known == nullptr || U_FAILURE(error)) {
    return MakeError(StatusCode::kInternal, "ICU can't normalise text (", u_errorName(error), ")");
  }
  const icu::FilteredNormalizer2 normalizer(*all, *known);
  Decomposed decomposed(normalizer);
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    decomposed.Add(c.value);
    at += c.bytes;
  }
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  return composes ? Composed(normalizer, decomposed.Take()) : decomposed.Take();
}

}  // namespace swizzle::text
