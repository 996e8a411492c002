// Requests for vectors, scores and tokens of texts as clients of HTTP write them: OpenAI's POST /v1/embeddings
// (platform.openai.com/docs/api-reference/embeddings), and text-embeddings-inference's POST /embed, /embed_all,
// /similarity, /rerank, /predict and /tokenize (huggingface.github.io/text-embeddings-inference), TEI for short; and
// what each has for errors. /decode, which brings ids, is read by ids_json.h.
//
// JSON is read by a walk that keeps no tree of it: what it takes is bounded by the text. Functions only.
#ifndef SWIZZLE_SERVER_REST_TEXT_JSON_H_
#define SWIZZLE_SERVER_REST_TEXT_JSON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/text/text_task.h"
#include "server/http/http_call.h"

namespace swizzle {

enum class TextEndpoint : uint8_t {
  kOpenAiEmbeddings,
  kTeiEmbed,
  kTeiEmbedAll,
  kTeiSimilarity,
  kTeiRerank,
  kTeiPredict,
  kTeiTokenize,
  kTeiDecode,
};

// "/v1/embeddings".
std::string_view PathOf(TextEndpoint endpoint);
// What a model has to make of texts to serve it; none where it has to take some.
std::optional<text::TextTask> TaskOf(TextEndpoint endpoint);

// What reading a request takes of memory for each byte of its text: lengths of short texts, and a string that grows by
// doubling.
inline constexpr int64_t kTextJsonMemory = 4;

struct TextRequest {
  std::string model = {};                 // empty: none is named
  std::string texts = {};                 // elements of a tensor of strings (string_tensor.h); of /similarity the ...
                                          // ... last is what the others are compared with
  int64_t count = 0;                      // of rows, from 1 on, each a text or a pair
  std::optional<std::string> query = {};  // the first text of every pair, of which `texts` has the second
  std::vector<bool> pairs = {};           // of /predict by row: whether it is two of the texts; else empty
  // Texts that are too long; else they are refused. Of TEI's requests what they say, or false; OpenAI's say nothing.
  bool truncate = false;
  // Of embeddings and tokens.
  std::optional<std::string> prompt = {};  // the name of what stands before each text; none: the model's default
  bool special_tokens = true;              // of /tokenize: those that the tokeniser adds, too
  int64_t dimensions = 0;                  // that each vector is to have, its first ones; 0: as many as the model gives
  bool base64 = false;  // vectors are to be base64 of FP32 in little-endian, as OpenAI's own client asks for them
  bool unit = false;    // vectors are to have length 1, whether the model sees to that or not
  bool raw = false;     // vectors are to be as the model has them before it may give them length 1
  // Of scores.
  bool raw_scores = false;   // the model's logits
  bool return_text = false;  // of /rerank: each text beside its score
  bool single = false;       // of /predict: there is one row, and the answer is no list of such

  bool is_pair(int64_t row) const { return !pairs.empty() && pairs[static_cast<size_t>(row)]; }
};

// INVALID_ARGUMENT, which says what is wrong. REQUIRES: the endpoint takes texts.
StatusOr<TextRequest> ReadTextRequest(TextEndpoint endpoint, std::string_view json);

// What went wrong, as each one's clients expect it: 429 where the server has no room now (RESOURCE_EXHAUSTED), so that
// they try again, 413 where there never will be, or a text is too long (OUT_OF_RANGE), and 424 of TEI's, 500 of
// OpenAI's where the model failed (INTERNAL).
HttpAnswer TextError(TextEndpoint endpoint, const Status& status);
HttpAnswer TextError(TextEndpoint endpoint, int status, std::string_view why);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_TEXT_JSON_H_
