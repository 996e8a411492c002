// Tells the sampled requests of a batch (server/tracing) how it went. Functions only.
#ifndef SWIZZLE_SERVER_BATCHING_BATCH_SAMPLES_H_
#define SWIZZLE_SERVER_BATCHING_BATCH_SAMPLES_H_

#include "server/batching/batch.h"
#include "server/model/model.h"

namespace swizzle {

// After the batch has run, before its requests end. Costs a look at each request where none is sampled.
void TellSamples(const Batch& batch) noexcept;

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_BATCH_SAMPLES_H_
