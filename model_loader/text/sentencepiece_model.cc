#include "model_loader/text/sentencepiece_model.h"

#include <cmath>
#include <optional>
#include <utility>

#include "model_loader/files/file_kind.h"
#include "model_loader/files/printable_name.h"
#include "model_loader/text/json_fields.h"
#include "model_loader/text/protobuf_fields.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581

using Field = ProtobufFields::Field;

// Calls take(field) for each, which returns a Status.
template <typename Take>
Status ForEachField(std::string_view message, Take&& take) {
  ProtobufFields fields(message);
  for (Field field; fields.Next(field); field = {}) SWIZZLE_RETURN_IF_ERROR(take(field));
  if (!fields.well_formed()) return InvalidArgument("it is no sentencepiece model, or it is truncated");
  return {};
}

Status ReadPiece(std::string_view message, SentencepieceModel& model) {
  SentencePiece piece;
  SWIZZLE_RETURN_IF_ERROR(ForEachField(message, [&](const Field& field) {
    if (field.number == 1) piece.text = std::string(field.bytes);
    if (field.number == 2) piece.score = field.real();
    if (field.number == 3) piece.kind = static_cast<PieceKind>(field.value);
    return Status();
  }));
  if (!IsWellFormed(piece.text) || piece.text.empty() || !std::isfinite(piece.score)) {
    return InvalidArgument("its piece ", model.pieces.size(), " is damaged; get the file again");
  }
  if (piece.kind == PieceKind::kUserDefined) {
    return Unimplemented("its piece ", QuotedName(piece.text), " is user-defined; save a tokenizer.json");
  }
  if (static_cast<int64_t>(model.pieces.size()) == kMostTokens) {
    return InvalidArgument("it has more than ", kMostTokens, " pieces");
  }
  model.pieces.push_back(std::move(piece));
  return {};
}

Status ReadTrainerSpec(std::string_view message, SentencepieceModel& model) {
  return ForEachField(message, [&](const Field& field) {
    if (field.number == 3 && field.value != 1) {
      return Unimplemented("its model_type is ", field.value, "; 1 (unigram) is supported. Save a tokenizer.json");
    }
    if (field.number == 24 && field.flag()) {
      return Unimplemented("its treat_whitespace_as_suffix is true, which is not supported; save a tokenizer.json");
    }
    if (field.number == 35) model.byte_fallback = field.flag();
    return Status();
  });
}

Status ReadNormalizerSpec(std::string_view message, SentencepieceModel& model) {
  return ForEachField(message, [&](const Field& field) {
    if (field.number == 2) model.charsmap = std::string(field.bytes);
    if (field.number == 3) model.add_dummy_prefix = field.flag();
    if (field.number == 4) model.remove_extra_whitespaces = field.flag();
    if (field.number == 5) model.escape_whitespaces = field.flag();
    return Status();
  });
}

class SentencepieceNormalizer final : public Normalizer {
 public:
  SentencepieceNormalizer(const SentencepieceModel& model, std::optional<Charsmap> map)
      : map_(std::move(map)),
        add_dummy_prefix_(model.add_dummy_prefix),
        remove_extra_whitespaces_(model.remove_extra_whitespaces),
        blank_(model.escape_whitespaces ? kBlank : " ") {}

  Status Apply(NormalText& text) const override {
    std::string result;
    std::vector<Range> origins;
    result.reserve(text.text.size() + text.text.size() / 4);
    bool after_blank = remove_extra_whitespaces_;  // blanks are left out
    for (std::string_view rest = text.text; !rest.empty();) {
      Charsmap::Replacement next = Next(rest);
      const size_t begin = text.text.size() - rest.size(), end = begin + next.bytes;
      rest.remove_prefix(next.bytes);
      while (after_blank && next.text.starts_with(' ')) next.text.remove_prefix(1);
      if (next.text.empty()) continue;
      if (result.empty() && add_dummy_prefix_) result += blank_;
      for (const char byte : next.text) byte == ' ' ? result += blank_ : result += byte;
      if (text.traced) origins.resize(result.size(), {text.origins[begin].begin, text.origins[end - 1].end});
      after_blank = remove_extra_whitespaces_ && next.text.ends_with(' ');
    }
    while (remove_extra_whitespaces_ && result.ends_with(blank_)) result.resize(result.size() - blank_.size());
    text.text = std::move(result);
    if (text.traced) origins.resize(text.text.size());
    text.origins = std::move(origins);
    return {};
  }

 private:
  Charsmap::Replacement Next(std::string_view text) const {
    if (map_) {
      if (const auto replaced = map_->Longest(text)) return *replaced;
    }
    const size_t bytes = BytesOf(text[0]);
    return {bytes, text.substr(0, bytes)};
  }

  const std::optional<Charsmap> map_;
  const bool add_dummy_prefix_, remove_extra_whitespaces_;
  const std::string_view blank_;
};

}  // namespace

StatusOr<SentencepieceModel> ParseSentencepiece(std::string_view bytes) {
  const std::string_view kind = KindOfFile(std::as_bytes(std::span(bytes)));
  if (!kind.empty()) return InvalidArgument("it is no sentencepiece model, but ", kind);
  SentencepieceModel model;
  SWIZZLE_RETURN_IF_ERROR(ForEachField(bytes, [&](const Field& field) {
    switch (field.number) {
      case 1:
        return ReadPiece(field.bytes, model);
      case 2:
        return ReadTrainerSpec(field.bytes, model);
      case 3:
        return ReadNormalizerSpec(field.bytes, model);
      default:
        return Status();
    }
  }));
  if (model.pieces.empty()) return InvalidArgument("it is no sentencepiece model: it has no pieces");
  return model;
}

StatusOr<OwnedNormalizer> MakeSentencepieceNormalizer(const SentencepieceModel& model) {
  std::optional<Charsmap> map;
  if (!model.charsmap.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(map, Charsmap::Parse(model.charsmap));
  }
  return std::make_unique<SentencepieceNormalizer>(model, std::move(map));
}

}  // namespace swizzle::text
