#include "model_loader/plan/run/plan_runner.h"

#include <algorithm>

#include "kernels/base/dtype_row.h"

namespace swizzle {
namespace {

// Whether dimensions are as declared; -1 says nothing.
bool Fits(std::span<const int64_t> dims, std::span<const int64_t> declared) {
  return std::ranges::equal(dims, declared, [](int64_t dim, int64_t said) { return said == -1 || dim == said; });
}

TensorView ViewOf(const TensorPieces& input) {
  SWIZZLE_CHECK(input.pieces.size() == 1);
  return {input.dtype, input.shape, input.pieces[0]};
}

}  // namespace

Shape DimsAt(const Network& network, const NetworkPort& port, int64_t rows, int64_t length) {
  Shape shape = port.dims;
  std::ranges::replace(shape, int64_t{-1}, length);
  if (network.batch_size == 0) shape.insert(shape.begin(), rows);
  return shape;
}

StatusOr<std::unique_ptr<PlanRunner>> PlanRunner::Make(std::shared_ptr<const Plan> plan, const RunnerOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner, plan->NewRunner(options));
  return std::unique_ptr<PlanRunner>(new PlanRunner(std::move(plan), std::move(runner)));
}

StatusOr<PartOutputs> PlanRunner::RunPart(std::span<const TensorPieces> inputs, const BatchPart& part) {
  const Network& network = plan_->network();
  SWIZZLE_CHECK(inputs.size() == network.inputs.size());
  const int64_t rows = part.rows;
  SWIZZLE_RETURN_IF_ERROR(CheckInputs(inputs, part));
  if (network.sequences) {
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<TensorView> views, RunSequences(inputs));
    return PartOutputs{std::move(views), part.first, rows};
  }
  Gather(inputs, rows);
  const bool together = rows < part.of && plan_->has_tail();
  SWIZZLE_RETURN_IF_ERROR(together ? runner_->RunPart(part) : runner_->Run(rows));
  if (!together) return PartOutputs{Outputs(rows), part.first, rows};
  return part.first + rows == part.of ? PartOutputs{Outputs(part.of), 0, part.of} : PartOutputs();
}

Status PlanRunner::CheckInputs(std::span<const TensorPieces> inputs, const BatchPart& part) const {
  const Network& network = plan_->network();
  const int64_t rows = part.rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NetworkPort& port = network.inputs[i];
    const TensorPieces& input = inputs[i];
    if (input.dtype != port.dtype) {
      return InvalidArgument("input '", port.name, "' is ", DTypeName(input.dtype), "; save array.astype('",
                             RowOf(port.dtype).npy, "')");
    }
    const std::span<const int64_t> dims(port.dims);
    const bool has_rows = !input.shape.empty() && input.shape[0] == rows;
    const bool fits =
        has_rows && Fits(std::span(input.shape).subspan(1), network.batch_size > 0 ? dims.subspan(1) : dims);
    if (!fits) {
      Shape declared = DimsAt(network, port, rows);
      if (network.batch_size > 0) declared[0] = rows;
      return InvalidArgument("input '", port.name, "' is ", ShapeText(input.shape), "; it must be ",
                             ShapeText(declared));
    }
  }
  if (rows >= 1 && part.of <= plan_->max_batch()) return absl::OkStatus();
  return InvalidArgument("input '", network.inputs[0].name, "' has ", part.of,
                         " rows; its first dimension, the batch, must be at least 1, and at most ", plan_->max_batch());
}

// Pieces from pinned memory the device copies, and on the CPU, what is long, the plan's threads, which the first step
// would otherwise have to wake.
void PlanRunner::Gather(std::span<const TensorPieces> inputs, int64_t rows) {
  const bool pinned = std::ranges::all_of(inputs, &TensorPieces::is_pinned);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto input = static_cast<int>(i);
    size_t offset = 0;
    for (const auto& from : inputs[i].pieces) {
      if (pinned) {
        runner_->CopyInput(input, rows, offset, from);
      } else if (!from.empty()) {
        runner_->WriteInput(input, rows, offset, from);
      }
      offset += from.size();
    }
    SWIZZLE_CHECK(offset == runner_->InputMemory(input, rows).size());
  }
}

std::vector<TensorView> PlanRunner::Outputs(int64_t rows) {
  const Network& network = plan_->network();
  std::vector<TensorView> views;
  views.reserve(network.outputs.size());
  for (size_t i = 0; i < network.outputs.size(); ++i) {
    const NetworkPort& port = network.outputs[i];
    Shape shape = DimsAt(network, port, rows);
    if (network.batch_size > 0 && rows < network.batch_size) shape[0] = shape[0] / network.batch_size * rows;
    views.push_back({port.dtype, std::move(shape), std::as_bytes(runner_->Output(static_cast<int>(i), rows))});
  }
  return views;
}

