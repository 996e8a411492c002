// Rotary embedding, for attention that has it within. Internal to model_loader/expansions.
#ifndef SWIZZLE_MODEL_LOADER_EXPANSIONS_ROTARY_H_
#define SWIZZLE_MODEL_LOADER_EXPANSIONS_ROTARY_H_

#include "model_loader/expansions/site.h"

namespace swizzle::expansions {

// Tables of cosines and sines, [positions, channels / 2], and how channels form pairs.
struct RotaryTables {
  int cosines = kNoValue, sines = kNoValue;
  bool is_interleaved = false;
  int64_t turned = 0;  // channels of a head, the first ones; 0: all
};

// x, [batch, length, heads, size], turned by positions [batch, length]; without those the tables are [batch, length,
// channels / 2].
int Turned(Site& site, int x, int positions, const RotaryTables& tables);

}  // namespace swizzle::expansions

#endif  // SWIZZLE_MODEL_LOADER_EXPANSIONS_ROTARY_H_
