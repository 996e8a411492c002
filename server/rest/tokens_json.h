// Tokens of texts as text-embeddings-inference's clients expect them, of /tokenize. Functions only.
#ifndef SWIZZLE_SERVER_REST_TOKENS_JSON_H_
#define SWIZZLE_SERVER_REST_TOKENS_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "model_loader/text/tokenizer.h"

namespace swizzle {

// Appends [{"id":7,"text":"a","special":false,"start":0,"stop":1}, ..] of a text, which is UTF-8: what of it each token
// stands for, in characters; of a token that the tokeniser put there how it spells it, with start and stop null.
// `encoding` has offsets. OUT_OF_RANGE where the answer becomes longer than `most` bytes, INVALID_ARGUMENT where a
// token is no UTF-8.
Status WriteTokens(const text::Tokenizer& tokenizer, const text::Encoding& encoding, std::string_view text,
                   int64_t most, std::string& answer);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_TOKENS_JSON_H_
