#include "model_loader/sequences/recognise.h"

#include "model_loader/sequences/walk.h"

namespace swizzle {

StatusOr<std::vector<std::pair<std::string, int>>> RecogniseSequences(Graph& graph) {
  sequences::Walk walk(graph);
  SWIZZLE_ASSIGN_OR_RETURN(Graph recognised, walk.Run());
  graph = std::move(recognised);
  return walk.counts();
}

}  // namespace swizzle
