#include <algorithm>

#include "model_loader/files/printable_name.h"
#include "model_loader/text/token_model.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

class WordLevel final : public TokenModel {
 public:
  WordLevel(TokenIds vocabulary, const WordLevelOptions& options)
      : trie_(std::move(vocabulary)), unknown_(trie_.Find(options.unknown)), unknown_name_(options.unknown) {}

  Status Encode(std::string_view piece, std::vector<int32_t>& ids, std::vector<Range>* places) const override {
    const int32_t id = Find(piece);
    if (id == PrefixTrie::kNone && unknown_ == PrefixTrie::kNone) {
      return InvalidArgument("the tokenizer has no token for ", QuotedName(piece), ", and no unknown token ",
                             QuotedName(unknown_name_));
    }
    ids.push_back(id != PrefixTrie::kNone ? id : unknown_);
    if (places != nullptr) places->push_back({0, piece.size()});
    return {};
  }

  int32_t Find(std::string_view token) const override { return trie_.Find(token); }

 private:
  const PrefixTrie trie_;
  const int32_t unknown_;
  const std::string unknown_name_;
};

class WordPiece final : public TokenModel {
 public:
  WordPiece(PrefixTrie trie, const WordPieceOptions& options)
      : trie_(std::move(trie)),
        unknown_(trie_.Find(options.unknown)),
        most_characters_(options.most_characters),
        inner_(trie_.Descend(PrefixTrie::kRoot, options.prefix)),
        has_inner_(options.prefix.empty() || inner_ != PrefixTrie::kNoNode) {}

  Status Encode(std::string_view piece, std::vector<int32_t>& ids, std::vector<Range>* places) const override {
    const size_t before = ids.size(), places_before = places == nullptr ? 0 : places->size();
    if (HasTooManyCharacters(piece) || !Add(piece, ids, places)) {
      ids.resize(before);
      ids.push_back(unknown_);
      if (places == nullptr) return {};
      places->resize(places_before);
      places->push_back({0, piece.size()});
    }
    return {};
  }

  int32_t Find(std::string_view token) const override { return trie_.Find(token); }

 private:
  bool HasTooManyCharacters(std::string_view piece) const {
    if (static_cast<int64_t>(piece.size()) <= most_characters_) return false;
    return std::ranges::count_if(piece, BeginsCharacter) > most_characters_;
  }

  // False where no token goes on.
  bool Add(std::string_view piece, std::vector<int32_t>& ids, std::vector<Range>* places) const {
    uint32_t from = PrefixTrie::kRoot;
    const size_t bytes = piece.size();
    while (!piece.empty()) {
      const PrefixTrie::Match match = trie_.Longest(from, piece);
      if (match.bytes == 0) return false;
      ids.push_back(match.value);
      const size_t at = bytes - piece.size();
      if (places != nullptr) places->push_back({at, at + match.bytes});
      piece.remove_prefix(match.bytes);
      from = inner_;
      if (!piece.empty() && !has_inner_) return false;
    }
    return true;
  }

  const PrefixTrie trie_;
  const int32_t unknown_;
  const int64_t most_characters_;
  const uint32_t inner_;  // where tokens go on that begin with the prefix
  const bool has_inner_;  // there are such
};

}  // namespace

OwnedTokenModel MakeWordLevel(TokenIds vocabulary, const WordLevelOptions& options) {
  return std::make_unique<WordLevel>(std::move(vocabulary), options);
}

StatusOr<OwnedTokenModel> MakeWordPiece(TokenIds vocabulary, const WordPieceOptions& options) {
  PrefixTrie trie(std::move(vocabulary));
  if (trie.Find(options.unknown) == PrefixTrie::kNone) {
    return InvalidArgument("its vocabulary lacks the unknown token ", QuotedName(options.unknown), "; add it");
  }
  return std::make_unique<WordPiece>(std::move(trie), options);
}

}  // namespace swizzle::text
