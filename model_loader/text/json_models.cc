#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

#include "model_loader/files/printable_name.h"
#include "model_loader/text/json_parts.h"

namespace swizzle::text {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostCharacters = int64_t{1} << 40;  // of a word

// {"token": id, ...}.
StatusOr<TokenIds> ReadVocabulary(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json* object, fields.Object("vocab"));
  TokenIds ids;
  ids.reserve(object->size());
  for (const auto& [token, id] : object->items()) {
    ids.push_back({token, IdOf(id)});
    if (ids.back().value < 0) {
      return InvalidArgument("the id of the token ", QuotedName(token), " in ", fields.what(), " is ", Shown(id),
                             "; it has to be a whole number below ", kMostTokens);
    }
  }
  return ids;
}

std::vector<std::string> Spellings(const TokenIds& ids) {
  int32_t most = -1;
  for (const auto& [token, id] : ids) most = std::max(most, id);
  std::vector<std::string> tokens(static_cast<size_t>(most + 1));
  for (const auto& [token, id] : ids) tokens[static_cast<size_t>(id)] = token;
  return tokens;
}

StatusOr<ReadModel> ReadWordLevel(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(TokenIds ids, ReadVocabulary(fields));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string unknown, fields.Text("unk_token", ""));
  const size_t count = ids.size();
  std::vector<std::string> tokens = Spellings(ids);
  return ReadModel{MakeWordLevel(std::move(ids), {unknown}), std::move(tokens), count};
}

StatusOr<ReadModel> ReadWordPiece(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(TokenIds ids, ReadVocabulary(fields));
  WordPieceOptions options;
  SWIZZLE_ASSIGN_OR_RETURN(options.unknown, fields.Text("unk_token", options.unknown));
  SWIZZLE_ASSIGN_OR_RETURN(options.prefix, fields.Text("continuing_subword_prefix", options.prefix));
  SWIZZLE_ASSIGN_OR_RETURN(options.most_characters,
                           fields.Whole("max_input_chars_per_word", kMostCharacters, options.most_characters));
  const size_t count = ids.size();
  std::vector<std::string> tokens = Spellings(ids);
  SWIZZLE_ASSIGN_OR_RETURN(OwnedTokenModel model, MakeWordPiece(std::move(ids), options));
  return ReadModel{std::move(model), std::move(tokens), count};
}

// ["a b", ...], or [["a", "b"], ...].
StatusOr<Merges> ReadMerges(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json* list, fields.Array("merges"));
  Merges merges;
  merges.reserve(list->size());
  for (const Json& merge : *list) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string both = merge.is_string() ? merge.get<std::string>() : "";
    const size_t blank = both.find(' ');
    if (blank == std::string::npos || both.find(' ', blank + 1) != std::string::npos) {
      return InvalidArgument("merge ", merges.size(), " of ", fields.what(), " is ", Shown(merge),
                             "; it has to be two tokens");
    }
    merges.emplace_back(both.substr(0, blank), both.substr(blank + 1));
  }
  return merges;
}

StatusOr<ReadModel> ReadBytePairs(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(TokenIds ids, ReadVocabulary(fields));
  SWIZZLE_ASSIGN_OR_RETURN(const Merges merges, ReadMerges(fields));
  BytePairOptions options;
  if (fields.Has("unk_token")) {
    SWIZZLE_ASSIGN_OR_RETURN(options.unknown, fields.Text("unk_token"));
  }
  SWIZZLE_ASSIGN_OR_RETURN(options.prefix, fields.Text("continuing_subword_prefix", ""));
  SWIZZLE_ASSIGN_OR_RETURN(options.suffix, fields.Text("end_of_word_suffix", ""));
  SWIZZLE_ASSIGN_OR_RETURN(options.fuse_unknown, fields.Flag("fuse_unk", false));
  SWIZZLE_ASSIGN_OR_RETURN(options.byte_fallback, fields.Flag("byte_fallback", false));
  SWIZZLE_ASSIGN_OR_RETURN(options.ignore_merges, fields.Flag("ignore_merges", false));
  const size_t count = ids.size();
  std::vector<std::string> tokens = Spellings(ids);
  SWIZZLE_ASSIGN_OR_RETURN(OwnedTokenModel model, MakeBytePairs(std::move(ids), merges, options));
  return ReadModel{std::move(model), std::move(tokens), count};
}

