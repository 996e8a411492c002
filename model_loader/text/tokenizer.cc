#include "model_loader/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "model_loader/text/token_offsets.h"
#include "model_loader/text/tokenizer_files.h"
#include "model_loader/text/tokenizer_parts.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

constexpr size_t kMostBytes = size_t{1} << 28;

// The ids of part of a text, not empty, that has no token but such as are found in its normal form.
Status AddIds(const TokenizerParts& parts, std::string_view text, const Piece& part, TextTokenIds& tokens) {
  const std::string_view its = text.substr(part.begin, part.end - part.begin);
  const size_t start_bytes = part.from_start ? BytesOf(its[0]) : 0;
  NormalText normal =
      tokens.traced ? NormalText::Traced(std::string(its), start_bytes) : NormalText{std::string(its), start_bytes};
  if (parts.normalizer != nullptr) SWIZZLE_RETURN_IF_ERROR(parts.normalizer->Apply(normal));
  Pieces pieces{std::move(normal.text), {}, std::move(normal.origins), normal.traced};
  parts.added.SplitNormal(pieces.text, pieces.list);
  for (Piece& piece : pieces.list) piece.from_start = piece.begin == 0 && normal.start_bytes > 0;
  if (parts.pre_tokenizer != nullptr) SWIZZLE_RETURN_IF_ERROR(parts.pre_tokenizer->Apply(pieces));
  std::vector<Range> places;
  for (const Piece& piece : pieces.list) {
    places.clear();
    if (piece.token != Piece::kNoToken) {
      tokens.ids.push_back(piece.token);
      if (tokens.traced) places.push_back({0, piece.end - piece.begin});
    } else {
      SWIZZLE_RETURN_IF_ERROR(parts.model->Encode(pieces.Of(piece), tokens.ids, tokens.traced ? &places : nullptr));
    }
    for (const Range place : places) AddOffsets(pieces, piece, place, part.begin, tokens);
  }
  return {};
}

// Of a text that is cut off so much is read in any case, and so much for each token that is kept: what is longer has
// more tokens than are kept, unless its words are longer than any language's.
constexpr size_t kAlwaysRead = size_t{1} << 16, kReadForAToken = size_t{1} << 8;

// The end of a text from which tokens are kept, up to white space near by, where tokens end, or else to a character's
// end.
std::string_view KeptEnd(std::string_view text, size_t bytes, bool from_left) {
  constexpr std::string_view kSpaces = " \n\t\r";
  constexpr size_t kNear = 1 << 10;
  const auto continues = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  if (from_left) {
    size_t begin = text.size() - bytes;
    const size_t space = text.substr(0, begin + kNear).find_first_of(kSpaces, begin);
    while (begin < text.size() && continues(begin)) ++begin;
    return text.substr(space == std::string_view::npos ? begin : space);
  }
  size_t end = bytes;
  const size_t space = text.find_last_of(kSpaces, end);
  const bool is_near = space != std::string_view::npos && space + kNear >= end;
  while (end > 0 && continues(end)) --end;
  return text.substr(0, is_near ? space : end);
}

void AddPart(const TemplatePart& part, const std::vector<int32_t>& ids, Encoding& encoding) {
  encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
  encoding.type_ids.resize(encoding.ids.size(), part.type_id);
}

void AddPart(const TemplatePart& part, const TextTokenIds& tokens, Encoding& encoding) {
  AddPart(part, tokens.ids, encoding);
  for (const TokenOffsets& its : tokens.offsets) encoding.offsets.push_back(its.characters);
}

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::make_unique<const TokenizerParts>(std::move(parts))) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

StatusOr<Tokenizer> Tokenizer::Open(const std::filesystem::path& path) {
  SWIZZLE_ASSIGN_OR_RETURN(TokenizerParts parts, ReadTokenizer(path));
  return Tokenizer(std::move(parts));
}

StatusOr<TextTokenIds> Tokenizer::Ids(std::string_view text, bool offsets) const {
  if (text.size() > kMostBytes) {
    return InvalidArgument("a text has ", text.size(), " bytes; at most ", kMostBytes, " may be");
  }
  std::string replaced;
  if (!IsWellFormed(text)) text = replaced = WellFormed(text);
  std::vector<Piece> pieces;
  parts_->added.SplitRaw(text, pieces);
  TextTokenIds tokens{.traced = offsets};
  for (const Piece& piece : pieces) {
    if (piece.token != Piece::kNoToken) {
      tokens.ids.push_back(piece.token);
      if (offsets) AddOffsets(text, piece, tokens);
    } else {
      SWIZZLE_RETURN_IF_ERROR(AddIds(*parts_, text, piece, tokens));
    }
  }
  if (offsets) ToCharacters(text, tokens);
  return tokens;
}

int64_t Tokenizer::MostTokens(const EncodeOptions& options) const {
  return options.max_tokens > 0 ? options.max_tokens : parts_->truncation.max_tokens;
}

std::string_view Tokenizer::Read(std::string_view text, const EncodeOptions& options) const {
  const int64_t kept = MostTokens(options);
  if (kept == 0 || text.size() <= kAlwaysRead) return text;
  const size_t bytes = std::max(kAlwaysRead, kReadForAToken * static_cast<size_t>(kept));
  return text.size() <= bytes ? text : KeptEnd(text, bytes, parts_->truncation.from_left);
}

StatusOr<Encoding> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  return EncodeRow(text, std::nullopt, options);
}

