// A sentencepiece model, as its file says (https://github.com/google/sentencepiece, src/sentencepiece_model.proto).
// Internal to model_loader/text. Free functions, thread-safe.
//
// Read are unigram models, as XLM-R's and T5's are; refused are other kinds, pieces that users defined, and white space
// at the end of pieces.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_SENTENCEPIECE_MODEL_H_
#define SWIZZLE_MODEL_LOADER_TEXT_SENTENCEPIECE_MODEL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/text/normalizers.h"

namespace swizzle::text {

// What a piece is for; numbers are the file's.
enum class PieceKind : uint64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct SentencePiece {
  std::string text;
  float score = 0.0f;
  PieceKind kind = PieceKind::kNormal;
};

struct SentencepieceModel {
  std::vector<SentencePiece> pieces;
  bool byte_fallback = false;
  std::string charsmap;  // empty: characters stay
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

// INVALID_ARGUMENT if the bytes are no such file, UNIMPLEMENTED for what is not read.
StatusOr<SentencepieceModel> ParseSentencepiece(std::string_view bytes);

// What sentencepiece does to a text: the charsmap, by its longest matches; no blanks at either end, and one between
// words; a blank before the first; and U+2581 for each. INVALID_ARGUMENT for a charsmap that is none.
StatusOr<OwnedNormalizer> MakeSentencepieceNormalizer(const SentencepieceModel& model);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_SENTENCEPIECE_MODEL_H_
