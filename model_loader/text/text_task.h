// What a model makes of texts. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_TEXT_TASK_H_
#define SWIZZLE_MODEL_LOADER_TEXT_TEXT_TASK_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace swizzle::text {

enum class TextTask : uint8_t {
  kEmbedding,       // a vector of each
  kClassification,  // of each, or of each pair, the scores of its labels; a reranker has one label
};

inline constexpr std::string_view kTextTaskNames = "embedding or classification";  // for messages

constexpr std::string_view TextTaskName(TextTask task) {
  return task == TextTask::kEmbedding ? "embedding" : "classification";
}

constexpr std::optional<TextTask> TextTaskOf(std::string_view name) {
  for (const TextTask task : {TextTask::kEmbedding, TextTask::kClassification}) {
    if (name == TextTaskName(task)) return task;
  }
  return std::nullopt;
}

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_TEXT_TASK_H_
