// What lies beside an encoder's file and makes a model of texts of it: its tokeniser, and what becomes of the encoder's
// outputs.
#ifndef SWIZZLE_SERVER_MODEL_TEXT_FILES_H_
#define SWIZZLE_SERVER_MODEL_TEXT_FILES_H_

#include <filesystem>
#include <memory>

#include "model_loader/text/pipeline.h"
#include "model_loader/text/tokenizer.h"
#include "server/model/text_model.h"

namespace swizzle {

// Value type; what it holds is immutable.
struct TextFiles {
  text::Pipeline pipeline;
  std::shared_ptr<const text::Tokenizer> tokenizer;
};

// Of the folder of a model's file, or of a checkpoint's folder. Errors are ReadPipeline's and Tokenizer::Open's.
StatusOr<TextFiles> ReadTextFiles(const std::filesystem::path& model, text::TextTask task);

// Has an encoder's graph end in what they say: pooled tokens, or logits.
GraphRevision RevisionOf(const TextFiles& files);

// The longest text that an encoder takes, of positions for so many tokens in batches of so many, 0 being any.
int64_t LongestOf(int64_t positions, int64_t batch_tokens);

// What Dense modules have beside the encoder's file, and the model holds.
int64_t DenseBytes(const TextFiles& files);

// `longest`: LongestOf.
TextRules RulesOf(const TextFiles& files, int64_t longest);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_TEXT_FILES_H_
