#include "server/sequence_session.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace swizzle {
namespace {

class SequenceSession final : public Session {
 public:
  SequenceSession(const SequenceRules& rules, const PortMap& ports, const Plan& plan, ExecutionState state)
      : rules_(rules), ports_(ports), plan_(plan), state_(std::move(state)), packing_(rules.packing()) {}

  Status Run(std::span<BatchItem> batch, BatchTimes& times) override {
    const absl::Time start = absl::Now();
    Gather(batch);
    const absl::Time gathered = absl::Now();
    const BatchSize size(packing_.rows(), packing_.tokens());
    const Sequences sequences = packing_.sequences();
    SWIZZLE_RETURN_IF_ERROR(plan_.Run(state_, size, &sequences));
    const absl::Time computed = absl::Now();
    Scatter(batch, size);
    times = {gathered - start, computed - gathered, absl::Now() - computed};
    return absl::OkStatus();
  }

 private:
  static int64_t Rows(const BatchItem& item) { return item.inputs[0].shape[0]; }
  static int64_t Length(const BatchItem& item) { return item.inputs[0].shape[1]; }

  void Gather(std::span<BatchItem> batch) {
    packing_.Clear();
    begins_.assign(1, 0);
    for (const BatchItem& item : batch) {
      packing_.Add(Rows(item), Length(item), rules_.MaskOf(item.inputs));
      begins_.push_back(packing_.tokens());
    }
    const BatchSize size(packing_.rows(), packing_.tokens());
    for (size_t i = 0; i < ports_.inputs.size(); ++i) {
      if (plan_.IdLimit(ports_.inputs[i]) == 0) continue;
      const std::span<int32_t> ids = plan_.Ids(state_, ports_.inputs[i], size);
      for (size_t k = 0; k < batch.size(); ++k) {
        for (int64_t token = begins_[k]; token < begins_[k + 1]; ++token) {
          ids[token] = static_cast<int32_t>(WholeAt(batch[k].inputs[i], packing_.sources()[token]));
        }
      }
    }
  }

  void Scatter(std::span<BatchItem> batch, BatchSize size) {
    for (BatchItem& item : batch) {
      item.outputs->resize(ports_.outputs.size());
      item.output_shapes->resize(ports_.outputs.size());
    }
    for (size_t i = 0; i < ports_.outputs.size(); ++i) {
      const NetworkPort& port = plan_.network().outputs[ports_.outputs[i]];
      const bool per_token = plan_.network().values[port.value].per_token;
      const std::span<const float> from = plan_.Output(state_, ports_.outputs[i], size);
      int64_t row = 0;
      for (size_t k = 0; k < batch.size(); ++k) {
        BatchItem& item = batch[k];
        (*item.output_shapes)[i] = OutputShape(port, per_token, item);
        if (per_token) {
          SpreadTokens(item, begins_[k], begins_[k + 1], from, size.tokens, (*item.outputs)[i]);
        } else {
          const size_t floats = from.size() / static_cast<size_t>(size.rows);
          (*item.outputs)[i].assign(reinterpret_cast<const char*>(from.data() + row * floats),
                                    static_cast<size_t>(Rows(item)) * floats * sizeof(float));
        }
        row += Rows(item);
      }
    }
  }

  // [rows, length and what the port has besides]
  Shape OutputShape(const NetworkPort& port, bool per_token, const BatchItem& item) const {
    const bool fixed = plan_.network().batch_size > 0;
    Shape shape(port.dims.begin() + (fixed ? 1 : 0), port.dims.end());
    if (per_token) shape[0] = Length(item);
    shape.insert(shape.begin(), Rows(item));
    return shape;
  }

  // Tokens that were not computed are zeros. Where all were, their lines lie as the output wants them.
  void SpreadTokens(const BatchItem& item, int64_t begin, int64_t end, std::span<const float> from, int64_t tokens,
                    std::string& to) const {
    const size_t bytes = from.size_bytes() / static_cast<size_t>(tokens);
    if (end - begin == Rows(item) * Length(item)) {
      const char* const lines = reinterpret_cast<const char*>(from.data());
      to.assign(lines + static_cast<size_t>(begin) * bytes, static_cast<size_t>(end - begin) * bytes);
      return;
    }
    to.assign(static_cast<size_t>(Rows(item) * Length(item)) * bytes, '\0');
    packing_.Spread(begin, end, std::as_bytes(from).data(), bytes, reinterpret_cast<std::byte*>(to.data()));
  }

