#include "model_loader/passes/pipeline.h"

#include "model_loader/graph/verify.h"
#include "model_loader/passes/passes.h"

namespace swizzle {
namespace {

constexpr Pass kPasses[] = {
    {"resolve_identity", ResolveIdentity},
    {"fold_transposes", FoldTransposes},  // before canonicalise, which knows channels by their place
    {"canonicalise", Canonicalise},
    {"recognise_functions", RecogniseFunctions},  // before fold_affine, which takes them apart
    {"recognise_depthwise", RecogniseDepthwise},
    {"fold_pad", FoldPad},        // before fold_affine, which must know a convolution's padding
    {"fold_affine", FoldAffine},
    {"lower_affine", LowerAffine},
    {"fuse_residual", FuseResidual},  // before fuse_activation: the clamp comes after the sum
    {"fuse_activation", FuseActivation},
};

}  // namespace

std::span<const Pass> Passes() { return kPasses; }

StatusOr<std::vector<std::pair<std::string, int>>> RunPasses(Graph& graph) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Pass& pass : kPasses) {
    SWIZZLE_ASSIGN_OR_RETURN(const int count, pass.run(graph));
    const Status verified = Verify(graph);
    if (!verified.ok()) {
      return MakeError(StatusCode::kInternal, "the pass ", pass.name, " broke the graph: ",
                       std::string(verified.message()));
    }
    counts.emplace_back(pass.name, count);
  }
  return counts;
}

}  // namespace swizzle
