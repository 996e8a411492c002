// What a tokeniser does to a text before it splits it: the normalizers of tokenizer.json. Immutable; thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_NORMALIZERS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_NORMALIZERS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/text/characters.h"
#include "model_loader/text/charsmap.h"
#include "model_loader/text/pattern.h"

namespace swizzle::text {

// A text on its way. Well-formed.
struct NormalText {
  std::string text;
  size_t start_bytes = 0;           // how many at its beginning stem from the first character of what is encoded
  std::vector<Range> origins = {};  // of each byte: what it stems from, in bytes of the text as it came; ...
  bool traced = false;              // ... only where somebody asks

  // A text that is as it came.
  static NormalText Traced(std::string text, size_t start_bytes);
  // Of a text that changes make of this one.
  std::vector<Range> OriginsAfter(std::span<const Change> changes) const;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Errors are those of Pattern::FindAll, and Normalised's.
  virtual Status Apply(NormalText& text) const = 0;
};
using OwnedNormalizer = std::unique_ptr<const Normalizer>;

struct BertNormalization {
  bool clean_text = true;            // no control characters, and a blank for each white space
  bool handle_chinese_chars = true;  // blanks around them
  bool strip_accents = true;
  bool lowercase = true;
};
OwnedNormalizer MakeBertNormalizer(BertNormalization options);
OwnedNormalizer MakeNormalForm(NormalForm form);
OwnedNormalizer MakeLowercase();
OwnedNormalizer MakeStripAccents();  // leaves marks out, and decomposes nothing
OwnedNormalizer MakeStrip(bool left, bool right);
OwnedNormalizer MakeReplace(Pattern pattern, std::string content);
OwnedNormalizer MakePrepend(std::string prefix);  // to all but empty texts
OwnedNormalizer MakeNmt();                        // sentencepiece's rules for machine translation
OwnedNormalizer MakeByteNormalizer();             // see byte_level.h
// As the `tokenizers` library applies it: to what begins a cluster of fewer than 6 bytes, in place of all of it, else
// to single characters.
OwnedNormalizer MakePrecompiled(Charsmap map);
OwnedNormalizer MakeNormalizerSequence(std::vector<OwnedNormalizer> parts);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_NORMALIZERS_H_
