// Reads what a tokeniser is made of from a checkpoint's files. Internal to model_loader/text. Free functions,
// thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_TOKENIZER_FILES_H_
#define SWIZZLE_MODEL_LOADER_TEXT_TOKENIZER_FILES_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "model_loader/text/tokenizer_parts.h"

namespace swizzle::text {

// As Tokenizer::Open says.
StatusOr<TokenizerParts> ReadTokenizer(const std::filesystem::path& path);

// What stands beside a tokeniser; empty: there is no such file.
struct TokenizerSettings {
  std::string tokenizer_config;    // tokenizer_config.json
  std::string special_tokens_map;  // special_tokens_map.json
  std::string model_type;          // of config.json
};

// A tokenizer.json. Of added tokens the ids count that the `tokenizers` library gives them: the vocabulary's, if they
// are part of it, else the next ones, in their order; whatever the file says.
StatusOr<TokenizerParts> ParseTokenizerJson(std::string_view json, const TokenizerSettings& settings);

// BERT's vocab.txt: a token a line, the first of which has the id 0. From tokenizer_config.json do_lower_case,
// strip_accents, tokenize_chinese_chars and the names of special tokens.
StatusOr<TokenizerParts> ParseBertVocabulary(std::string_view vocabulary, const TokenizerSettings& settings);

// A sentencepiece model (sentencepiece_model.h). Ids and special tokens are those of the checkpoint's model_type:
// xlm-roberta has four special tokens first, and a mask last; t5, mt5 and umt5 end each text with "</s>". Where nothing
// says the type, ids are the pieces' places, and no special token is added or found. UNIMPLEMENTED for other types.
StatusOr<TokenizerParts> ParseSentencepieceModel(std::string_view model, const TokenizerSettings& settings);

// What tokenizer_config.json and special_tokens_map.json call special tokens, by "pad_token" and the like.
StatusOr<std::map<std::string, std::string>> SpecialTokenNames(const TokenizerSettings& settings);

// Their ids, as `find` has them by the token: negative if there is none.
template <typename Find>
SpecialIds SpecialIdsOf(const std::map<std::string, std::string>& names, Find&& find) {
  const auto id = [&](const char* name) -> std::optional<int32_t> {
    const auto found = names.find(name);
    const int32_t token = found == names.end() ? -1 : find(found->second);
    return token < 0 ? std::nullopt : std::optional(token);
  };
  return {id("pad_token"), id("unk_token"), id("cls_token"), id("sep_token"),
          id("bos_token"), id("eos_token"), id("mask_token")};
}

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_TOKENIZER_FILES_H_
