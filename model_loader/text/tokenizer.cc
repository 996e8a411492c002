#include "model_loader/text/tokenizer.h"

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

StatusOr<Encoding> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, Ids(text));
  return Assemble(std::move(ids), std::nullopt, options);
}

StatusOr<Encoding> Tokenizer::Encode(std::string_view text, std::string_view pair, const EncodeOptions& options) const {
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int32_t> first, Ids(text));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int32_t> second, Ids(pair));
  return Assemble(std::move(first), std::move(second), options);
}

StatusOr<Encoding> Tokenizer::Assemble(std::vector<int32_t> first, std::optional<std::vector<int32_t>> second,
                                       const EncodeOptions& options) const {
  const Template& layout = parts_->layout;
  const int64_t added = options.add_special_tokens ? layout.AddedTo(second.has_value()) : 0;
  const int64_t max_tokens = options.max_tokens > 0 ? options.max_tokens : parts_->truncation.max_tokens;
  const int64_t tokens = added + static_cast<int64_t>(first.size() + (second ? second->size() : 0));
  Encoding encoding;
  if (max_tokens > 0 && tokens > max_tokens) {
    if (!options.truncate) {
      return InvalidArgument("the text has ", tokens, " tokens; at most ", max_tokens,
                             " may be. Send a shorter one, or have it truncated");
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

std::string_view Tokenizer::Token(int32_t id) const {
  return id < 0 || id >= vocabulary_size() ? std::string_view() : parts_->tokens[static_cast<size_t>(id)];
}

}  // namespace swizzle::text
