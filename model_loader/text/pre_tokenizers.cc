#include "model_loader/text/pre_tokenizers.h"

#include <algorithm>
#include <utility>

#include "model_loader/text/byte_level.h"
#include "model_loader/text/characters.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

// A piece's part while it is split; perhaps empty.
struct Part {
  size_t begin, end;
  bool delimiter;
};

// Delimiters, from left to right, with what stands between them.
void AddParts(const std::vector<Range>& delimiters, size_t bytes, bool inverted, std::vector<Part>& parts) {
  size_t last = 0;
  for (const Range delimiter : delimiters) {
    if (last != delimiter.begin) parts.push_back({last, delimiter.begin, inverted});
    parts.push_back({delimiter.begin, delimiter.end, !inverted});
    last = delimiter.end;
  }
  if (last != bytes) parts.push_back({last, bytes, inverted});
}

// Whether two neighbours stay together.
bool StayTogether(const Part& first, const Part& second, Delimiters delimiters) {
  switch (delimiters) {
    case Delimiters::kRemoved:
    case Delimiters::kIsolated:
      return false;
    case Delimiters::kMergedWithPrevious:
      return !first.delimiter && second.delimiter;
    case Delimiters::kMergedWithNext:
      return first.delimiter && !second.delimiter;
    case Delimiters::kContiguous:
      return first.delimiter == second.delimiter;
  }
  return false;
}

void Arrange(std::vector<Part>& parts, Delimiters delimiters) {
  if (delimiters == Delimiters::kRemoved) std::erase_if(parts, [](const Part& part) { return part.delimiter; });
  size_t kept = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && StayTogether(parts[i - 1], parts[i], delimiters)) {
      parts[kept - 1].end = parts[i].end;
    } else {
      parts[kept++] = parts[i];
    }
  }
  parts.resize(kept);
}

// Splits each piece that is no token at what find(text, delimiters) appends, which returns a Status.
template <typename Find>
Status SplitEach(Pieces& pieces, Delimiters arrangement, bool inverted, Find&& find) {
  std::vector<Piece> result;
  result.reserve(pieces.list.size());
  std::vector<Range> delimiters;
  std::vector<Part> parts;
  for (const Piece& piece : pieces.list) {
    if (piece.token != Piece::kNoToken) {
      result.push_back(piece);
      continue;
    }
    delimiters.clear();
    parts.clear();
    SWIZZLE_RETURN_IF_ERROR(find(pieces.Of(piece), delimiters));
    AddParts(delimiters, piece.end - piece.begin, inverted, parts);
    Arrange(parts, arrangement);
    for (const Part& part : parts) {
      if (part.begin == part.end) continue;
      result.push_back(
          {piece.begin + part.begin, piece.begin + part.end, Piece::kNoToken, piece.from_start && part.begin == 0});
    }
  }
  pieces.list = std::move(result);
  return {};
}

// The same at every character that is(c).
template <typename Is>
Status SplitAtCharacters(Pieces& pieces, Delimiters arrangement, Is&& is) {
  return SplitEach(pieces, arrangement, /*inverted=*/false, [&](std::string_view text, std::vector<Range>& delimiters) {
    for (size_t at = 0; at < text.size();) {
      const CodePoint c = CodePointAt(text, at);
      if (is(c.value)) delimiters.push_back({at, at + c.bytes});
      at += c.bytes;
    }
    return Status();
  });
}

// Writes the text again, piece by piece: put(piece, rewritten) appends what the piece becomes, and, to
// `rewritten.list`, the pieces that it is split into. Tokens stay.
template <typename Put>
void RewriteEach(Pieces& pieces, Put&& put) {
  Pieces rewritten{.text = {}, .list = {}, .traced = pieces.traced};
  rewritten.text.reserve(pieces.text.size() + pieces.text.size() / 8);
  rewritten.list.reserve(pieces.list.size());
  for (const Piece& piece : pieces.list) {
    if (piece.token == Piece::kNoToken) {
      put(piece, rewritten);
      continue;
    }
    const size_t begin = rewritten.text.size();
    rewritten.text += pieces.Of(piece);
    for (size_t at = piece.begin; pieces.traced && at < piece.end; ++at)
      rewritten.origins.push_back(pieces.origins[at]);
    rewritten.list.push_back({begin, rewritten.text.size(), piece.token, piece.from_start});
  }
  pieces = std::move(rewritten);
}

