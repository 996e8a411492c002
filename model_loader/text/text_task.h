// What a model makes of texts. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_TEXT_TASK_H_
#define SWIZZLE_MODEL_LOADER_TEXT_TEXT_TASK_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace swizzle::text {

enum class TextTask : uint8_t {
  kEmbedding,       // a vector of each
  kTokenEmbedding,  // that, and one of each of its tokens
  kClassification,  // of each, or of each pair, the scores of its labels; a reranker has one label
};

inline constexpr std::string_view kTextTaskNames = "embedding, token_embedding or classification";  // for messages

constexpr std::string_view TextTaskName(TextTask task) {
  switch (task) {
    case TextTask::kEmbedding:
      return "embedding";
    case TextTask::kTokenEmbedding:
      return "token_embedding";
    case TextTask::kClassification:
      return "classification";
  }
  return "";
}

// Whether it gives a vector of each.
constexpr bool Embeds(TextTask task) { return task != TextTask::kClassification; }

constexpr std::optional<TextTask> TextTaskOf(std::string_view name) {
  for (const TextTask task : {TextTask::kEmbedding, TextTask::kTokenEmbedding, TextTask::kClassification}) {
    if (name == TextTaskName(task)) return task;
  }
  return std::nullopt;
}

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_TEXT_TASK_H_
