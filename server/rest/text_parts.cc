#include "server/rest/text_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/batching/batch_policy.h"
#include "server/model/string_tensor.h"

namespace swizzle {

std::vector<int64_t> GroupKinds(TextRequest& request) {
  if (std::ranges::adjacent_find(request.pairs, std::ranges::not_equal_to()) == request.pairs.end()) return {};
  std::vector<int64_t> places;
  places.reserve(request.pairs.size());
  std::string texts;
  texts.reserve(request.texts.size());
  for (const bool pairs : {false, true}) {
    std::string_view left = request.texts;
    for (int64_t row = 0; row < request.count; ++row) {
      const size_t begin = request.texts.size() - left.size();
      TakeElement(left);
      if (request.is_pair(row)) TakeElement(left);
      if (request.is_pair(row) != pairs) continue;
      texts.append(request.texts, begin, request.texts.size() - left.size() - begin);
      places.push_back(row);
    }
  }
  const auto single = std::ranges::count(request.pairs, false);
  std::fill(request.pairs.begin(), request.pairs.begin() + single, false);
  std::fill(request.pairs.begin() + single, request.pairs.end(), true);
  request.texts = std::move(texts);
  return places;
}

std::vector<TextPart> PartsOf(const TextRequest& request, int64_t most) {
  std::vector<TextPart> parts;
  const size_t row_bytes = kTextBytes + (request.query ? kTextBytes + request.query->size() : 0);
  std::string_view left = request.texts;
  for (int64_t row = 0; row < request.count;) {
    TextPart part{.texts = left, .first = row, .pairs = request.is_pair(row)};
    for (size_t bytes = 0; part.rows < most && bytes < kMostPartBytes; ++row, ++part.rows) {
      if (row == request.count || request.is_pair(row) != part.pairs) break;
      bytes += TakeElement(left).size() + row_bytes;
      if (part.pairs) bytes += TakeElement(left).size() + kTextBytes;
    }
    part.texts.remove_suffix(left.size());
    parts.push_back(part);
  }
  return parts;
}

std::string TensorOf(const TextRequest& request, const TextPart& part) {
  if (!request.query) return std::string(part.texts);
  std::string tensor;
  for (std::string_view left = part.texts; !left.empty();) {
    AppendElement(*request.query, tensor);
    AppendElement(TakeElement(left), tensor);
  }
  return tensor;
}

PartsAtOnce SingleRowsAtOnce(const ModelSpec& spec) {
  // A token has so many bytes, as vocabularies cut most texts; special tokens are not counted.
  constexpr int64_t kTokenBytes = 4;
  constexpr int64_t kOfOne = 4, kOfAll = 2;  // of the queue, one in so many
  const Limits limits = LimitsOf(spec);
  const int64_t queue = spec.PolicyOf(spec.default_priority).max_requests;
  const int64_t rows = std::min(PartsAtOnce::kLeast * limits.max_rows, queue / kOfOne);
  int64_t bytes = kMostPartBytes;
  if (limits.max_tokens > 0) bytes = std::min(bytes, limits.max_tokens * kTokenBytes);
  return {.most = std::max(PartsAtOnce::kLeast, rows), .bytes = PartsAtOnce::kLeast * bytes, .waiting = queue / kOfAll};
}

std::string RowsAt(std::span<const int64_t> places, std::span<const std::string> rows, size_t row_bytes) {
  std::string placed(places.size() * row_bytes, '\0');
  auto place = places.begin();
  for (const std::string& its : rows) {
    for (size_t at = 0; at + row_bytes <= its.size() && place != places.end(); at += row_bytes) {
      std::memcpy(placed.data() + static_cast<size_t>(*place++) * row_bytes, its.data() + at, row_bytes);
    }
  }
  return placed;
}

}  // namespace swizzle
