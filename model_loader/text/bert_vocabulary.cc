#include <algorithm>

#include "model_loader/files/printable_name.h"
#include "model_loader/text/json_fields.h"
#include "model_loader/text/tokenizer_files.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

using Json = nlohmann::json;
using Names = std::map<std::string, std::string>;

StatusOr<TokenIds> ReadLines(std::string_view text) {
  if (!IsWellFormed(text)) return InvalidArgument("it is not UTF-8");
  TokenIds ids;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (static_cast<int64_t>(ids.size()) == kMostTokens) {
      return InvalidArgument("it has more than ", kMostTokens, " lines");
    }
    ids.push_back({std::string(line), static_cast<int32_t>(ids.size())});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return ids;
}

// BERT's own, where the settings don't say.
void AddDefaults(Names& names) {
  names.try_emplace("unk_token", "[UNK]");
  names.try_emplace("sep_token", "[SEP]");
  names.try_emplace("pad_token", "[PAD]");
  names.try_emplace("cls_token", "[CLS]");
  names.try_emplace("mask_token", "[MASK]");
}

StatusOr<BertNormalization> ReadNormalization(const Fields& config) {
  BertNormalization options;
  SWIZZLE_ASSIGN_OR_RETURN(options.lowercase, config.Flag("do_lower_case", true));
  SWIZZLE_ASSIGN_OR_RETURN(options.strip_accents, config.Flag("strip_accents", options.lowercase));
  SWIZZLE_ASSIGN_OR_RETURN(options.handle_chinese_chars, config.Flag("tokenize_chinese_chars", true));
  return options;
}

// Tokens that were added after training stand in tokenizer_config.json alone.
Status RefuseOtherTokens(const Fields& config, const Names& names) {
  const Json* added = config.Find("added_tokens_decoder");
  if (added == nullptr || !added->is_object()) return {};
  for (const auto& [id, token] : added->items()) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::string content, Fields(token, "an added token").Text("content"));
    if (std::ranges::none_of(names, [&](const auto& name) { return name.second == content; })) {
      return Unimplemented("tokenizer_config.json adds the token ", QuotedName(content),
                           ", which a vocab.txt can't be read with; save a tokenizer.json");
    }
  }
  return {};
}

std::vector<AddedToken> Special(const Names& names, const TokenModel& model) {
  std::vector<AddedToken> tokens;
  for (const auto& [name, content] : names) {
    const int32_t id = model.Find(content);
    if (id != PrefixTrie::kNone) tokens.push_back({.content = content, .id = id, .special = true});
  }
  return tokens;
}

}  // namespace

StatusOr<TokenizerParts> ParseBertVocabulary(std::string_view vocabulary, const TokenizerSettings& settings) {
  Json json = Json::object();
  if (!settings.tokenizer_config.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(json, ParseObject(settings.tokenizer_config));
  }
  const Fields config(json, "tokenizer_config.json");
  SWIZZLE_ASSIGN_OR_RETURN(Names names, SpecialTokenNames(settings));
  AddDefaults(names);
  SWIZZLE_RETURN_IF_ERROR(RefuseOtherTokens(config, names));
  SWIZZLE_ASSIGN_OR_RETURN(const BertNormalization normalization, ReadNormalization(config));
  SWIZZLE_ASSIGN_OR_RETURN(TokenIds ids, ReadLines(vocabulary));
  TokenizerParts parts;
  for (const auto& [token, id] : ids) parts.tokens.push_back(token);
  SWIZZLE_ASSIGN_OR_RETURN(parts.model, MakeWordPiece(std::move(ids), {.unknown = names["unk_token"]}));
  parts.normalizer = MakeBertNormalizer(normalization);
  parts.pre_tokenizer = MakeBertPreTokenizer();
  parts.special = SpecialIdsOf(names, [&](const std::string& token) { return parts.model->Find(token); });
  for (const char* name : {"cls_token", "sep_token"}) {
    if (parts.model->Find(names[name]) != PrefixTrie::kNone) continue;
    return InvalidArgument("it lacks the ", name, " ", QuotedName(names[name]), "; add it");
  }
  parts.layout = BertTemplate(*parts.special.cls, *parts.special.sep);
  parts.decoder = MakeWordPieceDecoder({});
  for (const auto& [name, content] : names) parts.special_tokens.insert(content);
  SWIZZLE_ASSIGN_OR_RETURN(parts.added, AddedTokens::Of(Special(names, *parts.model), nullptr));
  return parts;
}

}  // namespace swizzle::text
