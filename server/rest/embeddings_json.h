// Answers to requests for embeddings (text_json.h). Functions only.
#ifndef SWIZZLE_SERVER_REST_EMBEDDINGS_JSON_H_
#define SWIZZLE_SERVER_REST_EMBEDDINGS_JSON_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/rest/text_json.h"

namespace swizzle {

// Vectors of one request.
struct Embeddings {
  std::string_view model;             // its name
  std::span<const std::string> rows;  // FP32, one vector after the other; each string holds whole ones
  size_t width = 0;                   // numbers of a vector, from 1 on
  int64_t tokens = 0;                 // of all texts, special ones included
};

// The answer to `request`. INTERNAL where a vector has a NaN or an infinity, which JSON has not,
// OUT_OF_RANGE where it has more than `most` bytes.
StatusOr<std::string> WriteEmbeddings(TextEndpoint endpoint, const TextRequest& request, const Embeddings& embeddings,
                                      int64_t most);

// Of each text, of which there is a string, the vectors of its tokens: [[[1,0.5],[2,0]],[[0,1]]]. The same errors.
StatusOr<std::string> WriteTokenEmbeddings(std::span<const std::string> texts, size_t width, int64_t most);

// The cosines between the last vector and each of the others, which all have length 1: [0.9,0.1]. The same errors; a
// zero vector is like no other.
StatusOr<std::string> WriteSimilarities(const Embeddings& embeddings, int64_t most);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_EMBEDDINGS_JSON_H_
