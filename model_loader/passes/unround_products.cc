#include <string>
#include <utility>

#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/integer_products.h"

namespace swizzle {
namespace {

// What the real operator reads: whole numbers of a constant scale in real ones, so that they stay whole; what is
// quantised dynamically before it is rounded.
int RealInput(Rewriter& rewriter, int index, const IntegerProducts::Rounding& rounding) {
  if (rounding.by_position) return rounding.read;
  const std::string name = rewriter.node(index).name + ".real";
  Value value;
  value.name = name;
  const int real = rewriter.graph().AddValue(std::move(value));
  const float one = 1.0f;
  const int scale = rounding.scale == kNoValue
                        ? rewriter.graph().AddConstant(name + ".scale", Tensor::Floats({}, {&one, 1}))
                        : rounding.scale;
  std::vector<int> inputs = {rounding.read, scale};
  if (rounding.zero_point != kNoValue) inputs.push_back(rounding.zero_point);
  rewriter.InsertBefore(index, {"DequantizeLinear", "", name, std::move(inputs), {real}, {}});
  return real;
}

}  // namespace

StatusOr<int> UnroundProducts(Graph& graph) {
  Rewriter rewriter(graph);
  IntegerProducts products(rewriter);
  int count = 0;
  for (int i = 0, given = rewriter.node_count(); i < given; ++i) {
    if (rewriter.IsErased(i) || !rewriter.node(i).domain.empty()) continue;
    const bool is_conv = rewriter.node(i).op == "ConvInteger";
    if (!is_conv && rewriter.node(i).op != "MatMulInteger") continue;
    const auto product = products.Find(i);
    if (!product) continue;
    const std::string described = Describe(rewriter.node(i));
    const int read = RealInput(rewriter, i, product->rounding);
    const Status status = products.BecomeReal(i, *product, is_conv ? "Conv" : "MatMul", read, is_conv ? 0 : 1);
    if (!status.ok()) return Annotate(status, described);
    ++count;
  }
  rewriter.Finish();
  return count;
}

}  // namespace swizzle
