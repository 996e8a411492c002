// Where sequences begin: rows of tables. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_EMBEDDINGS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_EMBEDDINGS_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Rows of the input `table` [V, C]: one by each id, by position, or the same for all.
StatusOr<Form> EmbeddingOf(Context& context, size_t table, const Form& ids);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_EMBEDDINGS_H_
