#include "kernels/cuda/conv/conv_shfl_bw_norm.h"

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
        spreads_(RunsSpreadNormGroups(groups_->count()) && RunsSpreadNormFewColumns(groups_->count())) {}
  size_t bytes() const override { return groups_->bytes() + ends_.bytes(); }
  const RowGroups& groups() const { return *groups_; }
  bool spreads() const { return spreads_; }  // where the device that it was prepared for runs it
  const float* scales() const { return ends_.data(); }
  const float* biases() const { return ends_.data() + ends_.size() / 2; }

 private:
  const std::unique_ptr<RowGroups> groups_;
  const DeviceArray<float> ends_;  // of the norm: scales, then biases
  const bool spreads_;
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
  const auto& [epsilon, centred] = problem.normalisation();
  return {product, weight.scales(), weight.biases(), epsilon, centred};
}

constexpr int64_t kSpreadColumnsOfTile = 64;

// Blocks of spread clusters, a multiprocessor for each. With more a few clusters may find no room beside what else is
// running, and come in a second wave: with 192 blocks layers that take 7 us alone took 12 in plans.
int64_t SpreadBlocks(const Problem& problem, int64_t tile_columns) {
  return CeilDiv(problem.output.positions(), tile_columns) * (problem.output.channels / RowGroups::kRows);
}

bool AcceptsSpread(const Problem& problem, int64_t tile_columns) {
  constexpr int64_t kMostMultiprocessors = 132;  // of any Hopper
  return AcceptsNormShflBw(problem) && GroupsOfBlock(problem.output.channels / RowGroups::kRows) > 1 &&
         SpreadBlocks(problem, tile_columns) <= kMostMultiprocessors;
}

NormOperands SpreadOperandsOf(const KernelArgs& args, int64_t tile_columns, Stream& stream) {
  NormOperands operands = OperandsOf(args);
  operands.spread = static_cast<const NormWeight&>(*args.weight).spreads() &&
                    SpreadBlocks(*args.problem, tile_columns) <= int64_t{MultiprocessorsOf(stream)};
  return operands;
}

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
  QueueNormGroups<kWidth>(OperandsOf(args), QueueOf(stream));
}

void RunNormShflBwFew(const KernelArgs& args, Stream& stream) {
  QueueNormFewColumns(OperandsOf(args), QueueOf(stream));
}

bool AcceptsSpreadNormShflBw(const Problem& problem) { return AcceptsSpread(problem, kSpreadColumnsOfTile); }

bool AcceptsSpreadNormShflBwFew(const Problem& problem) { return AcceptsSpread(problem, kFewColumnsOfTile); }

void RunSpreadNormShflBw(const KernelArgs& args, Stream& stream) {
  QueueNormGroups<kSpreadColumnsOfTile>(SpreadOperandsOf(args, kSpreadColumnsOfTile, stream), QueueOf(stream));
}

void RunSpreadNormShflBwFew(const KernelArgs& args, Stream& stream) {
  QueueNormFewColumns(SpreadOperandsOf(args, kFewColumnsOfTile, stream), QueueOf(stream));
}

template void RunNormShflBw<64>(const KernelArgs&, Stream&);
template void RunNormShflBw<128>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda
