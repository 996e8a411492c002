#include <algorithm>
#include <cmath>
#include <limits>

#include "model_loader/files/printable_name.h"
#include "model_loader/text/byte_tokens.h"
#include "model_loader/text/token_model.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

// Sums are Real: `tokenizers` adds double numbers, sentencepiece float ones, and the last bit decides between ways
// whose sums are equal.
template <typename Real>
class Unigram final : public TokenModel {
 public:
  // `scores` by id; `bytes` are none without byte_fallback.
  Unigram(PrefixTrie trie, std::vector<Real> scores, Real least, const ByteTokens& bytes, const UnigramOptions& options)
      : trie_(std::move(trie)),
        scores_(std::move(scores)),
        unknown_score_(least - Real{10}),
        unknown_(options.unknown.value_or(PrefixTrie::kNone)),
        bytes_(bytes) {}

  Status Encode(std::string_view piece, std::vector<int32_t>& ids, std::vector<Range>* places) const override {
    std::vector<Step> steps(piece.size() + 1);
    for (size_t at = 0; at < piece.size(); at += BytesOf(piece[at])) {
      if (!AddSteps(piece, at, steps)) {
        return InvalidArgument("the tokenizer has no token for ", QuotedName(piece.substr(at, BytesOf(piece[at]))),
                               ", and no unknown token");
      }
    }
    AddBest(piece, steps, ids, places);
    return {};
  }

  int32_t Find(std::string_view token) const override { return trie_.Find(token); }

 private:
  static constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();
  // The last token of the best way to a place in the piece.
  struct Step {
    Real score = 0;  // of the whole way
    uint32_t from = kNowhere;
    int32_t id = 0;
  };

  static void Offer(const Step& step, Step& best) {
    if (best.from == kNowhere || step.score > best.score) best = step;
  }

  // Every token that begins at `at`. False where there is none for its character.
  bool AddSteps(std::string_view piece, size_t at, std::vector<Step>& steps) const {
    const Real before = steps[at].score;
    const auto from = static_cast<uint32_t>(at);
    const size_t character = BytesOf(piece[at]);
    bool known = false;
    trie_.ForEachPrefix(piece.substr(at), [&](size_t bytes, int32_t id) {
      Offer({before + scores_[static_cast<size_t>(id)], from, id}, steps[at + bytes]);
      known = known || bytes == character;
    });
    if (known) return true;
    Offer({before + unknown_score_, from, unknown_}, steps[at + character]);
    return unknown_ != PrefixTrie::kNone;
  }

  void AddBest(std::string_view piece, const std::vector<Step>& steps, std::vector<int32_t>& ids,
               std::vector<Range>* places) const {
    const size_t first = ids.size(), first_place = places == nullptr ? 0 : places->size();
    for (size_t end = piece.size(); end > 0;) {
      size_t begin = steps[end].from;
      if (steps[end].id != unknown_) {
        ids.push_back(steps[end].id);
      } else {
        while (begin > 0 && steps[begin].id == unknown_) begin = steps[begin].from;
        AddUnknown(piece.substr(begin, end - begin), ids);
      }
      if (places != nullptr) places->resize(first_place + ids.size() - first, {begin, end});
      end = begin;
    }
    std::reverse(ids.begin() + static_cast<ptrdiff_t>(first), ids.end());
    if (places != nullptr) std::reverse(places->begin() + static_cast<ptrdiff_t>(first_place), places->end());
  }

  // The last byte first.
  void AddUnknown(std::string_view text, std::vector<int32_t>& ids) const {
    const int32_t whole = trie_.Find(text);
    if (whole == PrefixTrie::kNone && bytes_.HasAll(text)) {
      for (size_t i = text.size(); i-- > 0;) ids.push_back(bytes_.Of(text[i]));
    } else {
      ids.push_back(whole != PrefixTrie::kNone ? whole : unknown_);
    }
  }

  const PrefixTrie trie_;
  const std::vector<Real> scores_;
  const Real unknown_score_;
  const int32_t unknown_;
  const ByteTokens bytes_;
};

template <typename Real>
StatusOr<OwnedTokenModel> MakeUnigramOf(const std::vector<ScoredToken>& vocabulary, const UnigramOptions& options) {
  const int32_t unknown = options.unknown.value_or(0);
  if (options.unknown && (unknown < 0 || static_cast<size_t>(unknown) >= vocabulary.size())) {
    return InvalidArgument("its unk_id is ", unknown, ", but its vocabulary has ", vocabulary.size(), " tokens");
  }
  TokenIds ids;
  ByteTokens bytes;
  std::vector<Real> scores;
  Real least = std::numeric_limits<Real>::infinity();
  for (const auto& [token, score, in_texts] : vocabulary) {
    if (!std::isfinite(score)) return InvalidArgument("the score of its token ", QuotedName(token), " is not finite");
    const auto id = static_cast<int32_t>(scores.size());
    scores.push_back(static_cast<Real>(score));
    if (options.byte_fallback) bytes.Offer(token, id);
    if (!in_texts) continue;
    ids.push_back({token, id});
    least = std::min(least, scores.back());
  }
  if (ids.empty()) return InvalidArgument("its vocabulary is empty");
  return std::make_unique<Unigram<Real>>(PrefixTrie(std::move(ids)), std::move(scores), least, bytes, options);
}

}  // namespace

StatusOr<OwnedTokenModel> MakeUnigram(const std::vector<ScoredToken>& vocabulary, const UnigramOptions& options) {
  return options.in_float ? MakeUnigramOf<float>(vocabulary, options) : MakeUnigramOf<double>(vocabulary, options);
}

}  // namespace swizzle::text
