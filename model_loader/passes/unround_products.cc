#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/integer_products.h"

namespace swizzle {

StatusOr<int> UnroundProducts(Graph& graph) {
  Rewriter rewriter(graph);
  IntegerProducts products(rewriter);
  int count = 0;
  for (int i = 0, given = rewriter.node_count(); i < given; ++i) {
    if (!rewriter.IsErased(i) && products.Unround(i)) ++count;
  }
  if (count > 0) rewriter.Finish();
  return count;
}

}  // namespace swizzle
