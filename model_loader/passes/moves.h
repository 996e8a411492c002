// What picks, repeats or reorders channels and positions, as canonical operators that every backend has: convolutions
// whose weights are ones and zeros, and Resize. Internal to the pass Canonicalise.
//
// Results are exact, but that a number which is not finite may spread to the window around it.
#ifndef SWIZZLE_MODEL_LOADER_PASSES_MOVES_H_
#define SWIZZLE_MODEL_LOADER_PASSES_MOVES_H_

#include <array>
#include <cstdint>

#include "model_loader/passes/canonicalise.h"
#include "model_loader/semantics/slices.h"

namespace swizzle {

// The channels of `value`, [N, groups * k, H, W], of all groups in turn: channel c of group g becomes channel
// c * groups + g. The value that a node before this one makes of it.
StatusOr<int> PrecedeShuffle(NodeRewrite& rewrite, int value, int64_t groups);

// The node becomes the part of its first input, [N, C, H, W], that `rows` and `columns` are. UNIMPLEMENTED where that
// takes windows of many positions.
Status BecomePlaneSlice(NodeRewrite& rewrite, const SliceRange& rows, const SliceRange& columns);

// `value` with its dimensions of 1 repeated to `shape`, [N, C, H, W], whose batch is its own; itself where nothing is.
StatusOr<int> PrecedeBroadcast(NodeRewrite& rewrite, int value, const Shape& shape);

// The node becomes its first input, [N, C, H, W], with blocks of positions as channels: position (y, x) of a block is
// channels (y * block + x) * C and on.
Status BecomeSpaceToDepth(NodeRewrite& rewrite, int64_t block);

// The node becomes the sum of its first input's channels, [N, 1, H, W], times `factor`.
Status BecomeChannelSum(NodeRewrite& rewrite, float factor);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PASSES_MOVES_H_