  const SequenceRules& rules_;
  const PortMap& ports_;
  const Plan& plan_;
  ExecutionState state_;
  TokenPacking packing_;
  std::vector<int64_t> begins_;  // [items + 1], tokens of each item
};

}  // namespace

SequenceRules::SequenceRules(const ModelSpec& spec, const PortMap& ports, const Plan& plan)
    : spec_(spec), ports_(ports), plan_(plan), packing_(PackingRulesOf(plan.network(), spec.compute_masked)) {
  const auto mask = std::find(ports.inputs.begin(), ports.inputs.end(), plan.network().sequences->mask);
  if (mask != ports.inputs.end()) mask_ = static_cast<int>(mask - ports.inputs.begin());
}

std::optional<TensorView> SequenceRules::MaskOf(std::span<const TensorView> inputs) const {
  return mask_ < 0 ? std::nullopt : std::optional(inputs[mask_]);
}

Status SequenceRules::CheckShapes(std::span<const TensorView> inputs) const {
  const Shape& shape = inputs[0].shape;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].shape == shape) continue;
    return InvalidArgument("input '", spec_.inputs[i].name, "' of model '", spec_.name, "' has shape ",
                           ShapeText(inputs[i].shape), ", and input '", spec_.inputs[0].name, "' has ",
                           ShapeText(shape), "; they must be the same");
  }
  if (shape[0] < 1 || shape[0] > plan_.max_batch() || shape[1] < 1) {
    return InvalidArgument("input '", spec_.inputs[0].name, "' of model '", spec_.name, "' has shape ",
                           ShapeText(shape), "; it must have 1 to ", plan_.max_batch(),
                           " sequences of at least 1 token");
  }
  const int64_t longest = plan_.PositionLimit();
  if (longest == 0 || shape[1] <= longest) return {};
  return InvalidArgument("input '", spec_.inputs[0].name, "' of model '", spec_.name, "' has sequences of ", shape[1],
                         " tokens; the model has positions for ", longest);
}

Status SequenceRules::CheckValues(std::span<const TensorView> inputs) const {
  const int64_t elements = inputs[0].shape[0] * inputs[0].shape[1];
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_mask = static_cast<int>(i) == mask_;
    const int64_t limit = is_mask ? 2 : plan_.IdLimit(ports_.inputs[i]);
    for (int64_t k = 0; limit > 0 && k < elements; ++k) {
      const int64_t whole = WholeAt(inputs[i], k);
      if (whole >= 0 && whole < limit) continue;
      return InvalidArgument("input '", spec_.inputs[i].name, "' of model '", spec_.name, "' holds ", whole,
                             " at element ", k, is_mask ? "; a mask holds 0 and 1" : "; ids must be from 0 to ",
                             is_mask ? "" : std::to_string(limit - 1));
    }
  }
  return {};
}

StatusOr<int64_t> SequenceRules::Check(std::span<const TensorView> inputs) const {
  SWIZZLE_RETURN_IF_ERROR(CheckShapes(inputs));
  SWIZZLE_RETURN_IF_ERROR(CheckValues(inputs));
  const Shape& shape = inputs[0].shape;
  const int64_t tokens = CountTokens(packing_, shape[0], shape[1], MaskOf(inputs));
  if (tokens <= plan_.max_tokens()) return tokens;
  return InvalidArgument("the request to model '", spec_.name, "' has ", tokens, " tokens; max_batch_tokens is ",
                         plan_.max_tokens(), ": send fewer sequences at a time, or configure more");
}

StatusOr<std::unique_ptr<Session>> NewSequenceSession(const SequenceRules& rules, const PortMap& ports,
                                                      const Plan& plan) {
  SWIZZLE_ASSIGN_OR_RETURN(ExecutionState state, plan.NewState());
  return std::make_unique<SequenceSession>(rules, ports, plan, std::move(state));
}

}  // namespace swizzle