class Bert final : public PreTokenizer {
 public:
  Status Apply(Pieces& pieces) const override {
    std::vector<Piece> result;
    result.reserve(pieces.list.size() + pieces.text.size() / 4);
    for (const Piece& piece : pieces.list) {
      piece.token == Piece::kNoToken ? Split(pieces, piece, result) : result.push_back(piece);
    }
    pieces.list = std::move(result);
    return {};
  }

 private:
  static void Split(const Pieces& pieces, const Piece& piece, std::vector<Piece>& result) {
    size_t word = piece.begin;  // where the one began that goes on
    const auto add = [&](size_t begin, size_t end) {
      if (begin < end) result.push_back({begin, end, Piece::kNoToken, piece.from_start && begin == piece.begin});
    };
    for (size_t at = piece.begin; at < piece.end;) {
      const CodePoint c = CodePointAt(pieces.text, at);
      const bool space = IsWhiteSpace(c.value);
      if (space || IsPunctuation(c.value)) {
        add(word, at);
        word = at + c.bytes;
        if (!space) add(at, word);
      }
      at += c.bytes;
    }
    add(word, piece.end);
  }
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex) : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  Status Apply(Pieces& pieces) const override {
    std::string prefixed;
    RewriteEach(pieces, [&](const Piece& piece, Pieces& rewritten) {
      std::string_view text = pieces.Of(piece);
      size_t prefix = 0;  // which stems from what stands behind it
      if (add_prefix_space_ && !text.starts_with(' ')) {
        prefixed = " ";
        prefixed += text;
        text = prefixed;
        prefix = 1;
      }
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = use_regex_ ? WordEnd(text, begin) : text.size();
        const size_t from = rewritten.text.size();
        AppendByteCharacters(text.substr(begin, end - begin), rewritten.text);
        for (size_t at = begin; pieces.traced && at < end; ++at) {
          const size_t character = ByteCharacterBytes(text[at]);
          const Range origin = pieces.origins[piece.begin + std::max(at, prefix) - prefix];
          rewritten.origins.insert(rewritten.origins.end(), character, origin);
        }
        rewritten.list.push_back({from, rewritten.text.size(), Piece::kNoToken, piece.from_start && begin == 0});
        begin = end;
      }
    });
    return {};
  }

 private:
  const bool add_prefix_space_, use_regex_;
};

class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(MetaspaceOptions options) : options_(std::move(options)) {}

  Status Apply(Pieces& pieces) const override {
    RewriteEach(pieces, [&](const Piece& piece, Pieces& rewritten) { Put(pieces, piece, rewritten); });
    return {};
  }

 private:
  void Put(const Pieces& pieces, const Piece& piece, Pieces& rewritten) const {
    const std::string& replacement = options_.replacement;
    const std::string_view old = pieces.Of(piece);
    const size_t begin = rewritten.text.size();
    const bool has_prefix = old.starts_with(' ') || old.starts_with(replacement);
    const bool prepend =
        options_.prepend == PrependScheme::kAlways || (options_.prepend == PrependScheme::kFirst && piece.from_start);
    if (prepend && !has_prefix) rewritten.text += replacement;
    if (pieces.traced) rewritten.origins.resize(rewritten.text.size(), pieces.origins[piece.begin]);
    for (size_t at = 0; at < old.size(); ++at) {
      old[at] == ' ' ? rewritten.text += replacement : rewritten.text += old[at];
      if (pieces.traced) rewritten.origins.resize(rewritten.text.size(), pieces.origins[piece.begin + at]);
    }
    const size_t end = rewritten.text.size();
    const auto add = [&](size_t from, size_t to) {
      rewritten.list.push_back({from, to, Piece::kNoToken, piece.from_start && from == begin});
    };
    size_t word = begin;
    while (options_.split) {
      const size_t next = rewritten.text.find(replacement, word + 1);
      if (next == std::string::npos) break;
      add(word, next);
      word = next;
    }
    add(word, end);
  }

  const MetaspaceOptions options_;
};

