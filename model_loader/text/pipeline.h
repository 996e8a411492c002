// What stands between a text and its vector in a checkpoint of Sentence Transformers, but for the encoder itself: the
// files beside it that say how tokens are pooled, and what becomes of the result. A free function, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_PIPELINE_H_
#define SWIZZLE_MODEL_LOADER_TEXT_PIPELINE_H_

#include <cstdint>

#include "model_loader/files/contained_file.h"
#include "model_loader/text/pooling.h"

namespace swizzle::text {

// Value type.
struct Pipeline {
  Pooling pooling = Pooling::kMean;
  bool normalises = false;  // vectors have length 1
  int64_t max_tokens = 0;   // of a text, special ones included; 0: nothing says
};

// By modules.json, the folder's 1_Pooling/config.json or whatever that calls it, and sentence_bert_config.json, each
// where it is there; a folder without them pools the mean and normalises nothing, as Sentence Transformers does then.
// INVALID_ARGUMENT, naming the file, for one that is malformed; UNIMPLEMENTED for a module, a way to pool or a setting
// that is not supported, by its name.
StatusOr<Pipeline> ReadPipeline(const ModelFolder& folder);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_PIPELINE_H_
