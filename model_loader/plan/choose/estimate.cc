#include "model_loader/plan/choose/estimate.h"

namespace swizzle {
namespace {

bool SkipsZeros(const Kernel& kernel) { return IsSparse(kernel.key.weights) && !VisitsZeros(kernel.key.weights); }

// Those included that a layout rounds up.
int64_t PositionsIn(Layout layout, const Extent& extent) {
  if (layout == Layout::kPanels) return PanelGrid(extent.positions()).padded_positions();
  if (layout == Layout::kFullPanels) return FullPanels(extent.positions()) * kMaxPanelWidth;
  return layout == Layout::kBatched ? BatchedPositions(extent) : extent.positions();
}

double MultiplyAdds(const Kernel& kernel, const Problem& problem, const WeightShape& weight) {
  const int64_t entries = SkipsZeros(kernel) ? weight.nonzeros : weight.rows * weight.columns;
  if (problem.op == Op::kBiasedAttention && problem.attention().windows > 1) {
    const double channels = static_cast<double>(problem.input.channels + problem.output.channels);
    return static_cast<double>(problem.input.batch) * static_cast<double>(problem.attention().length) * channels;
  }
  if (problem.op == Op::kSparseAttention) {
    const double sequences = static_cast<double>(problem.input.batch) / static_cast<double>(problem.attention().length);
    const double channels = static_cast<double>(problem.input.channels + problem.output.channels);
    return sequences * static_cast<double>(entries) * channels;
  }
  return static_cast<double>(entries) * static_cast<double>(PositionsIn(kernel.key.output.layout, problem.output));
}

// Of whole numbers beside real ones, per time.
double Speedup(const Kernel& kernel) {
  constexpr double kWholes = 2.5;
  return kernel.key.input.dtype == DType::kUint8 ? kWholes : 1.0;
}

// Of sparse rows: those over plain matrices, beside those over panels, are for few requests, which panels would pad.
bool IsOfFewRequests(const Kernel& kernel) { return kernel.key.output.layout == Layout::kNchw; }

double Rate(const Kernel& kernel, const Throughput& throughput) {
  constexpr double kOfFewRequests = 0.2;
  if (kernel.key.op == Op::kDepthwiseConv) return throughput.depthwise_multiply_adds * Speedup(kernel);
  if (!SkipsZeros(kernel)) return throughput.dense_multiply_adds * Speedup(kernel);
  if (IsOfFewRequests(kernel)) return throughput.sparse_multiply_adds * kOfFewRequests;
  const bool in_blocks = IsInBlocks(kernel.key.weights) && throughput.block_multiply_adds > 0.0;
  return (in_blocks ? throughput.block_multiply_adds : throughput.sparse_multiply_adds) * Speedup(kernel);
}

// Of the input or output, in floats of four bytes.
double Floats(const Extent& extent, Storage storage) {
  return static_cast<double>(LayoutElements(extent, storage.layout) * ElementBytes(storage.dtype)) / sizeof(float);
}

// Windows that a row unfolds first.
double WorkspaceMicroseconds(const Kernel& kernel, const Problem& problem, const Throughput& throughput) {
  if (kernel.workspace_bytes == nullptr || throughput.workspace_floats == 0.0) return 0.0;
  return static_cast<double>(kernel.workspace_bytes(problem)) / sizeof(float) / throughput.workspace_floats;
}

}  // namespace

const Throughput& PlanThroughput::For(const Kernel& kernel) const {
  switch (kernel.numerics) {
    case Numerics::kSplitFactors:
      return split;
    case Numerics::kTf32Factors:
      return plan;
    case Numerics::kOfTypes:
    case Numerics::kBfloat16Factors:
    case Numerics::kOperandsAsBytes:
      break;
  }
  return TypeOf(precision) != DType::kFloat32 ? plan : single;
}

double EstimateMicroseconds(const Kernel& kernel, const Problem& problem, const WeightShape* weight,
                            const Throughput& throughput) {
  // Of a table only those rows are moved that tokens name.
  if (weight != nullptr && !ReadsRowsOfTokens(problem.op)) {
    return throughput.call_microseconds + MultiplyAdds(kernel, problem, *weight) / Rate(kernel, throughput) +
           WorkspaceMicroseconds(kernel, AsRowSolves(kernel, problem), throughput);
  }
  const double floats = Floats(problem.input, kernel.key.input) + Floats(problem.output, kernel.key.output);
  return throughput.call_microseconds + floats / throughput.floats;
}

double EstimateInPlan(const Kernel& kernel, const Problem& problem, const WeightShape* weight,
                      const PlanThroughput& throughput) {
  constexpr double kUnlessMeasured = 1.1;  // what was asked for, where FP32 would be no slower
  if (IsWider(throughput.precision, kernel)) {
    return kUnlessMeasured * EstimateMicroseconds(kernel, problem, weight, throughput.single);
  }
  return EstimateMicroseconds(kernel, problem, weight, throughput.For(kernel));
}

}  // namespace swizzle
