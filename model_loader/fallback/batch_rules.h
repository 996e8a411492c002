// What is known of a node's output, given what is of its inputs. Thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_RULES_H_
#define SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_RULES_H_

#include <cstddef>
#include <optional>

#include "model_loader/fallback/batch_facts.h"
#include "model_loader/graph/operator_table.h"

namespace swizzle::fallback {

// The shape of an output. It has rows where an input has, and then each request's are computed from that request's
// alone; nothing where that is not certain, or, of inputs that are the same for every batch, the rank is not known.
std::optional<Extents> ResultShape(const NodeFacts& node, RowRule rule, size_t output);

// Of operators that move elements and don't compute: Reshape and its kin, Concat, Slice, Gather and the like.
std::optional<Extents> MovedShape(const NodeFacts& node);

// The result of arithmetic on sizes, and of what picks and joins them; nothing where its elements are not known.
std::optional<BatchFact> ComputedList(const NodeFacts& node);

}  // namespace swizzle::fallback

#endif  // SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_RULES_H_
