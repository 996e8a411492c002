#include "model_loader/text/normalizers.h"

#include <algorithm>
#include <utility>

#include "model_loader/text/byte_level.h"
#include "model_loader/text/graphemes.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

constexpr char32_t kReplacementCharacter = 0xFFFD;
// Of what Replace makes of a text, and of what is kept of its origins.
constexpr size_t kMostBytes = size_t{1} << 28;

// Calls put(c, result) for each character, which appends what it becomes.
template <typename Put>
void Rewrite(NormalText& text, Put&& put) {
  std::string result;
  std::vector<Range> origins;
  result.reserve(text.text.size());
  size_t start_bytes = 0;
  for (size_t at = 0; at < text.text.size();) {
    const CodePoint c = CodePointAt(text.text, at);
    put(c.value, result);
    if (at < text.start_bytes) start_bytes = result.size();
    if (text.traced) origins.resize(result.size(), text.origins[at]);
    at += c.bytes;
  }
  text = {std::move(result), start_bytes, std::move(origins), text.traced};
}

// What the start becomes by itself it is in the whole, but where marks behind it are put before its own, or joined to
// it.
Status ToForm(NormalForm form, NormalText& text) {
  std::vector<Range> origins;
  if (text.traced) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Change> changes, ChangesTo(text.text, form));
    origins = text.OriginsAfter(changes);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::string start, Normalised(text.text.substr(0, text.start_bytes), form));
  SWIZZLE_ASSIGN_OR_RETURN(text.text, Normalised(text.text, form));
  auto same = static_cast<size_t>(std::ranges::mismatch(start, text.text).in1 - start.begin());
  while (same > 0 && same < text.text.size() && !BeginsCharacter(text.text[same])) --same;
  text.start_bytes = start.empty() ? 0 : std::max(same, BytesOf(text.text[0]));
  if (text.traced) origins.resize(text.text.size(), Range{0, 0});
  text.origins = std::move(origins);
  return {};
}

// A normaliser by what it does to single characters.
template <typename Put>
class ByCharacter final : public Normalizer {
 public:
  explicit ByCharacter(Put put) : put_(std::move(put)) {}
  Status Apply(NormalText& text) const override {
    Rewrite(text, put_);
    return {};
  }

 private:
  const Put put_;
};

template <typename Put>
OwnedNormalizer MakeByCharacter(Put put) {
  return std::make_unique<ByCharacter<Put>>(std::move(put));
}

class Bert final : public Normalizer {
 public:
  explicit Bert(BertNormalization options) : options_(options) {}

  Status Apply(NormalText& text) const override {
    if (IsAscii(text.text)) {
      Rewrite(text, [&](char32_t c, std::string& result) { PutAscii(c, result); });
      return {};
    }
    if (options_.clean_text || options_.handle_chinese_chars) {
      Rewrite(text, [&](char32_t c, std::string& result) { PutClean(c, result); });
    }
    if (options_.strip_accents) SWIZZLE_RETURN_IF_ERROR(ToForm(NormalForm::kNfd, text));
    if (options_.strip_accents || options_.lowercase) {
      Rewrite(text, [&](char32_t c, std::string& result) { PutPlain(c, result); });
    }
    return {};
  }

 private:
  void PutAscii(char32_t c, std::string& result) const {
    if (options_.clean_text) {
      if (IsControl(c)) return;
      if (IsWhiteSpace(c)) c = ' ';
    }
    if (options_.lowercase && c >= 'A' && c <= 'Z') c += 'a' - 'A';
    result += static_cast<char>(c);
  }

  void PutClean(char32_t c, std::string& result) const {
    if (options_.clean_text) {
      if (c == kReplacementCharacter || IsControl(c)) return;
      if (IsWhiteSpace(c)) c = ' ';
    }
    const bool chinese = options_.handle_chinese_chars && IsChineseCharacter(c);
    if (chinese) result += ' ';
    Append(c, result);
    if (chinese) result += ' ';
  }

  void PutPlain(char32_t c, std::string& result) const {
    if (options_.strip_accents && IsNonspacingMark(c)) return;
    options_.lowercase ? AppendLowerCase(c, result) : Append(c, result);
  }

  const BertNormalization options_;
};

