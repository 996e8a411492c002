#include "server/model/text_files.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "model_loader/files/printable_name.h"

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
  const auto pool = [pooling = files.pipeline.pooling, layers = files.pipeline.dense](Graph& graph) -> Status {
    const bool is_done = std::ranges::find(graph.outputs, text::kPooledName, &GraphOutput::name) != graph.outputs.end();
    SWIZZLE_RETURN_IF_ERROR(text::PoolTokens(pooling, graph));
    if (is_done || pooling == text::Pooling::kLast) return absl::OkStatus();
    for (const auto& layer : layers) SWIZZLE_RETURN_IF_ERROR(text::AddDense(*layer, graph));
    return absl::OkStatus();
  };
  if (files.pipeline.task == text::TextTask::kEmbedding) return pool;
  return [pool](Graph& graph) -> Status {
    SWIZZLE_ASSIGN_OR_RETURN(GraphOutput states, text::StatesOf(graph));
    SWIZZLE_RETURN_IF_ERROR(pool(graph));
    if (graph.outputs[0].name != text::kPooledName) graph.outputs.clear();  // these states, pooled behind the graph
    graph.outputs.push_back(std::move(states));
    return absl::OkStatus();
  };
}

int64_t LongestOf(int64_t positions, int64_t batch_tokens) {
  return positions > 0 && batch_tokens > 0 ? std::min(positions, batch_tokens) : std::max(positions, batch_tokens);
}

namespace {

StatusOr<std::string_view> PromptOf(const std::map<std::string, std::string>& prompts, const std::string& by_default,
                                    const TextOptions& asked) {
  if (!asked.prompt) return std::string_view(by_default);
  if (const auto found = prompts.find(*asked.prompt); found != prompts.end()) return std::string_view(found->second);
  std::string names;
  for (const auto& [name, prompt] : prompts) names += (names.empty() ? "" : ", ") + QuotedName(name);
  return InvalidArgument("the model has no prompt ", QuotedName(*asked.prompt), "; ",
                         names.empty() ? "it has none" : Concat("it has ", names));
}

}  // namespace

int64_t DenseBytes(const TextFiles& files) {
  int64_t bytes = 0;
  for (const auto& layer : files.pipeline.dense) {
    bytes += static_cast<int64_t>(layer->weight.bytes.size() + (layer->bias ? layer->bias->bytes.size() : 0));
  }
  return bytes;
}

TextRules RulesOf(const TextFiles& files, int64_t longest) {
  // What says it for the pipeline goes before what says it for the tokeniser.
  int64_t said = 0;
  for (const int64_t by :
       {files.pipeline.max_tokens, files.tokenizer->model_max_tokens(), files.tokenizer->max_tokens()}) {
    if (said == 0) said = by;
  }
  int64_t most = 0;
  for (const int64_t bound : {longest, files.pipeline.positions, said}) {
    if (bound > 0) most = most == 0 ? bound : std::min(most, bound);
  }
  const auto prompt_of = [prompts = files.pipeline.prompts, by_default = files.pipeline.default_prompt](
                             const TextOptions& asked) { return PromptOf(prompts, by_default, asked); };
  const auto encode = [tokenizer = files.tokenizer, most, prompt_of](const TextRow& row,
                                                                     const TextOptions& asked) -> StatusOr<TextTokens> {
    SWIZZLE_ASSIGN_OR_RETURN(const std::string_view prompt, prompt_of(asked));
    const std::string prompted = prompt.empty() ? std::string() : Concat(prompt, row.text);
    const std::string_view text = prompt.empty() ? row.text : prompted;
    const text::EncodeOptions options = {.max_tokens = most, .truncate = asked.truncate};
    SWIZZLE_ASSIGN_OR_RETURN(text::Encoding encoding,
                             row.pair ? tokenizer->Encode(text, *row.pair, options) : tokenizer->Encode(text, options));
    if (encoding.ids.empty()) return InvalidArgument("the text is empty, and the tokeniser adds nothing to it");
    return TextTokens{std::move(encoding.ids), std::move(encoding.type_ids)};
  };
  return {.encode = encode,
          .prompt = prompt_of,
          .tokenizer = files.tokenizer,
          .pad_id = files.tokenizer->special_ids().pad.value_or(0),
          .max_tokens = most,
          .pipeline = files.pipeline};
}

}  // namespace swizzle
