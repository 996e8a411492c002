// Tokenizers and what they do to a text. A first byte says what the file is (even: tokenizer.json, 1, 5, ...:
// vocab.txt, else a sentencepiece model), the next two how many bytes of what follows are the text; the file is the
// rest.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/check.h"
#include "model_loader/text/tokenizer.h"
#include "model_loader/text/tokenizer_files.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

StatusOr<TokenizerParts> Parse(uint8_t kind, std::string_view file) {
  TokenizerSettings settings;
  if (kind % 2 == 0) return ParseTokenizerJson(file, settings);
  if (kind % 4 == 1) return ParseBertVocabulary(file, settings);
  settings.model_type = kind % 8 == 3 ? "xlm-roberta" : "";
  return ParseSentencepieceModel(file, settings);
}

// Every id is one of the vocabulary, and no text has more than it may.
void Check(const Tokenizer& tokenizer, const StatusOr<Encoding>& encoding, int64_t most) {
  SWIZZLE_CHECK(encoding.ok() || !encoding.status().message().empty());
  if (!encoding.ok()) return;
  SWIZZLE_CHECK(encoding->ids.size() == encoding->type_ids.size());
  SWIZZLE_CHECK(most == 0 || static_cast<int64_t>(encoding->ids.size()) <= most);
  for (const int32_t id : encoding->ids) SWIZZLE_CHECK(id >= 0 && id < tokenizer.vocabulary_size());
  for (const bool skips : {false, true}) {
    const StatusOr<std::string> decoded = tokenizer.Decode(encoding->ids, skips);
    SWIZZLE_CHECK(decoded.ok() ? IsWellFormed(*decoded) : !decoded.status().message().empty());
  }
}

// To ask for offsets, of texts that are not too long for that, makes no other tokens; none is beyond the text.
void CheckOffsets(const StatusOr<Encoding>& plain, const StatusOr<Encoding>& traced, std::string_view text) {
  SWIZZLE_CHECK(plain.ok() || !traced.ok());
  if (!traced.ok()) return;
  SWIZZLE_CHECK(plain->ids == traced->ids && traced->offsets.size() == traced->ids.size());
  for (const Range its : traced->offsets) SWIZZLE_CHECK(its.begin <= its.end && its.end <= text.size());
}

void Run(std::string_view data) {
  if (data.size() < 3) return;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(data[i]); };
  const size_t text_bytes = std::min<size_t>(byte(1) + 256 * byte(2), data.size() - 3);
  const std::string_view text = data.substr(3, text_bytes);
  StatusOr<TokenizerParts> parts = Parse(byte(0), data.substr(3 + text_bytes));
  SWIZZLE_CHECK(parts.ok() || !parts.status().message().empty());
  if (!parts.ok()) return;
  const Tokenizer tokenizer(*std::move(parts));
  const StatusOr<Encoding> encoding = tokenizer.Encode(text);
  Check(tokenizer, encoding, 0);
  CheckOffsets(encoding, tokenizer.Encode(text, EncodeOptions{.offsets = true}), text);
  EncodeOptions options;
  options.max_tokens = 5;
  Check(tokenizer, tokenizer.Encode(text, text.substr(text.size() / 2), options), 5);
}

}  // namespace
}  // namespace swizzle::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  swizzle::text::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
