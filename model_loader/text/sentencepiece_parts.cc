#include <algorithm>

#include "model_loader/files/printable_name.h"
#include "model_loader/text/json_fields.h"
#include "model_loader/text/sentencepiece_model.h"
#include "model_loader/text/tokenizer_files.h"

namespace swizzle::text {
namespace {

using Kind = TemplatePart::Kind;

bool IsT5(std::string_view model_type) { return model_type == "t5" || model_type == "mt5" || model_type == "umt5"; }

// As fairseq counts: its own special tokens stand for the model's first three pieces.
Status RenumberAsFairseq(std::vector<SentencePiece>& pieces) {
  const auto control = [](const char* name) { return SentencePiece{name, 0.0f, PieceKind::kControl}; };
  if (pieces.size() < 3 || pieces[0].kind != PieceKind::kUnknown) {
    return InvalidArgument("its first three pieces are not <unk>, <s> and </s>, as those of xlm-roberta are");
  }
  std::vector<SentencePiece> all = {control("<s>"), control("<pad>"), control("</s>"), pieces[0]};
  all.insert(all.end(), pieces.begin() + 3, pieces.end());
  all.push_back(control("<mask>"));
  pieces = std::move(all);
  return {};
}

// T5's marks of what is left out, the first of which has the last id.
Status AddT5Marks(const TokenizerSettings& settings, std::vector<SentencePiece>& pieces) {
  constexpr int64_t kMostMarks = 1 << 16;
  nlohmann::json json = nlohmann::json::object();
  if (!settings.tokenizer_config.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(json, ParseObject(settings.tokenizer_config));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t marks,
                           Fields(json, "tokenizer_config.json").Whole("extra_ids", kMostMarks, 100));
  for (int64_t i = marks; i-- > 0;) pieces.push_back({Concat("<extra_id_", i, ">"), 0.0f, PieceKind::kControl});
  return {};
}

StatusOr<OwnedTokenModel> MakeModel(const SentencepieceModel& model) {
  std::vector<ScoredToken> vocabulary;
  UnigramOptions options;
  options.in_float = true;
  options.byte_fallback = model.byte_fallback;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.kind == PieceKind::kUnknown) options.unknown = static_cast<int32_t>(vocabulary.size());
    vocabulary.push_back({piece.text, piece.score, piece.kind == PieceKind::kNormal});
  }
  return MakeUnigram(vocabulary, options);
}

OwnedDecoder MakeDecoder(bool byte_fallback) {
  std::vector<OwnedDecoder> parts;
  if (byte_fallback) parts.push_back(MakeByteFallbackDecoder());
  parts.push_back(MakeMetaspaceDecoder({}));
  return MakeDecoderSequence(std::move(parts));
}

// Special tokens as the library `transformers` finds them in texts.
std::vector<AddedToken> SpecialTokens(const std::vector<SentencePiece>& pieces) {
  std::vector<AddedToken> tokens;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].kind != PieceKind::kControl && pieces[id].kind != PieceKind::kUnknown) continue;
    tokens.push_back({.content = pieces[id].text,
                      .id = static_cast<int32_t>(id),
                      .special = true,
                      .lstrip = pieces[id].text == "<mask>"});
  }
  return tokens;
}

SpecialIds NamedIds(const std::vector<AddedToken>& tokens) {
  const auto id = [&](std::string_view content) -> std::optional<int32_t> {
    const auto found = std::ranges::find(tokens, content, &AddedToken::content);
    return found == tokens.end() ? std::nullopt : std::optional(found->id);
  };
  SpecialIds special;
  special.pad = id("<pad>");
  special.unk = id("<unk>");
  special.bos = id("<s>");
  special.eos = id("</s>");
  special.mask = id("<mask>");
  return special;
}

}  // namespace

StatusOr<TokenizerParts> ParseSentencepieceModel(std::string_view bytes, const TokenizerSettings& settings) {
  const std::string& type = settings.model_type;
  const bool fairseq = type == "xlm-roberta", t5 = IsT5(type);
  if (!type.empty() && !fairseq && !t5) {
    return Unimplemented("config.json says model_type ", QuotedName(type),
                         "; sentencepiece models are read of "
                         "xlm-roberta, t5, mt5 and umt5. Save a tokenizer.json");
  }
  SWIZZLE_ASSIGN_OR_RETURN(SentencepieceModel model, ParseSentencepiece(bytes));
  if (fairseq) SWIZZLE_RETURN_IF_ERROR(RenumberAsFairseq(model.pieces));
  if (t5) SWIZZLE_RETURN_IF_ERROR(AddT5Marks(settings, model.pieces));
  TokenizerParts parts;
  SWIZZLE_ASSIGN_OR_RETURN(parts.model, MakeModel(model));
  SWIZZLE_ASSIGN_OR_RETURN(parts.normalizer, MakeSentencepieceNormalizer(model));
  const std::vector<AddedToken> special = SpecialTokens(model.pieces);
  parts.special = NamedIds(special);
  parts.decoder = MakeDecoder(model.byte_fallback);
  for (const AddedToken& token : special) parts.special_tokens.insert(token.content);
  for (SentencePiece& piece : model.pieces) parts.tokens.push_back(std::move(piece.text));
  if (type.empty()) return parts;
  SWIZZLE_ASSIGN_OR_RETURN(parts.added, AddedTokens::Of(special, nullptr));
  const std::optional<int32_t> end = parts.special.eos;
  if (!end) return InvalidArgument("it lacks the piece </s>, which ", type, " ends a text with");
  if (fairseq) {
    parts.layout = RobertaTemplate(*parts.special.bos, *end);
    parts.special.cls = parts.special.bos;
    parts.special.sep = end;
  } else {
    parts.layout = {
        .single = {{Kind::kFirst, 0}, {Kind::kSpecial, 0, {*end}}},
        .pair = {{Kind::kFirst, 0}, {Kind::kSpecial, 0, {*end}}, {Kind::kSecond, 0}, {Kind::kSpecial, 0, {*end}}}};
  }
  return parts;
}

}  // namespace swizzle::text