StatusOr<Encoding> Tokenizer::Encode(std::string_view text, std::string_view pair, const EncodeOptions& options) const {
  return EncodeRow(text, pair, options);
}

StatusOr<Encoding> Tokenizer::EncodeRow(std::string_view text, std::optional<std::string_view> pair,
                                        const EncodeOptions& options) const {
  // Offsets are those in the whole text.
  const auto read_of = [&](std::string_view whole) { return options.offsets ? whole : Read(whole, options); };
  const std::string_view read = read_of(text), read_pair = pair ? read_of(*pair) : std::string_view();
  const bool cuts_text = read.size() < text.size(), cuts_pair = pair && read_pair.size() < pair->size();
  SWIZZLE_ASSIGN_OR_RETURN(TextTokenIds first, Ids(read, options.offsets));
  std::optional<TextTokenIds> second;
  if (pair) {
    SWIZZLE_ASSIGN_OR_RETURN(second, Ids(read_pair, options.offsets));
  }
  if (!options.truncate && (cuts_text || cuts_pair)) {
    const int64_t added = options.add_special_tokens ? parts_->layout.AddedTo(pair.has_value()) : 0;
    const int64_t most = MostTokens(options), tokens = std::ssize(first.ids) + (second ? std::ssize(second->ids) : 0);
    if (added + tokens > most) {
      return MakeError(StatusCode::kOutOfRange, pair ? "the pair of texts has" : "the text has", " more than ", most,
                       " tokens; at most so many may be. Send a shorter one, or have it truncated");
    }
    if (cuts_text) {
      SWIZZLE_ASSIGN_OR_RETURN(first, Ids(text, options.offsets));
    }
    if (cuts_pair) {
      SWIZZLE_ASSIGN_OR_RETURN(second, Ids(*pair, options.offsets));
    }
  }
  SWIZZLE_ASSIGN_OR_RETURN(Encoding encoding, Assemble(std::move(first), std::move(second), options));
  encoding.truncated |= options.truncate && (cuts_text || cuts_pair);
  return encoding;
}

StatusOr<Encoding> Tokenizer::Assemble(TextTokenIds first, std::optional<TextTokenIds> second,
                                       const EncodeOptions& options) const {
  const Template& layout = parts_->layout;
  const int64_t added = options.add_special_tokens ? layout.AddedTo(second.has_value()) : 0;
  const int64_t max_tokens = MostTokens(options);
  const int64_t tokens = added + static_cast<int64_t>(first.ids.size() + (second ? second->ids.size() : 0));
  Encoding encoding;
  if (max_tokens > 0 && tokens > max_tokens) {
    if (!options.truncate) {
      return MakeError(StatusCode::kOutOfRange, second ? "the pair of texts has " : "the text has ", tokens,
                       " tokens; at most ", max_tokens, " may be. Send a shorter one, or have it truncated");
    }
    if (added > max_tokens) {
      return InvalidArgument("of at most ", max_tokens, " tokens the special ones take ", added, "; allow for more");
    }
    SWIZZLE_RETURN_IF_ERROR(
        Truncate(parts_->truncation, max_tokens - added, first.ids, second ? &second->ids : nullptr));
    encoding.truncated = true;
  }
  if (options.offsets) {
    FinishOffsets(layout, parts_->truncation, first);
    if (second) FinishOffsets(layout, parts_->truncation, *second);
  }
  for (const TemplatePart& part : second ? layout.pair : layout.single) {
    switch (part.kind) {
      case TemplatePart::Kind::kFirst:
        AddPart(part, first, encoding);
        break;
      case TemplatePart::Kind::kSecond:
        AddPart(part, *second, encoding);
        break;
      case TemplatePart::Kind::kSpecial:
        if (options.add_special_tokens) AddPart(part, part.ids, encoding);
        if (options.offsets) encoding.offsets.resize(encoding.ids.size());
        break;
    }
    if (options.offsets) encoding.special.resize(encoding.ids.size(), part.kind == TemplatePart::Kind::kSpecial);
  }
  return encoding;
}

StatusOr<std::string> Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  if (!parts_->decoder.ok()) return Annotate(parts_->decoder.status(), "the tokeniser decodes no ids");
  std::vector<std::string> tokens;
  size_t bytes = 0;
  for (const int32_t id : ids) {
    const std::string_view token = Token(id);
    if (token.empty() || (skip_special_tokens && parts_->special_tokens.contains(token))) continue;
    tokens.emplace_back(token);
    bytes += token.size() + 1;
    if (bytes > kMostBytes) return InvalidArgument("the ids make a text of more than ", kMostBytes, " bytes");
  }
  if (*parts_->decoder != nullptr) SWIZZLE_RETURN_IF_ERROR((*parts_->decoder)->Apply(tokens));
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (*parts_->decoder == nullptr && i > 0) text += ' ';
    text += tokens[i];
  }
  return text;
}

int64_t Tokenizer::vocabulary_size() const { return static_cast<int64_t>(parts_->tokens.size()); }
const SpecialIds& Tokenizer::special_ids() const { return parts_->special; }
int64_t Tokenizer::max_tokens() const { return parts_->truncation.max_tokens; }
int64_t Tokenizer::model_max_tokens() const { return parts_->model_max_tokens; }

std::string_view Tokenizer::Token(int32_t id) const {
  return id < 0 || id >= vocabulary_size() ? std::string_view() : parts_->tokens[static_cast<size_t>(id)];
}

}  // namespace swizzle::text
