// How the ids of one text or two become a model's input: the post_processors of tokenizer.json. Immutable; thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_TEMPLATE_H_
#define SWIZZLE_MODEL_LOADER_TEXT_TEMPLATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle::text {

// What stands in a row.
struct TemplatePart {
  enum class Kind { kSpecial, kFirst, kSecond };

  Kind kind;
  int32_t type_id = 0;
  std::vector<int32_t> ids = {};  // of kSpecial
};

struct Template {
  // Whether tokens' offsets leave out the white space that they begin and end with; and whether a single blank stays
  // where the first token has it: it was added.
  bool trims_offsets = false, keeps_first_blank = false;
  // Of one text, and of two.
  std::vector<TemplatePart> single = {{TemplatePart::Kind::kFirst, 0}};
  std::vector<TemplatePart> pair = {{TemplatePart::Kind::kFirst, 0}, {TemplatePart::Kind::kSecond, 1}};

  // How many special tokens it adds.
  int64_t AddedTo(bool is_pair) const;
};

// "[CLS] A [SEP]" and "[CLS] A [SEP] B [SEP]", where the second text and what follows has the type 1.
Template BertTemplate(int32_t cls, int32_t sep);
// "<s> A </s>" and "<s> A </s> </s> B </s>", all of type 0.
Template RobertaTemplate(int32_t cls, int32_t sep);

// What is left out of ids that are too many.
struct Truncation {
  enum class Strategy { kLongestFirst, kOnlyFirst, kOnlySecond };

  int64_t max_tokens = 0;  // with what a template adds; 0: any number
  Strategy strategy = Strategy::kLongestFirst;
  bool from_left = false;  // the beginning of a text, in place of its end
};

// Shortens the ids of texts to `most` together. INVALID_ARGUMENT where the strategy's text can't be shortened so far.
// `second` is null where there is no second text.
Status Truncate(const Truncation& truncation, int64_t most, std::vector<int32_t>& first, std::vector<int32_t>* second);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_TEMPLATE_H_
