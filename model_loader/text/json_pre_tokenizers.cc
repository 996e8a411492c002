#include "model_loader/text/json_parts.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

using Json = nlohmann::json;
using PreTokenizerResult = StatusOr<OwnedPreTokenizer>;

struct NamedDelimiters {
  std::string_view name;
  Delimiters delimiters;
};
constexpr NamedDelimiters kDelimiters[] = {
    {"Removed", Delimiters::kRemoved},
    {"Isolated", Delimiters::kIsolated},
    {"MergedWithPrevious", Delimiters::kMergedWithPrevious},
    {"MergedWithNext", Delimiters::kMergedWithNext},
    {"Contiguous", Delimiters::kContiguous},
};

StatusOr<Delimiters> ReadDelimiters(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string name, fields.Text("behavior", "Isolated"));
  for (const NamedDelimiters& named : kDelimiters) {
    if (named.name == name) return named.delimiters;
  }
  return fields.Wrong("behavior", "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

PreTokenizerResult ReadByteLevel(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(const bool add_prefix_space, fields.Flag("add_prefix_space", true));
  SWIZZLE_ASSIGN_OR_RETURN(const bool use_regex, fields.Flag("use_regex", true));
  return MakeByteLevel(add_prefix_space, use_regex);
}

PreTokenizerResult ReadMetaspacePreTokenizer(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(MetaspaceOptions options, ReadMetaspaceOptions(fields));
  return MakeMetaspace(std::move(options));
}

PreTokenizerResult ReadSplit(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(fields));
  SWIZZLE_ASSIGN_OR_RETURN(const Delimiters delimiters, ReadDelimiters(fields));
  SWIZZLE_ASSIGN_OR_RETURN(const bool inverted, fields.Flag("invert", false));
  return MakeSplit(std::move(pattern), delimiters, inverted);
}

PreTokenizerResult ReadPunctuation(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(const Delimiters delimiters, ReadDelimiters(fields));
  return MakePunctuation(delimiters);
}

PreTokenizerResult ReadDigits(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(const bool individual, fields.Flag("individual_digits", false));
  return MakeDigits(individual);
}

PreTokenizerResult ReadCharDelimiterSplit(const Fields& fields, int) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string delimiter, ReadCharacter(fields, "delimiter", ""));
  return MakeCharDelimiterSplit(CodePointAt(delimiter, 0).value);
}

PreTokenizerResult ReadPreTokenizers(const Fields& fields, int depth) {
  const auto parts = [&] { return ReadSequence<OwnedPreTokenizer>(fields, "pretokenizers", depth, ReadPreTokenizer); };
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<OwnedPreTokenizer> sequence, parts());
  return MakePreTokenizerSequence(std::move(sequence));
}

using PreTokenizerRow = PartRow<OwnedPreTokenizer>;
constexpr PreTokenizerRow kPreTokenizers[] = {
    {"BertPreTokenizer", ReadPlain<OwnedPreTokenizer, MakeBertPreTokenizer>},
    {"ByteLevel", ReadByteLevel},
    {"CharDelimiterSplit", ReadCharDelimiterSplit},
    {"Digits", ReadDigits},
    {"Metaspace", ReadMetaspacePreTokenizer},
    {"Punctuation", ReadPunctuation},
    {"Sequence", ReadPreTokenizers},
    {"Split", ReadSplit},
    {"Whitespace", ReadPlain<OwnedPreTokenizer, MakeWhitespace>},
    {"WhitespaceSplit", ReadPlain<OwnedPreTokenizer, MakeWhitespaceSplit>},
};

}  // namespace

StatusOr<std::string> ReadCharacter(const Fields& fields, const char* name, const std::string& absent) {
  SWIZZLE_ASSIGN_OR_RETURN(std::string character, fields.Text(name, absent));
  if (character.empty() || BytesOf(character[0]) != character.size()) return fields.Wrong(name, "one character");
  return character;
}

StatusOr<MetaspaceOptions> ReadMetaspaceOptions(const Fields& fields) {
  MetaspaceOptions options;
  SWIZZLE_ASSIGN_OR_RETURN(options.replacement, ReadCharacter(fields, "replacement", options.replacement));
  SWIZZLE_ASSIGN_OR_RETURN(options.split, fields.Flag("split", true));
  SWIZZLE_ASSIGN_OR_RETURN(const bool add_prefix_space, fields.Flag("add_prefix_space", true));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string scheme,
                           fields.Text("prepend_scheme", add_prefix_space ? "always" : "never"));
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return fields.Wrong("prepend_scheme", "always, first or never");
  }
  options.prepend = scheme == "always"  ? PrependScheme::kAlways
                    : scheme == "first" ? PrependScheme::kFirst
                                        : PrependScheme::kNever;
  return options;
}

StatusOr<OwnedPreTokenizer> ReadPreTokenizer(const Json& json, int depth) {
  SWIZZLE_ASSIGN_OR_RETURN(const PreTokenizerRow* row, FindRow(json, kPreTokenizers, "pre_tokenizer"));
  return row->read(Fields(json, Concat("its pre_tokenizer ", row->type)), depth);
}

}  // namespace swizzle::text
