#include "server/rest/scores_json.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "server/model/string_tensor.h"
#include "server/rest/element_json.h"

namespace swizzle {
namespace {

// All rows', one after the other. INTERNAL, naming the row, for what JSON has not: the model's fault, not the client's.
StatusOr<std::vector<float>> Floats(std::span<const std::string> rows, size_t width) {
  std::vector<float> scores;
  for (const std::string& its : rows) {
    const size_t at = scores.size();
    scores.resize(at + its.size() / sizeof(float));
    std::memcpy(scores.data() + at, its.data(), its.size());
  }
  const auto wrong = std::ranges::find_if(scores, [](float score) { return !std::isfinite(score); });
  if (wrong == scores.end()) return scores;
  const auto row = static_cast<size_t>(wrong - scores.begin()) / width;
  return MakeError(StatusCode::kInternal, "the scores of text ", row, " have a NaN or an infinity, which JSON has not");
}

Status CheckLength(const std::string& text, int64_t most) {
  if (static_cast<int64_t>(text.size()) <= most) return absl::OkStatus();
  return MakeError(StatusCode::kOutOfRange, "the answer has more than ", most, " bytes; send fewer texts at a time");
}

// Their places, the best first.
std::vector<size_t> Ranked(std::span<const float> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

Status WriteNumber(float score, int64_t most, std::string& text) {
  const std::string_view bytes(reinterpret_cast<const char*>(&score), sizeof(score));
  const Status written = WriteJsonElements(bytes, DType::kFloat32, most, text);
  return absl::IsResourceExhausted(written) ? CheckLength(text, most) : written;
}

Status WriteLabelled(std::span<const float> scores, std::span<const std::string> labels, int64_t most,
                     std::string& text) {
  text += '[';
  bool begins = true;
  for (const size_t i : Ranked(scores)) {
    text += std::exchange(begins, false) ? R"({"score":)" : R"(,{"score":)";
    SWIZZLE_RETURN_IF_ERROR(WriteNumber(scores[i], most, text));
    text += R"(,"label":)";
    SWIZZLE_RETURN_IF_ERROR(WriteJsonString(labels[i], text));
    text += '}';
  }
  text += ']';
  return CheckLength(text, most);
}

}  // namespace

StatusOr<std::string> WriteRanks(const TextRequest& request, const Scores& scores, int64_t most) {
  if (scores.labels.size() != 1) {
    return MakeError(StatusCode::kInternal, "the model gave ", scores.labels.size(),
                     " scores a row, and texts are ranked by one");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> floats, Floats(scores.rows, 1));
  std::vector<std::string_view> texts;
  if (request.return_text) {
    for (std::string_view left = request.texts; !left.empty();) texts.push_back(TakeElement(left));
  }
  std::string text = "[";
  for (const size_t i : Ranked(floats)) {
    text += Concat(text.size() > 1 ? "," : "", R"({"index":)", i);
    if (request.return_text) {
      text += R"(,"text":)";
      SWIZZLE_RETURN_IF_ERROR(WriteJsonString(texts[i], text));
    }
    text += R"(,"score":)";
    SWIZZLE_RETURN_IF_ERROR(WriteNumber(floats[i], most, text));
    text += '}';
    SWIZZLE_RETURN_IF_ERROR(CheckLength(text, most));
  }
  return text + ']';
}

StatusOr<std::string> WritePredictions(const TextRequest& request, const Scores& scores, int64_t most) {
  const size_t width = scores.labels.size();
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> floats, Floats(scores.rows, width));
  std::string text = request.single ? "" : "[";
  for (size_t at = 0; at < floats.size(); at += width) {
    if (at > 0) text += ',';
    SWIZZLE_RETURN_IF_ERROR(WriteLabelled(std::span(floats).subspan(at, width), scores.labels, most, text));
  }
  return request.single ? text : text + ']';
}

}  // namespace swizzle
