// Answers of scores as text-embeddings-inference's clients expect them: of /rerank and /predict. Functions only.
#ifndef SWIZZLE_SERVER_REST_SCORES_JSON_H_
#define SWIZZLE_SERVER_REST_SCORES_JSON_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "server/rest/text_json.h"

namespace swizzle {

// Scores of one request's rows.
struct Scores {
  std::span<const std::string> rows;    // FP32, those of one row after the other; each string holds whole ones
  std::span<const std::string> labels;  // what the scores of a row are of, as many as it has
};

// Both fail with INTERNAL where a score is a NaN or an infinity, which JSON has not, with INVALID_ARGUMENT where a text
// or a label is no UTF-8, and with OUT_OF_RANGE where the answer has more than `most` bytes.

// [{"index":1,"score":0.9}, ..], the best first, those of equal scores in their order; with the texts where asked.
// INTERNAL where there is not one label.
StatusOr<std::string> WriteRanks(const TextRequest& request, const Scores& scores, int64_t most);

// Of each row [{"score":0.9,"label":"yes"}, ..], likewise; of a single one without the list around it.
StatusOr<std::string> WritePredictions(const TextRequest& request, const Scores& scores, int64_t most);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_SCORES_JSON_H_
