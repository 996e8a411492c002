// Requests for the texts of ids as text-embeddings-inference's clients write them: POST /decode. JSON is read by a walk
// that keeps no tree of it: what it takes is bounded by the text. Functions only.
#ifndef SWIZZLE_SERVER_REST_IDS_JSON_H_
#define SWIZZLE_SERVER_REST_IDS_JSON_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

struct IdsRequest {
  // Of one that no vocabulary is large enough for.
  static constexpr int32_t kNoId = std::numeric_limits<int32_t>::max();

  std::vector<int32_t> ids;         // of all texts, one after the other, not negative
  std::vector<size_t> ends;         // of each text: where its ids end; one text at least, each with an id or more
  bool skip_special_tokens = true;  // in the texts
};

// {"ids": [1, 2]} or {"ids": [[1, 2], [3]]}, and perhaps "skip_special_tokens". INVALID_ARGUMENT, which says what is
// wrong.
StatusOr<IdsRequest> ReadIdsRequest(std::string_view json);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_IDS_JSON_H_
