// A small Transformer encoder with drawn weights, for tests that need something whole that computes token sequences.
#ifndef SWIZZLE_TESTS_SUPPORT_RANDOM_ENCODER_H_
#define SWIZZLE_TESTS_SUPPORT_RANDOM_ENCODER_H_

#include <cstdint>
#include <optional>

#include "model_loader/network/network.h"

namespace swizzle::testing {

struct RandomEncoderOptions {
  uint32_t seed = 1;
  double sparsity = 0.9;   // of the linear layers, stored as CSR; 0: stored dense
  int64_t batch_size = 0;  // 0: free
  int64_t length = 0;      // likewise
  int64_t vocabulary = 50;
  int64_t positions = 80;  // that the model has embeddings for; 0: it has none
  bool skips_masked = true;
  int64_t channels = 24;   // in 2 heads
  int32_t group_size = 1;  // heads that share one of keys and values
  int64_t band = 0;        // of a causal pattern of keys with some drawn ones, which needs a length; 0: all keys
  int64_t reach = 0;       // of biases by distance, causal ones; 0: none
  int64_t places = 0;      // of disentangled attention, around distance 0; 0: none
  int64_t windows = 0;     // that each sequence, from its end, is cut into, which needs a length; 0: none
  int64_t rotary = 0;      // positions of the table that queries and keys are turned by; 0: they are not
  std::optional<int64_t> padding = {};  // positions count the ids that are not this; absent: all
};

// BERT with one block: inputs "input_ids", "attention_mask" (INT64) and "token_type_ids" (INT32), which nothing reads,
// as the mask where there are a band or windows; outputs "hidden" [length, channels] and "pooled" [channels], a linear
// layer and tanh of the first token.
Network MakeRandomEncoder(const RandomEncoderOptions& options);

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_RANDOM_ENCODER_H_
