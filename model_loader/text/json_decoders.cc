#include "model_loader/text/json_parts.h"

namespace swizzle::text {
namespace {

using Json = nlohmann::json;
using DecoderResult = StatusOr<OwnedDecoder>;

constexpr int64_t kMostStripped = int64_t{1} << 20;  // of a token

DecoderResult ReadBytePairs(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(std::string suffix, fields.Text("suffix", "</w>"));
  if (suffix.empty()) return fields.Wrong("suffix", "one character or more");
  return MakeBytePairDecoder(std::move(suffix));
}

DecoderResult ReadMetaspaceDecoder(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(MetaspaceOptions options, ReadMetaspaceOptions(fields));
  return MakeMetaspaceDecoder(std::move(options));
}

DecoderResult ReadReplaceDecoder(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(fields));
  SWIZZLE_ASSIGN_OR_RETURN(std::string content, fields.Text("content"));
  return MakeReplaceDecoder(std::move(pattern), std::move(content));
}

DecoderResult ReadStripDecoder(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(std::string character, ReadCharacter(fields, "content", " "));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t start, fields.Whole("start", kMostStripped, 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t stop, fields.Whole("stop", kMostStripped, 0));
  return MakeStripDecoder(std::move(character), start, stop);
}

DecoderResult ReadWordPiece(const Fields& fields, int) {
  WordPieceDecoding options;
  SWIZZLE_ASSIGN_OR_RETURN(options.prefix, fields.Text("prefix", options.prefix));
  SWIZZLE_ASSIGN_OR_RETURN(options.cleanup, fields.Flag("cleanup", options.cleanup));
  return MakeWordPieceDecoder(std::move(options));
}

DecoderResult ReadDecoders(const Fields& fields, int depth) {
  const auto parts = [&] { return ReadSequence<OwnedDecoder>(fields, "decoders", depth, ReadDecoder); };
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<OwnedDecoder> sequence, parts());
  return MakeDecoderSequence(std::move(sequence));
}

using DecoderRow = PartRow<OwnedDecoder>;
constexpr DecoderRow kDecoders[] = {
    {"BPEDecoder", ReadBytePairs},
    {"ByteFallback", ReadPlain<OwnedDecoder, MakeByteFallbackDecoder>},
    {"ByteLevel", ReadPlain<OwnedDecoder, MakeByteLevelDecoder>},
    {"Fuse", ReadPlain<OwnedDecoder, MakeFuseDecoder>},
    {"Metaspace", ReadMetaspaceDecoder},
    {"Replace", ReadReplaceDecoder},
    {"Sequence", ReadDecoders},
    {"Strip", ReadStripDecoder},
    {"WordPiece", ReadWordPiece},
};

}  // namespace

StatusOr<OwnedDecoder> ReadDecoder(const Json& json, int depth) {
  SWIZZLE_ASSIGN_OR_RETURN(const DecoderRow* row, FindRow(json, kDecoders, "decoder"));
  return row->read(Fields(json, Concat("its decoder ", row->type)), depth);
}

}  // namespace swizzle::text
