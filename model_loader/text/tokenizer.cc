#include "model_loader/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "model_loader/text/tokenizer_files.h"
#include "model_loader/text/tokenizer_parts.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

constexpr size_t kMostBytes = size_t{1} << 28;

// The ids of a text, not empty, that has no token but such as are found in its normal form. It begins what is encoded
// if `from_start`.
Status AddIds(const TokenizerParts& parts, std::string_view text, bool from_start, std::vector<int32_t>& ids) {
  NormalText normal{std::string(text), from_start ? BytesOf(text[0]) : 0};
  if (parts.normalizer != nullptr) SWIZZLE_RETURN_IF_ERROR(parts.normalizer->Apply(normal));
  Pieces pieces{std::move(normal.text), {}};
  parts.added.SplitNormal(pieces.text, pieces.list);
  for (Piece& piece : pieces.list) piece.from_start = piece.begin == 0 && normal.start_bytes > 0;
  if (parts.pre_tokenizer != nullptr) SWIZZLE_RETURN_IF_ERROR(parts.pre_tokenizer->Apply(pieces));
  for (const Piece& piece : pieces.list) {
    if (piece.token != Piece::kNoToken) {
      ids.push_back(piece.token);
    } else {
      SWIZZLE_RETURN_IF_ERROR(parts.model->Encode(pieces.Of(piece), ids));
    }
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

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::make_unique<const TokenizerParts>(std::move(parts))) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

StatusOr<Tokenizer> Tokenizer::Open(const std::filesystem::path& path) {
  SWIZZLE_ASSIGN_OR_RETURN(TokenizerParts parts, ReadTokenizer(path));
  return Tokenizer(std::move(parts));
}

StatusOr<std::vector<int32_t>> Tokenizer::Ids(std::string_view text) const {
  if (text.size() > kMostBytes) {
    return InvalidArgument("a text has ", text.size(), " bytes; at most ", kMostBytes, " may be");
  }
  std::string replaced;
  if (!IsWellFormed(text)) text = replaced = WellFormed(text);
  std::vector<Piece> pieces;
  parts_->added.SplitRaw(text, pieces);
  std::vector<int32_t> ids;
  for (const Piece& piece : pieces) {
    if (piece.token != Piece::kNoToken) {
      ids.push_back(piece.token);
    } else {
      const std::string_view part = text.substr(piece.begin, piece.end - piece.begin);
      SWIZZLE_RETURN_IF_ERROR(AddIds(*parts_, part, piece.from_start, ids));
    }
  }
  return ids;
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
  const std::string_view read = Read(text, options), read_pair = pair ? Read(*pair, options) : std::string_view();
  const bool cuts_text = read.size() < text.size(), cuts_pair = pair && read_pair.size() < pair->size();
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int32_t> first, Ids(read));
  std::optional<std::vector<int32_t>> second;
  if (pair) {
    SWIZZLE_ASSIGN_OR_RETURN(second, Ids(read_pair));
  }
  if (!options.truncate && (cuts_text || cuts_pair)) {
    const int64_t added = options.add_special_tokens ? parts_->layout.AddedTo(pair.has_value()) : 0;
    const int64_t most = MostTokens(options), tokens = std::ssize(first) + (second ? std::ssize(*second) : 0);
    if (added + tokens > most) {
      return MakeError(StatusCode::kOutOfRange, pair ? "the pair of texts has" : "the text has", " more than ", most,
                       " tokens; at most so many may be. Send a shorter one, or have it truncated");
    }
    if (cuts_text) {
      SWIZZLE_ASSIGN_OR_RETURN(first, Ids(text));
    }
    if (cuts_pair) {
      SWIZZLE_ASSIGN_OR_RETURN(second, Ids(*pair));
    }
  }
  SWIZZLE_ASSIGN_OR_RETURN(Encoding encoding, Assemble(std::move(first), std::move(second), options));
  encoding.truncated |= options.truncate && (cuts_text || cuts_pair);
  return encoding;
}

StatusOr<Encoding> Tokenizer::Assemble(std::vector<int32_t> first, std::optional<std::vector<int32_t>> second,
                                       const EncodeOptions& options) const {
  const Template& layout = parts_->layout;
  const int64_t added = options.add_special_tokens ? layout.AddedTo(second.has_value()) : 0;
  const int64_t max_tokens = MostTokens(options);
  const int64_t tokens = added + static_cast<int64_t>(first.size() + (second ? second->size() : 0));
  Encoding encoding;
  if (max_tokens > 0 && tokens > max_tokens) {
    if (!options.truncate) {
      return MakeError(StatusCode::kOutOfRange, second ? "the pair of texts has " : "the text has ", tokens,
                       " tokens; at most ", max_tokens, " may be. Send a shorter one, or have it truncated");
    }
    if (added > max_tokens) {
      return InvalidArgument("of at most ", max_tokens, " tokens the special ones take ", added, "; allow for more");
    }
    SWIZZLE_RETURN_IF_ERROR(Truncate(parts_->truncation, max_tokens - added, first, second ? &*second : nullptr));
    encoding.truncated = true;
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
        break;
    }
  }
  return encoding;
}

int64_t Tokenizer::vocabulary_size() const { return static_cast<int64_t>(parts_->tokens.size()); }
const SpecialIds& Tokenizer::special_ids() const { return parts_->special; }
int64_t Tokenizer::max_tokens() const { return parts_->truncation.max_tokens; }
int64_t Tokenizer::model_max_tokens() const { return parts_->model_max_tokens; }

std::string_view Tokenizer::Token(int32_t id) const {
  return id < 0 || id >= vocabulary_size() ? std::string_view() : parts_->tokens[static_cast<size_t>(id)];
}

}  // namespace swizzle::text
