// What makes a text of tokens again: the decoders of tokenizer.json. Immutable; thread-safe.
//
// Each changes the tokens, of which the text is what is left of them, one after the other.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_DECODERS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_DECODERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/text/pattern.h"
#include "model_loader/text/pre_tokenizers.h"

namespace swizzle::text {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Errors are those of Pattern::FindAll, and INVALID_ARGUMENT for a text that gets too long. REQUIRES: the tokens are
  // well-formed; they are so afterwards.
  virtual Status Apply(std::vector<std::string>& tokens) const = 0;
};
using OwnedDecoder = std::unique_ptr<const Decoder>;

struct WordPieceDecoding {
  std::string prefix = "##";  // of tokens that go on with the word before
  bool cleanup = true;        // no blank before punctuation and English endings
};
OwnedDecoder MakeWordPieceDecoder(WordPieceDecoding options);
// The bytes that the tokens' characters stand for (byte_level.h), in one. What is no UTF-8 becomes U+FFFD.
OwnedDecoder MakeByteLevelDecoder();
// A blank for each replacement, but for those of the first token where a text gets one before it.
OwnedDecoder MakeMetaspaceDecoder(MetaspaceOptions options);
// A blank for each suffix, which ends a word; none for the last token's. REQUIRES: it is not empty.
OwnedDecoder MakeBytePairDecoder(std::string suffix);
// The bytes of neighbours called "<0x0A>" and the like, or U+FFFD for each where these are no UTF-8.
OwnedDecoder MakeByteFallbackDecoder();
OwnedDecoder MakeReplaceDecoder(Pattern pattern, std::string content);
// Of each token that begins or ends with `character`, so many of these.
OwnedDecoder MakeStripDecoder(std::string character, int64_t start, int64_t stop);
// Makes one token of all.
OwnedDecoder MakeFuseDecoder();
OwnedDecoder MakeDecoderSequence(std::vector<OwnedDecoder> parts);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_DECODERS_H_
