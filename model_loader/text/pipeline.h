// What stands between a text and its vector, or the scores of its labels, in a checkpoint of Sentence Transformers or
// transformers, but for the encoder itself: the files beside it that say how tokens are pooled, what becomes of the
// result, and how labels are called. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_PIPELINE_H_
#define SWIZZLE_MODEL_LOADER_TEXT_PIPELINE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model_loader/files/contained_file.h"
#include "model_loader/text/dense.h"
#include "model_loader/text/pooling.h"
#include "model_loader/text/text_task.h"

namespace swizzle::text {

// What makes scores of logits.
enum class ScoreFunction : uint8_t { kNone, kSigmoid, kSoftmax };

// Value type.
struct Pipeline {
  TextTask task = TextTask::kEmbedding;
  int64_t max_tokens = 0;  // of a text, special ones included; 0: nothing says
  int64_t positions = 0;   // for so many tokens the encoder has positions, by config.json; 0: nothing says
  // What follows is for embeddings alone.
  Pooling pooling = Pooling::kMean;
  std::vector<std::shared_ptr<const DenseLayer>> dense = {};  // behind that, in their order
  bool normalises = false;                                    // vectors have length 1
  std::map<std::string, std::string> prompts = {};            // what may stand before a text, by its name
  std::string default_prompt = {};                            // what does where none is named
  // What follows is for classifications alone.
  std::vector<std::string> labels = {};             // none: nothing says how they are called
  ScoreFunction of_many = ScoreFunction::kSoftmax;  // of several labels; one's is kSigmoid
};

// An embedding's is read from modules.json, the folder's 1_Pooling/config.json or whatever that calls it, those of
// Dense modules, sentence_bert_config.json and config_sentence_transformers.json, each where it is there; a folder
// without them pools the mean and normalises nothing, as Sentence Transformers does then. Both read config.json's
// max_position_embeddings. A classification's is read from config.json's id2label and problem_type, where it is there:
// scores are what text-embeddings-inference and a CrossEncoder give, but that labels which exclude no other are scored
// by themselves. INVALID_ARGUMENT, naming the file, for one that is malformed; UNIMPLEMENTED for a module, a way to
// pool or a setting that is not supported, by its name.
StatusOr<Pipeline> ReadPipeline(const ModelFolder& folder, TextTask task = TextTask::kEmbedding);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_PIPELINE_H_
