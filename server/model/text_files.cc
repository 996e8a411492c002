#include "server/model/text_files.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

namespace swizzle {

StatusOr<TextFiles> ReadTextFiles(const std::filesystem::path& model, text::TextTask task) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(model, ignored);
  const std::filesystem::path file = is_folder ? model / "model.safetensors" : model;
  TextFiles files;
  SWIZZLE_ASSIGN_OR_RETURN(files.pipeline, text::ReadPipeline(ModelFolder::Of(file), task));
  SWIZZLE_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, text::Tokenizer::Open(file.parent_path()));
  files.tokenizer = std::make_shared<const text::Tokenizer>(std::move(tokenizer));
  return files;
}

GraphRevision RevisionOf(const TextFiles& files) {
  if (files.pipeline.task == text::TextTask::kClassification) return text::KeepLogits;
  return [pooling = files.pipeline.pooling](Graph& graph) { return text::PoolTokens(pooling, graph); };
}

int64_t LongestOf(int64_t positions, int64_t batch_tokens) {
  return positions > 0 && batch_tokens > 0 ? std::min(positions, batch_tokens) : std::max(positions, batch_tokens);
}

TextRules RulesOf(const TextFiles& files, int64_t longest) {
  int64_t most = 0;
  for (const int64_t bound : {longest, files.pipeline.max_tokens, files.tokenizer->max_tokens()}) {
    if (bound > 0) most = most == 0 ? bound : std::min(most, bound);
  }
  const auto encode = [tokenizer = files.tokenizer, most](const TextRow& row) -> StatusOr<TextTokens> {
    const text::EncodeOptions options = {.max_tokens = most, .truncate = row.options.truncate};
    SWIZZLE_ASSIGN_OR_RETURN(text::Encoding encoding, row.pair ? tokenizer->Encode(row.text, *row.pair, options)
                                                               : tokenizer->Encode(row.text, options));
    if (encoding.ids.empty()) return InvalidArgument("the text is empty, and the tokeniser adds nothing to it");
    return TextTokens{std::move(encoding.ids), std::move(encoding.type_ids)};
  };
  return {.encode = encode,
          .pad_id = files.tokenizer->special_ids().pad.value_or(0),
          .max_tokens = most,
          .pipeline = files.pipeline};
}

}  // namespace swizzle
