#include "model_loader/passes/pipeline.h"

#include "model_loader/graph/operator_table.h"
#include "model_loader/graph/verify.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/dropout.h"
#include "model_loader/sequences/recognise.h"

namespace swizzle {
namespace {

// RemoveNoOps, which leaves a Dropout that does something: no plan takes it.
StatusOr<int> RemoveNoOpsForPlan(Graph& graph) {
  SWIZZLE_ASSIGN_OR_RETURN(const int count, RemoveNoOps(graph));
  for (const Node& node : graph.nodes) {
    if (node.op != "Dropout" || !node.domain.empty()) continue;
    SWIZZLE_RETURN_IF_ERROR(CheckInference(graph, node));
    return Unimplemented(Describe(node), ": its mask is used");
  }
  return count;
}

constexpr Pass kPasses[] = {
    {"resolve_constants", ResolveConstants},
    {"remove_no_ops", RemoveNoOpsForPlan},
    {"widen_constants", WidenConstants},
    {"unround_products", UnroundProducts},
    {"read_byte_inputs", ReadByteInputs},
    {"recognise_written", RecogniseWritten},  // before fold_transposes, which passes through functions
    {"expand_transposed", ExpandTransposed},
    {"fold_transposes", FoldTransposes},  // before canonicalise, which knows channels by their place
    {"canonicalise", Canonicalise},
    {"recognise_functions", RecogniseFunctions},  // before fold_affine, which takes them apart
    {"recognise_depthwise", RecogniseDepthwise},
    {"fold_pad", FoldPad},  // before fold_affine, which must know a convolution's padding
    {"fold_affine", FoldAffine},
    {"lower_affine", LowerAffine},
    {"fuse_residual", FuseResidual},  // before fuse_activation: the clamp comes after the sum
    {"fuse_activation", FuseActivation},
};

// What is run once sequences are recognised.
constexpr Pass kSequencePasses[] = {
    {"fold_affine", FoldAffine},
    {"lower_affine", LowerAffine},
    {"fuse_residual", FuseResidual},
    {"fuse_activation", FuseActivation},
};

using Counts = std::vector<std::pair<std::string, int>>;

Status VerifyAfter(std::string_view pass, const Status& verified) {
  if (verified.ok()) return {};
  return MakeError(StatusCode::kInternal, "the pass ", pass, " broke the graph: ", std::string(verified.message()));
}

StatusOr<Counts> Run(std::span<const Pass> passes, Graph& graph, Counts counts) {
  for (const Pass& pass : passes) {
    SWIZZLE_ASSIGN_OR_RETURN(const int count, pass.run(graph));
    SWIZZLE_RETURN_IF_ERROR(VerifyAfter(pass.name, Verify(graph)));
    counts.emplace_back(pass.name, count);
  }
  return counts;
}

StatusOr<Counts> RunOnSequences(Graph& graph) {
  SWIZZLE_RETURN_IF_ERROR(ResolveConstants(graph).status());
  SWIZZLE_RETURN_IF_ERROR(RemoveNoOpsForPlan(graph).status());
  SWIZZLE_RETURN_IF_ERROR(VerifyAfter("remove_no_ops", VerifyAnyShape(graph, FindSequenceOperator)));
  SWIZZLE_RETURN_IF_ERROR(WidenConstants(graph).status());
  SWIZZLE_RETURN_IF_ERROR(VerifyAfter("widen_constants", VerifyAnyShape(graph, FindSequenceOperator)));
  SWIZZLE_ASSIGN_OR_RETURN(Counts counts, RecogniseSequences(graph));
  SWIZZLE_RETURN_IF_ERROR(VerifyAfter("recognise_sequences", Verify(graph)));
  return Run(kSequencePasses, graph, std::move(counts));
}

}  // namespace

std::span<const Pass> Passes() { return kPasses; }

StatusOr<std::vector<std::pair<std::string, int>>> RunPasses(Graph& graph) {
  return graph.sequences ? RunOnSequences(graph) : Run(kPasses, graph, {});
}

Status RunSectionPasses(Graph& graph) {
  SWIZZLE_RETURN_IF_ERROR(VerifyAfter("recognise_section", Verify(graph)));
  return Run(kSequencePasses, graph, {}).status();
}

Status RunRegionPasses(Graph& graph) {
  for (const Pass& pass : kPasses) {
    // The graph that the region is of has been through the one, and its idioms are what the other finds.
    if (pass.run == RemoveNoOpsForPlan || pass.run == RecogniseWritten) continue;
    SWIZZLE_RETURN_IF_ERROR(Run(std::span(&pass, 1), graph, {}).status());
  }
  return {};
}

}  // namespace swizzle
