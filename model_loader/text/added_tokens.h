// The tokens that a tokeniser finds in a text before its model sees it: special ones such as "[SEP]", and what was
// added after training. Immutable; const members are thread-safe. Offsets are in bytes.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_ADDED_TOKENS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_ADDED_TOKENS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/text/normalizers.h"
#include "model_loader/text/pre_tokenizers.h"
#include "model_loader/text/prefix_trie.h"

namespace swizzle::text {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool single_word = false;  // only where no letter or digit stands beside it
  bool lstrip = false;       // white space before it is part of it
  bool rstrip = false;       // and behind it
  bool normalized = false;   // it is found, in its normal form, in what the normalizer made of the text
};

class AddedTokens {
 public:
  // None.
  AddedTokens() = default;
  // Where several tokens are found by the same text, a special one counts, else the first. One that is empty, or that
  // the normalizer leaves nothing of, is never found. Null: there is no normalizer. Errors are the normalizer's.
  static StatusOr<AddedTokens> Of(const std::vector<AddedToken>& tokens, const Normalizer* normalizer);

  // Splits a text at those that are found in it as it came; appends pieces.
  void SplitRaw(std::string_view text, std::vector<Piece>& pieces) const { Split(raw_, text, pieces); }
  // At those that are found in its normal form.
  void SplitNormal(std::string_view text, std::vector<Piece>& pieces) const { Split(normal_, text, pieces); }

 private:
  void Split(const PrefixTrie& trie, std::string_view text, std::vector<Piece>& pieces) const;

  std::vector<AddedToken> tokens_;
  PrefixTrie raw_, normal_;  // of places in tokens_
};

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_ADDED_TOKENS_H_