class Split final : public PreTokenizer {
 public:
  Split(Pattern pattern, Delimiters delimiters, bool inverted)
      : pattern_(std::move(pattern)), delimiters_(delimiters), inverted_(inverted) {}
  Status Apply(Pieces& pieces) const override {
    return SplitEach(pieces, delimiters_, inverted_, [&](std::string_view text, std::vector<Range>& delimiters) {
      return pattern_.FindAll(text, delimiters);
    });
  }

 private:
  const Pattern pattern_;
  const Delimiters delimiters_;
  const bool inverted_;
};

// Of words and of what is neither word nor white space, as \w+|[^\w\s]+ matches them.
class Whitespace final : public PreTokenizer {
 public:
  Status Apply(Pieces& pieces) const override {
    return SplitEach(
        pieces, Delimiters::kRemoved, /*inverted=*/true, [](std::string_view text, std::vector<Range>& words) {
          enum class Kind { kSpace, kWord, kOther };
          Kind last = Kind::kSpace;
          for (size_t at = 0; at < text.size();) {
            const CodePoint c = CodePointAt(text, at);
            const Kind kind = IsWord(c.value) ? Kind::kWord : IsWhiteSpace(c.value) ? Kind::kSpace : Kind::kOther;
            if (kind != Kind::kSpace && kind == last) words.back().end += c.bytes;
            if (kind != Kind::kSpace && kind != last) words.push_back({at, at + c.bytes});
            last = kind;
            at += c.bytes;
          }
          return Status();
        });
  }
};

// Splits at the characters that Is(c).
template <typename Is>
class AtCharacters final : public PreTokenizer {
 public:
  AtCharacters(Delimiters delimiters, Is is) : delimiters_(delimiters), is_(is) {}
  Status Apply(Pieces& pieces) const override { return SplitAtCharacters(pieces, delimiters_, is_); }

 private:
  const Delimiters delimiters_;
  const Is is_;
};

template <typename Is>
OwnedPreTokenizer MakeAtCharacters(Delimiters delimiters, Is is) {
  return std::make_unique<AtCharacters<Is>>(delimiters, is);
}

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<OwnedPreTokenizer> parts) : parts_(std::move(parts)) {}
  Status Apply(Pieces& pieces) const override {
    for (const auto& part : parts_) SWIZZLE_RETURN_IF_ERROR(part->Apply(pieces));
    return {};
  }

 private:
  const std::vector<OwnedPreTokenizer> parts_;
};

}  // namespace

OwnedPreTokenizer MakeBertPreTokenizer() { return std::make_unique<Bert>(); }
OwnedPreTokenizer MakeWhitespace() { return std::make_unique<Whitespace>(); }

OwnedPreTokenizer MakeByteLevel(bool add_prefix_space, bool use_regex) {
  return std::make_unique<ByteLevel>(add_prefix_space, use_regex);
}

OwnedPreTokenizer MakeWhitespaceSplit() { return MakeAtCharacters(Delimiters::kRemoved, IsWhiteSpace); }

OwnedPreTokenizer MakeMetaspace(MetaspaceOptions options) { return std::make_unique<Metaspace>(std::move(options)); }

OwnedPreTokenizer MakeSplit(Pattern pattern, Delimiters delimiters, bool inverted) {
  return std::make_unique<Split>(std::move(pattern), delimiters, inverted);
}

OwnedPreTokenizer MakePunctuation(Delimiters delimiters) { return MakeAtCharacters(delimiters, IsPunctuation); }

OwnedPreTokenizer MakeDigits(bool individual) {
  return MakeAtCharacters(individual ? Delimiters::kIsolated : Delimiters::kContiguous, IsNumber);
}

OwnedPreTokenizer MakeCharDelimiterSplit(char32_t delimiter) {
  return MakeAtCharacters(Delimiters::kRemoved, [delimiter](char32_t c) { return c == delimiter; });
}

OwnedPreTokenizer MakePreTokenizerSequence(std::vector<OwnedPreTokenizer> parts) {
  return std::make_unique<Sequence>(std::move(parts));
}

}  // namespace swizzle::text