class ToNormalForm final : public Normalizer {
 public:
  explicit ToNormalForm(NormalForm form) : form_(form) {}
  Status Apply(NormalText& text) const override { return ToForm(form_, text); }

 private:
  const NormalForm form_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  Status Apply(NormalText& text) const override {
    std::string_view rest = text.text;
    size_t left_out = 0;  // at its beginning
    while (right_ && !rest.empty()) {
      const CodePoint last = CodePointBefore(rest, rest.size());
      if (!IsWhiteSpace(last.value)) break;
      rest.remove_suffix(last.bytes);
    }
    while (left_ && !rest.empty()) {
      const CodePoint first = CodePointAt(rest, 0);
      if (!IsWhiteSpace(first.value)) break;
      rest.remove_prefix(first.bytes);
      left_out += first.bytes;
      text.start_bytes -= std::min(text.start_bytes, first.bytes);
    }
    if (text.traced) {
      const auto begin = text.origins.begin() + static_cast<std::ptrdiff_t>(left_out);
      text.origins = std::vector<Range>(begin, begin + std::ssize(rest));
    }
    text.text = std::string(rest);
    return {};
  }

 private:
  const bool left_, right_;
};

class Replace final : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Status Apply(NormalText& text) const override {
    std::vector<Range> matches;
    SWIZZLE_RETURN_IF_ERROR(pattern_.FindAll(text.text, matches));
    if (matches.empty()) return {};
    NormalText result{.text = {}, .traced = text.traced};
    size_t copied = 0;
    const auto copy_to = [&](size_t end) {
      if (copied < text.start_bytes) result.start_bytes = result.text.size() + std::min(end, text.start_bytes) - copied;
      result.text.append(text.text, copied, end - copied);
      for (; text.traced && copied < end; ++copied) result.origins.push_back(text.origins[copied]);
      copied = end;
    };
    for (const Range match : matches) {
      copy_to(match.begin);
      result.text += content_;
      if (text.traced) {
        result.origins.resize(result.text.size(), match.end > 0 ? text.origins[match.end - 1] : Range{0, 0});
      }
      if (match.begin < text.start_bytes) result.start_bytes = result.text.size();
      copied = match.end;
      const size_t kept = result.text.size() * (text.traced ? sizeof(Range) : 1);
      if (kept > kMostBytes) return InvalidArgument("the tokenizer's Replace makes this text too long");
    }
    copy_to(text.text.size());
    text = std::move(result);
    return {};
  }

 private:
  const Pattern pattern_;
  const std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  Status Apply(NormalText& text) const override {
    if (text.text.empty()) return {};
    if (text.traced) text.origins.insert(text.origins.begin(), prefix_.size(), Range(text.origins[0]));
    text.text.insert(0, prefix_);
    if (text.start_bytes > 0) text.start_bytes += prefix_.size();
    return {};
  }

 private:
  const std::string prefix_;
};

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {}
  Status Apply(NormalText& text) const override {
    constexpr size_t kShortCluster = 6;
    const std::string_view old = text.text;
    std::string result;
    std::vector<Change> changes;
    result.reserve(old.size());
    size_t start_bytes = 0;
    for (size_t at = 0; at < old.size();) {
      const size_t end = GraphemeEnd(old, at);
      const std::string_view cluster = old.substr(at, end - at);
      const auto whole = cluster.size() < kShortCluster ? map_.Shortest(cluster) : std::nullopt;
      const auto put = [&](std::string_view from, std::string_view to) {
        result += to;
        if (text.traced) AddChanges(from, to, changes);
      };
      whole ? put(cluster, whole->text) : PutCharacters(cluster, put);
      if (at < text.start_bytes) start_bytes = result.size();
      at = end;
    }
    std::vector<Range> origins;
    if (text.traced) origins = text.OriginsAfter(changes);
    text = {std::move(result), start_bytes, std::move(origins), text.traced};
    return {};
  }

 private:
  template <typename Put>
  void PutCharacters(std::string_view cluster, Put&& put) const {
    for (size_t at = 0; at < cluster.size();) {
      const std::string_view character = cluster.substr(at, BytesOf(cluster[at]));
      const auto replaced = map_.Shortest(character);
      put(character, replaced ? replaced->text : character);
      at += character.size();
    }
  }

  // One character for one, as far as they go; the last is in the place of the rest, also the last before them.
  static void AddChanges(std::string_view from, std::string_view to, std::vector<Change>& changes) {
    auto spare = static_cast<int64_t>(std::ranges::count_if(from, BeginsCharacter));
    for (size_t at = 0; at < to.size();) {
      const CodePoint c = CodePointAt(to, at);
      changes.push_back({c.value, spare > 0 ? 0 : 1});
      spare = std::max<int64_t>(spare - 1, 0);
      at += c.bytes;
    }
    if (!changes.empty()) changes.back().growth -= spare;
  }

  const Charsmap map_;
};

