// What a tokeniser is made of, as its files say. Internal to model_loader/text. Value type.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_TOKENIZER_PARTS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_TOKENIZER_PARTS_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "model_loader/text/added_tokens.h"
#include "model_loader/text/decoders.h"
#include "model_loader/text/normalizers.h"
#include "model_loader/text/pre_tokenizers.h"
#include "model_loader/text/template.h"
#include "model_loader/text/token_model.h"
#include "model_loader/text/tokenizer.h"

namespace swizzle::text {

struct TokenizerParts {
  AddedTokens added;
  OwnedNormalizer normalizer;       // null: texts stay as they are
  OwnedPreTokenizer pre_tokenizer;  // null: they are one piece
  OwnedTokenModel model;            // not null
  // Null: texts are their tokens with blanks between. An error keeps nobody from encoding.
  StatusOr<OwnedDecoder> decoder = OwnedDecoder();
  Template layout;
  Truncation truncation;
  int64_t model_max_tokens = 0;  // see Tokenizer
  SpecialIds special;
  std::vector<std::string> tokens;                         // by id
  std::set<std::string, std::less<>> special_tokens = {};  // of these
};

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_TOKENIZER_PARTS_H_
