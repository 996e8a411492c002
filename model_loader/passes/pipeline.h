// The passes in the order in which they run.
#ifndef SWIZZLE_MODEL_LOADER_PASSES_PIPELINE_H_
#define SWIZZLE_MODEL_LOADER_PASSES_PIPELINE_H_

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle {

struct Pass {
  std::string_view name;
  StatusOr<int> (*run)(Graph&);
};

std::span<const Pass> Passes();

// Runs all passes and verifies the graph after each. Returns each pass's name and how often it applied. On an error the
// graph is in no state to be used. A graph of token sequences is recognised first (sequences/recognise.h), whose counts
// come before those of the passes that still apply to it.
StatusOr<std::vector<std::pair<std::string, int>>> RunPasses(Graph& graph);

// Runs them on a region's graph, which may hold canonical nodes already.
Status RunRegionPasses(Graph& graph);

// Runs those that still apply to what a section of token sequences was recognised as (sequences/section.h).
Status RunSectionPasses(Graph& graph);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PASSES_PIPELINE_H_
