#include "model_loader/text/json_parts.h"

namespace swizzle::text {
namespace {

using Json = nlohmann::json;
using NormalizerResult = StatusOr<OwnedNormalizer>;

NormalizerResult ReadBert(const Fields& fields, int) {
  BertNormalization options;
  SWIZZLE_ASSIGN_OR_RETURN(options.clean_text, fields.Flag("clean_text", true));
  SWIZZLE_ASSIGN_OR_RETURN(options.handle_chinese_chars, fields.Flag("handle_chinese_chars", true));
  SWIZZLE_ASSIGN_OR_RETURN(options.lowercase, fields.Flag("lowercase", true));
  SWIZZLE_ASSIGN_OR_RETURN(options.strip_accents, fields.Flag("strip_accents", options.lowercase));
  return MakeBertNormalizer(options);
}

NormalizerResult ReadStripNormalizer(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(const bool left, fields.Flag("strip_left", true));
  SWIZZLE_ASSIGN_OR_RETURN(const bool right, fields.Flag("strip_right", true));
  return MakeStrip(left, right);
}

NormalizerResult ReadReplaceNormalizer(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(fields));
  SWIZZLE_ASSIGN_OR_RETURN(std::string content, fields.Text("content"));
  return MakeReplace(std::move(pattern), std::move(content));
}

NormalizerResult ReadPrepend(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(std::string prefix, fields.Text("prepend"));
  return MakePrepend(std::move(prefix));
}

NormalizerResult ReadPrecompiled(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string encoded, fields.Text("precompiled_charsmap"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string bytes, DecodeBase64(encoded));
  SWIZZLE_ASSIGN_OR_RETURN(Charsmap map, Charsmap::Parse(bytes));
  return MakePrecompiled(std::move(map));
}

NormalizerResult ReadNormalizers(const Fields& fields, int depth) {
  const auto parts = [&] { return ReadSequence<OwnedNormalizer>(fields, "normalizers", depth, ReadNormalizer); };
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<OwnedNormalizer> sequence, parts());
  return MakeNormalizerSequence(std::move(sequence));
}

template <NormalForm form>
NormalizerResult ReadForm(const Fields&, int) {
  return MakeNormalForm(form);
}

using NormalizerRow = PartRow<OwnedNormalizer>;
constexpr NormalizerRow kNormalizers[] = {
    {"BertNormalizer", ReadBert},
    {"ByteLevel", ReadPlain<OwnedNormalizer, MakeByteNormalizer>},
    {"Lowercase", ReadPlain<OwnedNormalizer, MakeLowercase>},
    {"NFC", ReadForm<NormalForm::kNfc>},
    {"NFD", ReadForm<NormalForm::kNfd>},
    {"NFKC", ReadForm<NormalForm::kNfkc>},
    {"NFKD", ReadForm<NormalForm::kNfkd>},
    {"Nmt", ReadPlain<OwnedNormalizer, MakeNmt>},
    {"Precompiled", ReadPrecompiled},
    {"Prepend", ReadPrepend},
    {"Replace", ReadReplaceNormalizer},
    {"Sequence", ReadNormalizers},
    {"Strip", ReadStripNormalizer},
    {"StripAccents", ReadPlain<OwnedNormalizer, MakeStripAccents>},
};

}  // namespace

StatusOr<OwnedNormalizer> ReadNormalizer(const Json& json, int depth) {
  SWIZZLE_ASSIGN_OR_RETURN(const NormalizerRow* row, FindRow(json, kNormalizers, "normalizer"));
  return row->read(Fields(json, Concat("its normalizer ", row->type)), depth);
}

StatusOr<Pattern> ReadPattern(const Fields& fields) {
  const Fields kinds(fields.Find("pattern"), Concat("the pattern of ", fields.what()));
  if (kinds.Has("String")) {
    SWIZZLE_ASSIGN_OR_RETURN(std::string literal, kinds.Text("String"));
    return Pattern::OfLiteral(std::move(literal));
  }
  if (!kinds.Has("Regex")) return fields.Wrong("pattern", "an object with a String or a Regex");
  SWIZZLE_ASSIGN_OR_RETURN(const std::string expression, kinds.Text("Regex"));
  StatusOr<Pattern> compiled = Pattern::Of(expression);
  if (!compiled.ok()) return Annotate(compiled.status(), fields.what());
  return compiled;
}

}  // namespace swizzle::text
