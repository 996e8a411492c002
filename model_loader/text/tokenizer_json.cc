#include <algorithm>
#include <map>

#include "model_loader/files/printable_name.h"
#include "model_loader/text/json_parts.h"
#include "model_loader/text/tokenizer_files.h"

namespace swizzle::text {
namespace {

using Json = nlohmann::json;

StatusOr<AddedToken> ReadAddedToken(const Json& json) {
  const Fields fields(json, "an added token");
  AddedToken token;
  SWIZZLE_ASSIGN_OR_RETURN(token.content, fields.Text("content"));
  SWIZZLE_ASSIGN_OR_RETURN(token.special, fields.Flag("special", false));
  SWIZZLE_ASSIGN_OR_RETURN(token.single_word, fields.Flag("single_word", false));
  SWIZZLE_ASSIGN_OR_RETURN(token.lstrip, fields.Flag("lstrip", false));
  SWIZZLE_ASSIGN_OR_RETURN(token.rstrip, fields.Flag("rstrip", false));
  SWIZZLE_ASSIGN_OR_RETURN(token.normalized, fields.Flag("normalized", !token.special));
  return token;
}

// Gives ids to added tokens, and `tokens` to ids.
class Numbering {
 public:
  // `count`: of the model's tokens.
  Numbering(const TokenModel& model, size_t count, std::vector<std::string>& tokens)
      : model_(model), tokens_(tokens), count_(static_cast<int32_t>(count)) {}

  int32_t Find(const std::string& token) const {
    const auto added = added_.find(token);
    return added != added_.end() ? added->second : model_.Find(token);
  }

  int32_t Add(const std::string& token) {
    int32_t id = Find(token);
    if (id == PrefixTrie::kNone) id = std::max(most_added_ + 1, count_);
    most_added_ = std::max(most_added_, id);
    if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<size_t>(id) + 1);
    tokens_[static_cast<size_t>(id)] = token;
    added_.emplace(token, id);
    return id;
  }

 private:
  const TokenModel& model_;
  std::vector<std::string>& tokens_;
  const int32_t count_;
  int32_t most_added_ = -1;
  std::map<std::string, int32_t> added_;
};

StatusOr<std::vector<AddedToken>> ReadAddedTokens(const Fields& fields, Numbering& numbering) {
  std::vector<AddedToken> tokens;
  if (!fields.Has("added_tokens")) return tokens;
  SWIZZLE_ASSIGN_OR_RETURN(const Json* list, fields.Array("added_tokens"));
  for (const Json& json : *list) {
    SWIZZLE_ASSIGN_OR_RETURN(AddedToken token, ReadAddedToken(json));
    if (token.content.empty()) continue;
    token.id = numbering.Add(token.content);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

Status CheckIds(const TokenizerParts& parts) {
  for (const auto* row : {&parts.layout.single, &parts.layout.pair}) {
    for (const TemplatePart& part : *row) {
      for (const int32_t id : part.ids) {
        if (static_cast<size_t>(id) >= parts.tokens.size()) {
          return InvalidArgument("its post_processor adds the id ", id, ", but its vocabulary ends before ",
                                 parts.tokens.size());
        }
      }
    }
  }
  return {};
}

}  // namespace

StatusOr<TokenizerParts> ParseTokenizerJson(std::string_view text, const TokenizerSettings& settings) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  const Fields fields(json, "it");
  TokenizerParts parts;
  SWIZZLE_ASSIGN_OR_RETURN(const Json* model_json, fields.Object("model"));
  SWIZZLE_ASSIGN_OR_RETURN(ReadModel model, ReadTokenModel(*model_json));
  parts.model = std::move(model.model);
  parts.tokens = std::move(model.tokens);
  if (const Json* normalizer = fields.Find("normalizer")) {
    SWIZZLE_ASSIGN_OR_RETURN(parts.normalizer, ReadNormalizer(*normalizer));
  }
  if (const Json* pre_tokenizer = fields.Find("pre_tokenizer")) {
    SWIZZLE_ASSIGN_OR_RETURN(parts.pre_tokenizer, ReadPreTokenizer(*pre_tokenizer));
  }
  if (const Json* post_processor = fields.Find("post_processor")) {
    SWIZZLE_ASSIGN_OR_RETURN(parts.layout, ReadPostProcessor(*post_processor));
  }
  if (const Json* truncation = fields.Find("truncation")) {
    SWIZZLE_ASSIGN_OR_RETURN(parts.truncation, ReadTruncation(*truncation));
  }
  if (const Json* decoder = fields.Find("decoder")) parts.decoder = ReadDecoder(*decoder);
  Numbering numbering(*parts.model, model.count, parts.tokens);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<AddedToken> added, ReadAddedTokens(fields, numbering));
  for (const AddedToken& token : added) {
    if (token.special) parts.special_tokens.insert(token.content);
  }
  SWIZZLE_ASSIGN_OR_RETURN(parts.added, AddedTokens::Of(added, parts.normalizer.get()));
  SWIZZLE_RETURN_IF_ERROR(CheckIds(parts));
  SWIZZLE_ASSIGN_OR_RETURN(const auto names, SpecialTokenNames(settings));
  parts.special = SpecialIdsOf(names, [&](const std::string& token) { return numbering.Find(token); });
  if (const Json* padding = fields.Find("padding"); padding != nullptr && !parts.special.pad) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t pad, Fields(*padding, "its padding").Whole("pad_id", kMostTokens));
    parts.special.pad = static_cast<int32_t>(pad);
  }
  return parts;
}

}  // namespace swizzle::text