// A score as the `tokenizers` library has it, whose parser of JSON (serde_json) rounds twice: the digits become a
// number, which is then divided by a power of ten. The last bit that may differ decides between ways whose sums are
// equal. A number's shortest digits, which every writer of such files gives, are those that stand in the file.
double TwiceRounded(double number) {
  std::array<char, 32> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::scientific);
  if (error != std::errc()) return number;
  uint64_t digits = 0;
  int decimals = 0;
  bool behind_point = false;
  const char* at = text.data();
  for (; at != end && *at != 'e'; ++at) {
    if (*at == '.') behind_point = true;
    if (*at < '0' || *at > '9') continue;
    digits = digits * 10 + static_cast<uint64_t>(*at - '0');
    if (behind_point) ++decimals;
  }
  int exponent = 0;
  if (at != end) std::from_chars(at + (at[1] == '+' ? 2 : 1), end, exponent);
  exponent -= decimals;
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                       1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
                                       1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27};
  if (exponent > 0 || -exponent >= static_cast<int>(std::size(kPowers))) return number;
  return std::copysign(static_cast<double>(digits) / kPowers[-exponent], number);
}

// Of [["token", score], ...].
StatusOr<ReadModel> ReadUnigram(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json* list, fields.Array("vocab"));
  if (list->size() > static_cast<size_t>(kMostTokens)) {
    return InvalidArgument(fields.what(), " has ", list->size(), " tokens; at most ", kMostTokens, " are supported");
  }
  std::vector<ScoredToken> vocabulary;
  std::vector<std::string> tokens;
  for (const Json& scored : *list) {
    if (!scored.is_array() || scored.size() != 2 || !scored[0].is_string() || !scored[1].is_number()) {
      return InvalidArgument("token ", tokens.size(), " of ", fields.what(), " is ", Shown(scored),
                             "; it has to be a token and its score");
    }
    tokens.push_back(scored[0].get<std::string>());
    vocabulary.push_back({tokens.back(), TwiceRounded(scored[1].get<double>())});
  }
  UnigramOptions options;
  if (fields.Has("unk_id")) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t unknown, fields.Whole("unk_id", kMostTokens));
    options.unknown = static_cast<int32_t>(unknown);
  }
  SWIZZLE_ASSIGN_OR_RETURN(options.byte_fallback, fields.Flag("byte_fallback", false));
  SWIZZLE_ASSIGN_OR_RETURN(OwnedTokenModel model, MakeUnigram(vocabulary, options));
  return ReadModel{std::move(model), std::move(tokens), vocabulary.size()};
}

struct ModelRow {
  std::string_view type;
  StatusOr<ReadModel> (*read)(const Fields&);
};
constexpr ModelRow kModels[] = {
    {"BPE", ReadBytePairs},
    {"Unigram", ReadUnigram},
    {"WordLevel", ReadWordLevel},
    {"WordPiece", ReadWordPiece},
};

// Old files do not say it.
const char* TypeByFields(const Fields& fields) {
  if (fields.Has("merges")) return "BPE";
  if (fields.Has("continuing_subword_prefix")) return "WordPiece";
  const Json* vocabulary = fields.Find("vocab");
  return vocabulary != nullptr && vocabulary->is_array() ? "Unigram" : "WordLevel";
}

}  // namespace

StatusOr<ReadModel> ReadTokenModel(const Json& json) {
  const Fields untyped(json, "its model");
  const Json typed = {{"type", TypeByFields(untyped)}};
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRow* row, FindRow(untyped.Has("type") ? json : typed, kModels, "model"));
  return row->read(Fields(json, Concat("its model ", row->type)));
}

}  // namespace swizzle::text
