#include "model_loader/sequences/recognise.h"

#include "model_loader/sequences/walk.h"
#include "model_loader/sequences/whole_products.h"

namespace swizzle {

StatusOr<std::vector<std::pair<std::string, int>>> RecogniseSequences(Graph& graph) {
  SWIZZLE_RETURN_IF_ERROR(sequences::ResolveWholeNumbers(graph));
  sequences::Walk walk(graph);
  SWIZZLE_ASSIGN_OR_RETURN(Graph recognised, walk.Run());
  graph = std::move(recognised);
  return walk.counts();
}

}  // namespace swizzle
