#include "model_loader/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "model_loader/text/characters.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

bool IsSingleWord(std::string_view text, Range found) {
  return (found.begin == 0 || !IsWord(CodePointBefore(text, found.begin).value)) &&
         (found.end == text.size() || !IsWord(CodePointAt(text, found.end).value));
}

// With the white space around it that belongs to it, none of it before `least`.
Range Widened(std::string_view text, Range found, const AddedToken& token, size_t least) {
  while (token.lstrip && found.begin > least) {
    const CodePoint before = CodePointBefore(text, found.begin);
    if (!IsWhiteSpace(before.value)) break;
    found.begin -= before.bytes;
  }
  while (token.rstrip && found.end < text.size()) {
    const CodePoint after = CodePointAt(text, found.end);
    if (!IsWhiteSpace(after.value)) break;
    found.end += after.bytes;
  }
  return found;
}

}  // namespace

StatusOr<AddedTokens> AddedTokens::Of(const std::vector<AddedToken>& tokens, const Normalizer* normalizer) {
  AddedTokens added;
  added.tokens_ = tokens;
  std::vector<PrefixTrie::Entry> raw, normal;
  // The trie keeps the last of equal keys, so that tokens that go first are put last.
  std::ranges::reverse(added.tokens_);
  std::ranges::stable_sort(added.tokens_, {}, &AddedToken::special);
  for (size_t i = 0; i < added.tokens_.size(); ++i) {
    const AddedToken& token = added.tokens_[i];
    NormalText text{token.content, 0};
    if (token.normalized && normalizer != nullptr) SWIZZLE_RETURN_IF_ERROR(normalizer->Apply(text));
    if (text.text.empty()) continue;
    (token.normalized ? normal : raw).push_back({text.text, static_cast<int32_t>(i)});
  }
  added.raw_ = PrefixTrie(std::move(raw));
  added.normal_ = PrefixTrie(std::move(normal));
  return added;
}

void AddedTokens::Split(const PrefixTrie& trie, std::string_view text, std::vector<Piece>& pieces) const {
  size_t done = 0;  // up to where there are pieces
  const auto add = [&](size_t begin, size_t end, int32_t token) {
    if (begin < end) pieces.push_back({begin, end, token, begin == 0});
  };
  for (size_t at = 0; at < text.size();) {
    const PrefixTrie::Match match = trie.Longest(PrefixTrie::kRoot, text.substr(at));
    if (match.bytes == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    const Range found = {at, at + match.bytes};
    at = found.end;
    if (token.single_word && !IsSingleWord(text, found)) continue;
    const Range widened = Widened(text, found, token, done);
    add(done, widened.begin, Piece::kNoToken);
    add(widened.begin, widened.end, token.id);
    done = widened.end;
  }
  add(done, text.size(), Piece::kNoToken);
}

}  // namespace swizzle::text
