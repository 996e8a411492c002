// Requests for embeddings as clients of HTTP write them, and the answers: OpenAI's POST /v1/embeddings
// (platform.openai.com/docs/api-reference/embeddings), and text-embeddings-inference's POST /embed
// (huggingface.github.io/text-embeddings-inference), TEI for short.
//
// JSON is read by a walk that keeps no tree of it: what it takes is bounded by the text. Functions only.
#ifndef SWIZZLE_SERVER_REST_EMBEDDINGS_JSON_H_
#define SWIZZLE_SERVER_REST_EMBEDDINGS_JSON_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "server/http/http_call.h"

namespace swizzle {

enum class EmbeddingsDialect : uint8_t { kOpenAi, kTei };

// What reading a request takes of memory for each byte of its text: lengths of short texts, and a string that grows by
// doubling.
inline constexpr int64_t kEmbeddingsJsonMemory = 4;

struct EmbeddingsRequest {
  std::string model = {};  // empty: none is named
  std::string texts = {};  // elements of a tensor of strings (string_tensor.h)
  int64_t count = 0;       // of texts, from 1 on
  int64_t dimensions = 0;  // that each vector is to have; 0: as many as the model gives
  bool base64 = false;     // vectors are to be base64 of FP32 in little-endian, as OpenAI's own client asks for them
  bool unit = false;       // vectors are to have length 1, whether the model sees to that or not
  bool raw = false;        // vectors are to be as the model has them before it may give them length 1
};

// INVALID_ARGUMENT, which says what is wrong.
StatusOr<EmbeddingsRequest> ReadEmbeddings(EmbeddingsDialect dialect, std::string_view text);

// Vectors of one request.
struct Embeddings {
  std::string_view model;             // its name
  std::span<const std::string> rows;  // FP32, one vector after the other; each string holds whole ones
  size_t width = 0;                   // numbers of a vector, from 1 on
  int64_t tokens = 0;                 // of all texts, special ones included
};

// The answer to `request`. INVALID_ARGUMENT where a vector has a NaN or an infinity, which JSON has not,
// OUT_OF_RANGE where it has more than `most` bytes.
StatusOr<std::string> WriteEmbeddings(EmbeddingsDialect dialect, const EmbeddingsRequest& request,
                                      const Embeddings& embeddings, int64_t most);

// What went wrong, as each one's clients expect it: 429 where the server has no room now (RESOURCE_EXHAUSTED), so that
// they try again, and 413 where there never will be (OUT_OF_RANGE).
HttpAnswer EmbeddingsError(EmbeddingsDialect dialect, const Status& status);
HttpAnswer EmbeddingsError(EmbeddingsDialect dialect, int status, std::string_view why);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_EMBEDDINGS_JSON_H_
