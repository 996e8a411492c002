#include "model_loader/text/graphemes.h"

#include <unicode/uchar.h>

#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

// A character, as the rules see it.
struct CodePointKind {
  int break_property;  // UGraphemeClusterBreak
  bool pictograph;

  bool Is(UGraphemeClusterBreak property) const { return break_property == property; }
  bool IsBreaking() const { return Is(U_GCB_CONTROL) || Is(U_GCB_CR) || Is(U_GCB_LF); }
};

CodePointKind KindOf(char32_t c) {
  const auto icu = static_cast<UChar32>(c);
  return {u_getIntPropertyValue(icu, UCHAR_GRAPHEME_CLUSTER_BREAK),
          u_hasBinaryProperty(icu, UCHAR_EXTENDED_PICTOGRAPHIC) != 0};
}

bool SyllableGoesOn(CodePointKind before, CodePointKind after) {
  if (before.Is(U_GCB_L)) {
    return after.Is(U_GCB_L) || after.Is(U_GCB_V) || after.Is(U_GCB_LV) || after.Is(U_GCB_LVT);  // GB6
  }
  if (before.Is(U_GCB_LV) || before.Is(U_GCB_V)) return after.Is(U_GCB_V) || after.Is(U_GCB_T);  // GB7
  return (before.Is(U_GCB_LVT) || before.Is(U_GCB_T)) && after.Is(U_GCB_T);                      // GB8
}

// What of a cluster's beginning decides whether it goes on.
struct State {
  bool emoji;         // a pictograph, and what extends it
  bool joined_emoji;  // the same, and a joiner at its end
  int flags;          // regional indicators: an even number makes whole flags
};

bool GoesOn(CodePointKind before, CodePointKind after, const State& state) {
  if (before.Is(U_GCB_CR)) return after.Is(U_GCB_LF);           // GB3
  if (before.IsBreaking() || after.IsBreaking()) return false;  // GB4, GB5
  if (SyllableGoesOn(before, after)) return true;
  if (after.Is(U_GCB_EXTEND) || after.Is(U_GCB_ZWJ)) return true;             // GB9
  if (after.Is(U_GCB_SPACING_MARK) || before.Is(U_GCB_PREPEND)) return true;  // GB9a, GB9b
  if (state.joined_emoji && after.pictograph) return true;                    // GB11
  return before.Is(U_GCB_REGIONAL_INDICATOR) && after.Is(U_GCB_REGIONAL_INDICATOR) &&
         state.flags % 2 == 1;  // GB12, GB13
}

}  // namespace

size_t GraphemeEnd(std::string_view text, size_t begin) {
  size_t end = begin + BytesOf(text[begin]);
  if (IsAscii(text[begin]) && (end == text.size() || (IsAscii(text[end]) && text[begin] != '\r'))) return end;
  CodePointKind last = KindOf(CodePointAt(text, begin).value);
  State state{last.pictograph, false, last.Is(U_GCB_REGIONAL_INDICATOR) ? 1 : 0};
  while (end < text.size()) {
    const CodePoint next = CodePointAt(text, end);
    const CodePointKind kind = KindOf(next.value);
    if (!GoesOn(last, kind, state)) break;
    state.joined_emoji = state.emoji && kind.Is(U_GCB_ZWJ);
    state.emoji = kind.pictograph || (state.emoji && kind.Is(U_GCB_EXTEND)) || state.joined_emoji;
    state.flags = kind.Is(U_GCB_REGIONAL_INDICATOR) ? state.flags + 1 : 0;
    last = kind;
    end += next.bytes;
  }
  return end;
}

}  // namespace swizzle::text