class Bytes final : public Normalizer {
 public:
  Status Apply(NormalText& text) const override {
    NormalText result{.text = {}, .traced = text.traced};
    for (size_t at = 0; at < text.text.size(); ++at) {
      AppendByteCharacters(std::string_view(text.text).substr(at, 1), result.text);
      if (at < text.start_bytes) result.start_bytes = result.text.size();
      if (text.traced) result.origins.resize(result.text.size(), text.origins[at]);
    }
    text = std::move(result);
    return {};
  }
};

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<OwnedNormalizer> parts) : parts_(std::move(parts)) {}
  Status Apply(NormalText& text) const override {
    for (const auto& part : parts_) SWIZZLE_RETURN_IF_ERROR(part->Apply(text));
    return {};
  }

 private:
  const std::vector<OwnedNormalizer> parts_;
};

bool NmtLeavesOut(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}

bool NmtMakesBlank(char32_t c) {
  constexpr char32_t kOthers[] = {0x09, 0x0A, 0x0C, 0x0D, 0x1680, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
  return (c >= 0x200B && c <= 0x200F) || std::ranges::find(kOthers, c) != std::end(kOthers);
}

}  // namespace

NormalText NormalText::Traced(std::string text, size_t start_bytes) {
  NormalText traced{std::move(text), start_bytes, {}, true};
  for (size_t at = 0; at < traced.text.size();) {
    const size_t end = at + BytesOf(traced.text[at]);
    traced.origins.resize(end, Range{at, end});
    at = end;
  }
  return traced;
}

std::vector<Range> NormalText::OriginsAfter(std::span<const Change> changes) const {
  std::vector<Range> after;
  size_t at = 0;  // what the next one is in the place of
  std::string character;
  for (const Change& change : changes) {
    const size_t from = change.growth > 0 ? at - 1 : at;  // what is added stems from what is before it
    character.clear();
    Append(change.value, character);
    after.insert(after.end(), character.size(), from < origins.size() ? origins[from] : Range{0, 0});
    for (int64_t gone = change.growth; gone <= 0 && at < text.size(); ++gone) at += BytesOf(text[at]);
  }
  return after;
}

OwnedNormalizer MakeBertNormalizer(BertNormalization options) { return std::make_unique<Bert>(options); }
OwnedNormalizer MakeNormalForm(NormalForm form) { return std::make_unique<ToNormalForm>(form); }
OwnedNormalizer MakeStrip(bool left, bool right) { return std::make_unique<Strip>(left, right); }
OwnedNormalizer MakePrepend(std::string prefix) { return std::make_unique<Prepend>(std::move(prefix)); }
OwnedNormalizer MakePrecompiled(Charsmap map) { return std::make_unique<Precompiled>(std::move(map)); }
OwnedNormalizer MakeByteNormalizer() { return std::make_unique<Bytes>(); }

OwnedNormalizer MakeLowercase() {
  return MakeByCharacter([](char32_t c, std::string& result) { AppendLowerCase(c, result); });
}

OwnedNormalizer MakeStripAccents() {
  return MakeByCharacter([](char32_t c, std::string& result) {
    if (!IsCombiningMark(c)) Append(c, result);
  });
}

OwnedNormalizer MakeReplace(Pattern pattern, std::string content) {
  return std::make_unique<Replace>(std::move(pattern), std::move(content));
}

OwnedNormalizer MakeNmt() {
  return MakeByCharacter([](char32_t c, std::string& result) {
    if (!NmtLeavesOut(c)) Append(NmtMakesBlank(c) ? U' ' : c, result);
  });
}

OwnedNormalizer MakeNormalizerSequence(std::vector<OwnedNormalizer> parts) {
  return std::make_unique<Sequence>(std::move(parts));
}

}  // namespace swizzle::text
