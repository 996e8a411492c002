// Graphs from the text that graph/print.h makes of them, for golden tests.
#ifndef SWIZZLE_TESTS_SUPPORT_GRAPH_TEXT_H_
#define SWIZZLE_TESTS_SUPPORT_GRAPH_TEXT_H_

#include <cstdint>
#include <string_view>

#include "model_loader/graph/graph.h"

namespace swizzle::testing {

// The graph that Print would print so. A name stands for what was last defined by it; constants whose elements are not
// printed count up from 1. Attributes of whole numbers are integers but for those that are floats by their name (alpha,
// epsilon, low and the like). INVALID_ARGUMENT, with the line, where the text is no graph.
StatusOr<Graph> ParseGraph(std::string_view text, int64_t opset);

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_GRAPH_TEXT_H_
