#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_norm.h"

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

class NormWeight final : public PackedWeight {
 public:
  NormWeight(std::unique_ptr<RowGroups> groups, DeviceArray<float> ends)
      : groups_(std::move(groups)),
        ends_(std::move(ends)),
        most_clusters_(SpreadsGroups() ? MostSpreadNormGroups<64>(groups_->count()) : 0),
        most_wide_clusters_(SpreadsGroups() ? MostSpreadNormGroups<128>(groups_->count()) : 0),
        most_few_clusters_(SpreadsGroups() ? MostSpreadNormFewColumns(groups_->count()) : 0) {}
  size_t bytes() const override { return groups_->bytes() + ends_.bytes(); }
  const RowGroups& groups() const { return *groups_; }
  // Spread, that the device that it was prepared for runs at once: of tiles of 64 columns, of 128, and of few.
  int most_clusters() const { return most_clusters_; }
  int most_wide_clusters() const { return most_wide_clusters_; }
  int most_few_clusters() const { return most_few_clusters_; }
  const float* scales() const { return ends_.data(); }
  const float* biases() const { return ends_.data() + ends_.size() / 2; }

 private:
  bool SpreadsGroups() const { return GroupsOfBlock(groups_->count()) > 1; }

  const std::unique_ptr<RowGroups> groups_;
  const DeviceArray<float> ends_;  // of the norm: scales, then biases
  const int most_clusters_, most_wide_clusters_, most_few_clusters_;
};

NormOperands OperandsOf(const KernelArgs& args) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const NormWeight&>(*args.weight);
  const GroupOperands product = {.weight = &weight.groups(),
                                 .dtype = problem.to.dtype,
                                 .x = args.inputs[0].data,
                                 .residual = args.inputs[1].data,
                                 .y = args.output.data,
                                 .stride = RowStride(problem.output.positions()),
                                 .columns = problem.output.positions()};
  const auto& [epsilon, centred, groups] = problem.normalisation();
  return {product, weight.scales(), weight.biases(), epsilon, centred};
}

// Spread where clusters, of which the device runs so many at once, have room beside what else is running, and there is
// a multiprocessor for each block: others come in a second wave. With 16 clusters of twelve layers that take 7 us alone
// took 12 in plans.
NormOperands SpreadOperandsOf(const KernelArgs& args, int64_t tile_columns, int most_clusters, Stream& stream) {
  NormOperands operands = OperandsOf(args);
  const int64_t clusters = CeilDiv(operands.product.columns, tile_columns);
  operands.spread = 4 * clusters <= 3 * int64_t{most_clusters} &&
                    clusters * operands.product.weight->count() <= int64_t{MultiprocessorsOf(stream)};
  return operands;
}

const NormWeight& WeightOf(const KernelArgs& args) { return static_cast<const NormWeight&>(*args.weight); }

}  // namespace

bool AcceptsNormShflBw(const Problem& problem) {
  const int64_t rows = problem.output.channels, cols = problem.input.channels;
  const int64_t bytes = RowStride(problem.output.positions()) * static_cast<int64_t>(ElementBytes(problem.to.dtype));
  return problem.epilogue == Epilogue{.residual = true} && problem.output.plane() == 1 &&
         rows % RowGroups::kRows == 0 && GroupsOfBlock(rows / RowGroups::kRows) != 0 && cols >= 1 &&
         cols <= RowGroups::kMostColumns && bytes <= std::numeric_limits<uint32_t>::max();
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareNormShflBw(const Weight& weight, const Problem& problem) {
  const std::span<const float> bias(weight.bias);
  const auto rows = static_cast<size_t>(weight.rows());
  SWIZZLE_ASSIGN_OR_RETURN(const auto matrix, GroupRows(weight.matrix));
  SWIZZLE_ASSIGN_OR_RETURN(auto groups, RowGroups::Make(*matrix, bias.first(rows), problem.to.dtype));
  const auto ends = bias.subspan(rows);
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<float>::Upload(std::vector<float>(ends.begin(), ends.end())));
  return std::make_unique<NormWeight>(std::move(groups), std::move(uploaded));
}

template <int kWidth>
void RunNormShflBw(const KernelArgs& args, Stream& stream) {
  const NormWeight& weight = WeightOf(args);
  const int most_clusters = kWidth == 64 ? weight.most_clusters() : weight.most_wide_clusters();
  QueueNormGroups<kWidth>(SpreadOperandsOf(args, kWidth, most_clusters, stream), QueueOf(stream));
}

void RunNormShflBwFew(const KernelArgs& args, Stream& stream) {
  QueueNormFewColumns(SpreadOperandsOf(args, kFewColumnsOfTile, WeightOf(args).most_few_clusters(), stream),
                      QueueOf(stream));
}

template void RunNormShflBw<64>(const KernelArgs&, Stream&);
template void RunNormShflBw<128>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda
