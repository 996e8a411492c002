#include "model_loader/text/decoders.h"

#include <optional>
#include <string_view>
#include <utility>

#include "model_loader/text/byte_level.h"
#include "model_loader/text/byte_tokens.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

constexpr size_t kMostBytes = size_t{1} << 28;  // of what Replace makes of a token

std::string Joined(const std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

// Each that stands in it from left to right. REQUIRES: `from` is not empty.
void ReplaceAll(std::string_view from, std::string_view to, std::string& text) {
  size_t found = text.find(from);
  if (found == std::string::npos) return;
  std::string made;
  size_t done = 0;
  for (; found != std::string::npos; found = text.find(from, done)) {
    made.append(text, done, found - done).append(to);
    done = found + from.size();
  }
  text = made.append(text, done);
}

// One after the other, as later ones see what earlier ones left.
void CleanUp(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kChanges) ReplaceAll(from, to, text);
}

class WordPieceDecoder final : public Decoder {
 public:
  explicit WordPieceDecoder(WordPieceDecoding options) : options_(std::move(options)) {}

  Status Apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) token = token.starts_with(options_.prefix) ? token.substr(options_.prefix.size()) : " " + token;
      if (options_.cleanup) CleanUp(token);
    }
    return {};
  }

 private:
  const WordPieceDecoding options_;
};

class ByteLevelDecoder final : public Decoder {
 public:
  Status Apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) {
      // A token with another character is one that was added, and stands for itself.
      if (!AppendBytesOf(token, bytes)) bytes += token;
    }
    tokens = {WellFormed(bytes)};
    return {};
  }
};

class MetaspaceDecoder final : public Decoder {
 public:
  explicit MetaspaceDecoder(MetaspaceOptions options) : options_(std::move(options)) {}

  Status Apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool was_added = i == 0 && options_.prepend != PrependScheme::kNever;
      ReplaceAll(options_.replacement, was_added ? "" : " ", tokens[i]);
    }
    return {};
  }

 private:
  const MetaspaceOptions options_;
};

class BytePairDecoder final : public Decoder {
 public:
  explicit BytePairDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  Status Apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) ReplaceAll(suffix_, i + 1 == tokens.size() ? "" : " ", tokens[i]);
    return {};
  }

 private:
  const std::string suffix_;
};

class ByteFallbackDecoder final : public Decoder {
 public:
  Status Apply(std::vector<std::string>& tokens) const override {
    constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
    std::vector<std::string> made;
    std::string bytes;
    const auto end_bytes = [&] {
      if (bytes.empty()) return;
      std::string replaced;
      for (size_t i = 0; i < bytes.size(); ++i) replaced += kReplacement;
      made.push_back(IsWellFormed(bytes) ? bytes : replaced);
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const std::optional<char> byte = ByteTokens::ByteOf(token)) {
        bytes += *byte;
        continue;
      }
      end_bytes();
      made.push_back(std::move(token));
    }
    end_bytes();
    tokens = std::move(made);
    return {};
  }
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}

  Status Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::vector<Range> found;
      SWIZZLE_RETURN_IF_ERROR(pattern_.FindAll(token, found));
      if (found.empty()) continue;
      std::string made;
      size_t done = 0;
      for (const Range match : found) {
        made.append(token, done, match.begin - done).append(content_);
        done = match.end;
        if (made.size() > kMostBytes) return InvalidArgument("the tokenizer's Replace makes this text too long");
      }
      token = made.append(token, done);
    }
    return {};
  }

 private:
  const Pattern pattern_;
  const std::string content_;
};

class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string character, int64_t start, int64_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}

  Status Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (int64_t i = 0; i < start_ && token.starts_with(character_); ++i) token.erase(0, character_.size());
      for (int64_t i = 0; i < stop_ && token.ends_with(character_); ++i) token.resize(token.size() - character_.size());
    }
    return {};
  }

 private:
  const std::string character_;  // not empty
  const int64_t start_, stop_;
};

class FuseDecoder final : public Decoder {
 public:
  Status Apply(std::vector<std::string>& tokens) const override {
    tokens = {Joined(tokens)};
    return {};
  }
};

class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(std::vector<OwnedDecoder> parts) : parts_(std::move(parts)) {}

  Status Apply(std::vector<std::string>& tokens) const override {
    for (const OwnedDecoder& part : parts_) SWIZZLE_RETURN_IF_ERROR(part->Apply(tokens));
    return {};
  }

 private:
  const std::vector<OwnedDecoder> parts_;
};

}  // namespace

OwnedDecoder MakeWordPieceDecoder(WordPieceDecoding options) {
  return std::make_unique<WordPieceDecoder>(std::move(options));
}
OwnedDecoder MakeByteLevelDecoder() { return std::make_unique<ByteLevelDecoder>(); }
OwnedDecoder MakeMetaspaceDecoder(MetaspaceOptions options) {
  return std::make_unique<MetaspaceDecoder>(std::move(options));
}
OwnedDecoder MakeBytePairDecoder(std::string suffix) { return std::make_unique<BytePairDecoder>(std::move(suffix)); }
OwnedDecoder MakeByteFallbackDecoder() { return std::make_unique<ByteFallbackDecoder>(); }
OwnedDecoder MakeReplaceDecoder(Pattern pattern, std::string content) {
  return std::make_unique<ReplaceDecoder>(std::move(pattern), std::move(content));
}
OwnedDecoder MakeStripDecoder(std::string character, int64_t start, int64_t stop) {
  return std::make_unique<StripDecoder>(std::move(character), start, stop);
}
OwnedDecoder MakeFuseDecoder() { return std::make_unique<FuseDecoder>(); }
OwnedDecoder MakeDecoderSequence(std::vector<OwnedDecoder> parts) {
  return std::make_unique<DecoderSequence>(std::move(parts));
}

}  // namespace swizzle::text