Status PlanRunner::CheckIds(int input, const TensorView& view) const {
  const int64_t limit = plan_->network().sequences->mask == input ? 2 : plan_->IdLimit(input);
  const auto elements = static_cast<int64_t>(view.bytes.size() / ElementBytes(view.dtype));
  for (int64_t i = 0; limit > 0 && i < elements; ++i) {
    const int64_t whole = WholeAt(view, i);
    if (whole >= 0 && whole < limit) continue;
    return InvalidArgument("input '", plan_->network().inputs[static_cast<size_t>(input)].name, "' holds ", whole,
                           " at element ", i, "; it must be from 0 to ", limit - 1);
  }
  return absl::OkStatus();
}

Status PlanRunner::CheckSequences(std::span<const TensorPieces> inputs) const {
  const std::string& name = plan_->network().inputs[0].name;
  const Shape& shape = inputs[0].shape;
  const int64_t positions = plan_->PositionLimit();
  if (shape.size() != 2 || shape[1] < 1 || (positions > 0 && shape[1] > positions)) {
    return InvalidArgument("input '", name, "' is ", ShapeText(shape), "; it must be [batch, length]",
                           positions == 0 ? "" : Concat(", of at most ", positions, " tokens"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].shape != shape) {
      return InvalidArgument("input '", plan_->network().inputs[i].name, "' is ", ShapeText(inputs[i].shape),
                             "; it must be ", ShapeText(shape), " as '", name, "' is");
    }
    SWIZZLE_RETURN_IF_ERROR(CheckIds(static_cast<int>(i), ViewOf(inputs[i])));
  }
  return absl::OkStatus();
}

StatusOr<std::vector<TensorView>> PlanRunner::RunSequences(std::span<const TensorPieces> inputs) {
  SWIZZLE_RETURN_IF_ERROR(CheckSequences(inputs));
  const Network& network = plan_->network();
  const int64_t rows = inputs[0].shape[0], length = inputs[0].shape[1];
  const auto view_of = [&](int input) -> std::optional<TensorView> {
    return input < 0 ? std::nullopt : std::optional(ViewOf(inputs[static_cast<size_t>(input)]));
  };
  packing_.emplace(PackingRulesOf(network, /*compute_masked=*/false));
  packing_->Add(rows, length, view_of(network.sequences->mask), view_of(network.sequences->counted),
                view_of(network.sequences->end.input));
  const BatchSize size(rows, packing_->tokens());
  if (size.tokens > plan_->max_tokens()) {
    return InvalidArgument("input '", network.inputs[0].name, "' has ", size.tokens, " tokens; the plan takes ",
                           plan_->max_tokens());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (plan_->IdLimit(static_cast<int>(i)) == 0) continue;
    const std::span<int32_t> ids = runner_->Ids(static_cast<int>(i), size);
    const TensorView view = ViewOf(inputs[i]);
    for (int64_t token = 0; token < size.tokens; ++token) {
      ids[token] = static_cast<int32_t>(WholeAt(view, packing_->sources()[token]));
    }
  }
  const Sequences sequences = packing_->sequences();
  SWIZZLE_RETURN_IF_ERROR(runner_->Run(size, &sequences));
  spread_.resize(network.outputs.size());
  std::vector<TensorView> views;
  for (size_t i = 0; i < network.outputs.size(); ++i) {
    views.push_back(OutputOfSequences(i, DimsAt(network, network.outputs[i], rows, length), size));
  }
  return views;
}

// Tokens that were not computed are zeros.
TensorView PlanRunner::OutputOfSequences(size_t output, Shape shape, BatchSize size) {
  const NetworkPort& port = plan_->network().outputs[output];
  const NetworkValue& value = plan_->network().values[port.value];
  const auto from = std::as_bytes(runner_->Output(static_cast<int>(output), size));
  // Where all tokens were computed, each stands where it is to (copying 6 MB took as long as BERT-base on a GPU).
  const bool as_computed = !value.per_token || size.tokens == shape[0] * shape[1];
  if (as_computed) return {port.dtype, std::move(shape), from};
  const size_t line_bytes = static_cast<size_t>(value.channels) * sizeof(float);
  spread_[output].assign(static_cast<size_t>(shape[0] * shape[1]) * line_bytes, std::byte{0});
  packing_->Spread(0, size.tokens, from.data(), line_bytes, spread_[output].data());
  return {port.dtype, std::move(shape), spread_[output]};
}

}  // namespace swizzle
