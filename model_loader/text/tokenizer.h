// Text to the ids that a model reads: what a checkpoint's tokenizer.json, vocab.txt or sentencepiece model says.
//
// Equal, id by id, to the library `tokenizers` for what it reads (tests/integration/tokenizers_test.py). Immutable once
// made; const members are thread-safe, and take no lock.
//
// Text is UTF-8. What of it is ill-formed is read as U+FFFD, one for each maximal subpart, as Python's errors='replace'
// and Rust's from_utf8_lossy do. A zero byte is a character like others, which most tokenisers leave out. Of an empty
// text the special tokens are left, or nothing. Time and memory grow with the length of the text; of one that is to be
// cut off, 64 KiB or 256 bytes a token are read, whatever is more: words that long are nobody's.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_TOKENIZER_H_
#define SWIZZLE_MODEL_LOADER_TEXT_TOKENIZER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/text/pattern.h"

namespace swizzle::text {

struct EncodeOptions {
  int64_t max_tokens = 0;  // special ones included; 0: as many as the file says, and any number if it says nothing
  bool truncate = true;    // what is more; else it is refused
  bool add_special_tokens = true;
  bool offsets = false;  // where tokens stand in the texts is asked for, which takes longer
};

struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // as many: which text, as the model's token_type_ids has it
  // As many, where they were asked for: which characters of its text each stands for, code points of what ill-formed
  // text is read as; of special tokens that no text has, none, at 0.
  std::vector<Range> offsets = {};
  std::vector<bool> special = {};  // likewise: whether the tokeniser put it there, and no text has it
  bool truncated = false;
};

// Ids that checkpoints give names to; none where the files say nothing of it.
struct SpecialIds {
  std::optional<int32_t> pad, unk, cls, sep, bos, eos, mask;
};

struct TokenizerParts;
struct TextTokenIds;

class Tokenizer {
 public:
  // Of a folder, which has one of tokenizer.json, vocab.txt, sentencepiece.bpe.model, spiece.model and tokenizer.model
  // (the first of these that is there), perhaps tokenizer_config.json, and for sentencepiece config.json; or of one of
  // these files, with what is beside it. NOT_FOUND if there is none, INVALID_ARGUMENT if one is malformed, and
  // UNIMPLEMENTED if it asks for what is not supported, naming file and part.
  static StatusOr<Tokenizer> Open(const std::filesystem::path& path);
  // Of what is read of such files.
  explicit Tokenizer(TokenizerParts parts);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // OUT_OF_RANGE for a text that has more tokens than the options allow and that they do not truncate: of a long one
  // that is known from as much as would have been kept, and its tokens are not counted to the end. INVALID_ARGUMENT
  // for one of more than 256 MiB, or with a character that the tokeniser has neither a token nor an unknown token for.
  StatusOr<Encoding> Encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Of two texts, as a reranker has them.
  StatusOr<Encoding> Encode(std::string_view text, std::string_view pair, const EncodeOptions& options = {}) const;

  // The text of tokens, as the file's decoder makes it, or, of other files, the one that `transformers` gives such.
  // Special tokens are left out where that is asked for, and ids that are none in any case. What is ill-formed becomes
  // U+FFFD. UNIMPLEMENTED or INVALID_ARGUMENT where the decoder is none that is supported, naming it; INVALID_ARGUMENT
  // for a text of more than 256 MiB.
  StatusOr<std::string> Decode(std::span<const int32_t> ids, bool skip_special_tokens = true) const;

  // One more than the largest id that there is.
  int64_t vocabulary_size() const;
  const SpecialIds& special_ids() const;
  // What the file truncates to; 0: it does not.
  int64_t max_tokens() const;
  // What tokenizer_config.json says that the model takes (model_max_length), which nothing here goes by; 0: nothing.
  int64_t model_max_tokens() const;
  // How the vocabulary spells a token; empty for an id that is none.
  std::string_view Token(int32_t id) const;

 private:
  int64_t MostTokens(const EncodeOptions& options) const;  // 0: any number
  // What has to be read of a text to know which tokens are kept where it is truncated.
  std::string_view Read(std::string_view text, const EncodeOptions& options) const;
  StatusOr<TextTokenIds> Ids(std::string_view text, bool offsets) const;
  StatusOr<Encoding> EncodeRow(std::string_view text, std::optional<std::string_view> pair,
                               const EncodeOptions& options) const;
  StatusOr<Encoding> Assemble(TextTokenIds first, std::optional<TextTokenIds> second,
                              const EncodeOptions& options) const;

  std::unique_ptr<const TokenizerParts> parts_;
};

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_TOKENIZER_H_
