// What inferences a request of texts becomes: its rows in parts, of which each has single texts or pairs; and how many
// of them are under way at a time. Functions only.
#ifndef SWIZZLE_SERVER_REST_TEXT_PARTS_H_
#define SWIZZLE_SERVER_REST_TEXT_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/model/model.h"
#include "server/rest/text_json.h"

namespace swizzle {

// Bytes of texts in an inference, beside which no more begin: a query that is long stands there once for every text.
inline constexpr size_t kMostPartBytes = 1 << 20;

// Bytes of texts that are worked on before others' requests have the thread.
inline constexpr int64_t kPieceBytes = 256 << 10;

// What a text counts beside its bytes: tokens are made of one that has none, too, and are kept until the inference
// ends.
inline constexpr size_t kTextBytes = 64;

// Rows of a request that become one inference.
struct TextPart {
  std::string_view texts;  // of the request
  int64_t first = 0, rows = 0;
  bool pairs = false;  // whether a row is two of the texts
};

// Puts the rows with single texts before those that are pairs, since an inference has rows of one kind. Returns where
// each row stood before; nothing, and all stay where they are, where rows are of one kind.
std::vector<int64_t> GroupKinds(TextRequest& request);

// In their order, of `most` rows at most. The request outlives them.
std::vector<TextPart> PartsOf(const TextRequest& request, int64_t most);

// A part as a model of texts takes it, with the query before each of its texts.
std::string TensorOf(const TextRequest& request, const TextPart& part);

// Parts that are under way at a time: enough for a batch to be received while another runs, and few enough that others
// find room in the queue.
struct PartsAtOnce {
  // As many in any case, whatever their texts have: of parts with a batch's rows each.
  static constexpr int64_t kLeast = 4;

  int64_t most = kLeast;
  int64_t bytes = 0;    // of texts, as a request has them, of more than kLeast together
  int64_t waiting = 0;  // of all requests for the model, beside which no more than kLeast begin

  // Whether one more may begin beside `parts`, together with texts of so many bytes, where `queued` requests wait.
  bool HasRoom(int64_t parts, int64_t with_bytes, int64_t queued) const {
    return parts < most && (parts < kLeast || (with_bytes <= bytes && queued < waiting));
  }
};

// How many parts of one row each, which the model's batches take together, are under way: about as much as kLeast
// batches have, by rows and by tokens, and a quarter of what may wait at most, while less than half of that waits;
// kLeast where a batch is one request.
PartsAtOnce SingleRowsAtOnce(const ModelSpec& spec);

// The bytes of rows, each `row_bytes` long, that stand in several strings, in one: row i at places[i].
std::string RowsAt(std::span<const int64_t> places, std::span<const std::string> rows, size_t row_bytes);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_TEXT_PARTS_H_
