#include "kernels/cuda/conv/parts/conv_row_parts.h"

#include <utility>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/csr/conv_csr.h"
#include "kernels/cuda/conv/operands/im2col.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "kernels/cuda/runtime/queue.h"
#include "kernels/format/shfl_bw.h"

namespace swizzle::cuda {
namespace {

constexpr int64_t kAlignment = 256;

class RowPartsWeight final : public PackedWeight {
 public:
  explicit RowPartsWeight(std::unique_ptr<RowGroups> groups) : groups_(std::move(groups)) {}
  size_t bytes() const override { return groups_->bytes(); }
  const RowGroups& groups() const { return *groups_; }

 private:
  const std::unique_ptr<RowGroups> groups_;
};

// What lies in the workspace, one after the other.
struct RowPartsWorkspace {
  int64_t depth, stride;
  int64_t columns, halves, inverses;  // bytes

  explicit RowPartsWorkspace(const Problem& problem)
      : depth(problem.input.channels * problem.window().taps()),
        stride(RowStride(problem.output.positions())),
        columns(RoundUp(static_cast<int64_t>(ConvCsrWorkspaceBytes(problem)), kAlignment)),
        halves(RoundUp(2 * depth * stride * int64_t{sizeof(uint16_t)}, kAlignment)),
        inverses(stride * int64_t{sizeof(float)}) {}
  PositionParts In(std::byte* workspace) const {
    return {workspace + columns, reinterpret_cast<float*>(workspace + columns + halves)};
  }
};

StatusOr<std::unique_ptr<PackedWeight>> Pack(const ShflBwMatrix& matrix, const Weight& weight) {
  SWIZZLE_ASSIGN_OR_RETURN(auto packed, RowGroups::MakeParts(matrix, weight.bias));
  return std::make_unique<RowPartsWeight>(std::move(packed));
}

}  // namespace

bool AcceptsConvRowParts(const Problem& problem) {
  return 2 * RowPartsWorkspace(problem).depth <= RowGroups::kMostColumns && AcceptsConvShflBw(problem);
}

size_t ConvRowPartsWorkspaceBytes(const Problem& problem) {
  const RowPartsWorkspace workspace(problem);
  return static_cast<size_t>(workspace.columns + workspace.halves + workspace.inverses);
}

PositionParts SplitAllColumns(const KernelArgs& args, Stream& stream) {
  const RowPartsWorkspace workspace(*args.problem);
  const auto* const columns = static_cast<const float*>(AllColumns(args, stream));
  const PositionParts parts = workspace.In(args.workspace.data());
  SplitRows(columns, workspace.depth, workspace.stride, parts, stream);
  return parts;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvGroupParts(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto matrix, GroupRows(weight.matrix));
  return Pack(*matrix, weight);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvRowParts(const Weight& weight, const Problem&) {
  return Pack(ShflBwMatrix::FromDense(weight.ToDense(), RowGroups::kRows, RowsInOrder(weight.rows())), weight);
}

template <int kWidth>
void RunConvRowParts(const KernelArgs& args, Stream& stream) {
  const RowGroups& weight = static_cast<const RowPartsWeight&>(*args.weight).groups();
  QueueParts<kWidth>(SplitOperands(weight, args, stream), MultiprocessorsOf(stream), QueueOf(stream));
}

template void RunConvRowParts<64>(const KernelArgs&, Stream&);
template void RunConvRowParts<128>(const KernelArgs&, Stream&);
template void RunConvRowParts<256>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda
