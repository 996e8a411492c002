// What turns a piece of text into ids: the models of tokenizer.json. Immutable; const members are thread-safe.
//
// Each takes time that grows with the piece's length, but for a logarithm (byte pairs) or the length of the longest
// token. Ids are indexes of the vocabulary, not negative.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_TOKEN_MODEL_H_
#define SWIZZLE_MODEL_LOADER_TEXT_TOKEN_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/text/pattern.h"
#include "model_loader/text/prefix_trie.h"

namespace swizzle::text {

// Tokens and their ids: what a vocabulary says, in any order. Tokens are well-formed.
using TokenIds = std::vector<PrefixTrie::Entry>;

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a piece, and, unless `places` is null, where each stands in it. INVALID_ARGUMENT where the model
  // knows no token for it, and none for what it does not know. REQUIRES: the piece is well-formed, and not empty.
  virtual Status Encode(std::string_view piece, std::vector<int32_t>& ids,
                        std::vector<Range>* places = nullptr) const = 0;
  // That of a whole token, or PrefixTrie::kNone.
  virtual int32_t Find(std::string_view token) const = 0;
};
using OwnedTokenModel = std::unique_ptr<const TokenModel>;

// The whole piece, or the unknown token.
struct WordLevelOptions {
  std::string unknown;
};
OwnedTokenModel MakeWordLevel(TokenIds vocabulary, const WordLevelOptions& options);

// WordPiece: the longest token that the piece begins with, then, of those that begin with the prefix, the longest that
// the rest begins with, and so on; the unknown token for a piece that ends in none, or has too many characters.
struct WordPieceOptions {
  std::string unknown = "[UNK]";
  std::string prefix = "##";
  int64_t most_characters = 100;
};
// INVALID_ARGUMENT if the vocabulary lacks the unknown token.
StatusOr<OwnedTokenModel> MakeWordPiece(TokenIds vocabulary, const WordPieceOptions& options);

// Byte pairs (Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", section 3.2): a token for
// each character, of which the neighbours whose merge stands first are merged, as long as there are such.
struct BytePairOptions {
  std::optional<std::string> unknown;
  std::string prefix;          // of characters but the first of a piece
  std::string suffix;          // of the last
  bool fuse_unknown = false;   // one for neighbours
  bool byte_fallback = false;  // "<0x0A>" and the like for unknown characters, if there are such for all their bytes
  bool ignore_merges = false;  // for pieces that are tokens
};
using Merges = std::vector<std::pair<std::string, std::string>>;  // the first first
// INVALID_ARGUMENT if the vocabulary lacks a token that the merges or the options name.
StatusOr<OwnedTokenModel> MakeBytePairs(TokenIds vocabulary, const Merges& merges, const BytePairOptions& options);

// Unigram (Kudo, "Subword Regularization", section 3.2): the tokens whose scores have the greatest sum, by Viterbi's
// algorithm; where sums are equal, the longer last token. A character that is no token costs 10 more than the
// least score. Neighbouring ones become one unknown token, or their bytes.
struct ScoredToken {
  std::string token;
  double score = 0.0;
  bool in_texts = true;  // else it stands for nothing in a text
};
struct UnigramOptions {
  std::optional<int32_t> unknown;  // an id
  bool byte_fallback = false;
  bool in_float = false;  // sums, as sentencepiece adds them
};
// Ids are places in `vocabulary`. INVALID_ARGUMENT if the unknown token's is none, or no token may stand in a text.
StatusOr<OwnedTokenModel> MakeUnigram(const std::vector<ScoredToken>& vocabulary, const UnigramOptions& options);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_TOKEN_MODEL_H_
