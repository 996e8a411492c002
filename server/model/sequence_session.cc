#include "server/model/sequence_session.h"

#include <algorithm>
#include <utility>

#include "model_loader/plan/run/plan_runner.h"

namespace swizzle {
namespace {

// Rows [first, first + rows) of a tensor [rows, length].
TensorView RowsOf(const TensorView& tensor, int64_t first, int64_t rows) {
  const size_t row_bytes = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
  return {tensor.dtype, {rows, tensor.shape[1]}, tensor.bytes.subspan(first * row_bytes, rows * row_bytes)};
}
std::optional<TensorView> RowsOf(const std::optional<TensorView>& tensor, int64_t first, int64_t rows) {
  return tensor ? std::optional(RowsOf(*tensor, first, rows)) : std::nullopt;
}

class SequenceSession final : public Session {
 public:
  SequenceSession(const SequenceRules& rules, const PortMap& ports, std::shared_ptr<RunnerSeat> seat, Clock& clock)
      : rules_(rules), ports_(ports), seat_(std::move(seat)), clock_(clock), packing_(rules.packing()) {}

  // A large batch in several runs of whole sequences (PlanReport::micro_batch).
  Status Run(std::span<BatchItem> batch, BatchTimes& times) override {
    const MutexLock lock(seat_->mutex());
    auto& planned = static_cast<PlanRunner&>(seat_->runner());
    plan_ = &planned.plan();
    runner_ = &planned.runner();
    StartOutputs(batch);
    times = {};
    const BatchTurn turn = seat_->BeginBatch(CountAll(batch));
    for (Place place; place.item < batch.size();) {
      const Instant start = clock_.Now();
      TakeParts(batch, place);
      GatherIds();
      const Instant gathered = clock_.Now();
      const BatchSize size(packing_.rows(), packing_.tokens());
      const Sequences sequences = packing_.sequences();
      SWIZZLE_RETURN_IF_ERROR(runner_->Run(size, &sequences));
      const Instant computed = clock_.Now();
      Scatter(size);
      times.input += gathered - start;
      times.compute += computed - gathered;
      times.output += clock_.Now() - computed;
    }
    return absl::OkStatus();
  }
  bool RunsAtOnce(uint64_t) const override { return seat_->RunsAtOnce(); }

 private:
  // A sequence of a batch.
  struct Place {
    size_t item = 0;
    int64_t row = 0;
  };
  // Neighbouring sequences of one item, and the tokens that they are of the run.
  struct Part {
    const BatchItem* item;
    int64_t first_row;
    int64_t rows;
    int64_t first_token;
    int64_t last_token;
  };

  // Tokens, masked ones included.
  static int64_t CountAll(std::span<const BatchItem> batch) {
    int64_t tokens = 0;
    for (const BatchItem& item : batch) tokens += Rows(item) * Length(item);
    return tokens;
  }
  static int64_t Rows(const BatchItem& item) { return item.inputs[0].shape[0]; }
  static int64_t Length(const BatchItem& item) { return item.inputs[0].shape[1]; }

  std::optional<TensorView> MaskOf(const BatchItem& item, int64_t first, int64_t rows) const {
    return RowsOf(rules_.MaskOf(item.inputs), first, rows);
  }

  // Packs sequences from `place` on, at least one and else as many as a run should take, and moves `place` behind them.
  void TakeParts(std::span<const BatchItem> batch, Place& place) {
    packing_.Clear();
    parts_.clear();
    int64_t left = plan_->report().micro_batch;
    for (; place.item < batch.size(); ++place.item, place.row = 0) {
      const BatchItem& item = batch[place.item];
      int64_t end = place.row;
      for (; end < Rows(item); ++end) {
        const int64_t tokens = CountTokens(rules_.packing(), 1, Length(item), MaskOf(item, end, 1),
                                           RowsOf(rules_.EndsOf(item.inputs), end, 1));
        const bool first = parts_.empty() && end == place.row;
        if (tokens > left && !first) break;
        left -= tokens;
      }
      const int64_t rows = end - place.row;
      if (rows > 0) {
        const int64_t first_token = packing_.tokens();
        packing_.Add(rows, Length(item), MaskOf(item, place.row, rows),
                     RowsOf(rules_.CountedOf(item.inputs), place.row, rows),
                     RowsOf(rules_.EndsOf(item.inputs), place.row, rows));
        parts_.push_back({&item, place.row, rows, first_token, packing_.tokens()});
      }
      place.row = end;
      if (end < Rows(item)) return;
    }
  }

  void GatherIds() {
    const BatchSize size(packing_.rows(), packing_.tokens());
    for (size_t i = 0; i < ports_.inputs.size(); ++i) {
      if (plan_->IdLimit(ports_.inputs[i]) == 0) continue;
      const std::span<int32_t> ids = runner_->Ids(ports_.inputs[i], size);
      for (const Part& part : parts_) {
        const TensorView input = RowsOf(part.item->inputs[i], part.first_row, part.rows);
        for (int64_t token = part.first_token; token < part.last_token; ++token) {
          ids[token] = static_cast<int32_t>(WholeAt(input, packing_.sources()[token]));
        }
      }
    }
  }

  // Empty outputs, and their shapes.
  void StartOutputs(std::span<const BatchItem> batch) const {
    for (const BatchItem& item : batch) {
      item.outputs->assign(ports_.outputs.size(), std::string());
      item.output_shapes->clear();
      for (const int output : ports_.outputs) {
        const NetworkPort& port = plan_->network().outputs[output];
        item.output_shapes->push_back(OutputShape(port, plan_->network().values[port.value].per_token, item));
      }
    }
  }

  // Appends the run's results to the requests' outputs.
  void Scatter(BatchSize size) {
    for (size_t i = 0; i < ports_.outputs.size(); ++i) {
      const NetworkPort& port = plan_->network().outputs[ports_.outputs[i]];
      const bool per_token = plan_->network().values[port.value].per_token;
      const auto from = std::as_bytes(runner_->Output(ports_.outputs[i], size));
      const char* row = reinterpret_cast<const char*>(from.data());
      const size_t line_bytes = from.size() / static_cast<size_t>(per_token ? size.tokens : size.rows);
      for (const Part& part : parts_) {
        std::string& output = (*part.item->outputs)[i];
        if (output.empty()) output.reserve(Rows(*part.item) * (per_token ? Length(*part.item) : 1) * line_bytes);
        if (per_token) {
          SpreadTokens(part, from, line_bytes, output);
        } else {
          output.append(row, part.rows * line_bytes);
          row += part.rows * line_bytes;
        }
      }
    }
  }

  // [rows, length and what the port has besides]
  Shape OutputShape(const NetworkPort& port, bool per_token, const BatchItem& item) const {
    const bool fixed = plan_->network().batch_size > 0;
    Shape shape(port.dims.begin() + (fixed ? 1 : 0), port.dims.end());
    if (per_token) shape[0] = Length(item);
    shape.insert(shape.begin(), Rows(item));
    return shape;
  }

  // Tokens that were not computed are zeros. Where all were, their lines lie as the output wants them.
  void SpreadTokens(const Part& part, std::span<const std::byte> from, size_t line_bytes, std::string& to) const {
    const int64_t tokens = part.last_token - part.first_token, places = part.rows * Length(*part.item);
    if (tokens == places) {
      to.append(reinterpret_cast<const char*>(from.data()) + part.first_token * line_bytes, tokens * line_bytes);
      return;
    }
    const size_t begin = to.size();
    to.append(places * line_bytes, '\0');
    packing_.Spread(part.first_token, part.last_token, from.data(), line_bytes,
                    reinterpret_cast<std::byte*>(to.data() + begin));
  }

  const SequenceRules& rules_;
  const PortMap& ports_;
  const std::shared_ptr<RunnerSeat> seat_;
  const Plan* plan_ = nullptr;  // of the batch that runs, as the runner
  Runner* runner_ = nullptr;
  Clock& clock_;
  TokenPacking packing_;
  std::vector<Part> parts_;  // of the run, in the order of their tokens
};

}  // namespace

SequenceRules::SequenceRules(const ModelSpec& spec, const PortMap& ports, const Plan& plan)
    : spec_(spec),
      max_batch_(plan.max_batch()),
      max_tokens_(plan.max_tokens()),
      position_limit_(plan.PositionLimit()),
      packing_(PackingRulesOf(plan.network(), spec.compute_masked)) {
  for (const int input : ports.inputs) id_limits_.push_back(plan.IdLimit(input));
  const auto place_of = [&](int port) {
    const auto place = std::ranges::find(ports.inputs, port);
    return place == ports.inputs.end() ? -1 : static_cast<int>(place - ports.inputs.begin());
  };
  mask_ = place_of(plan.network().sequences->mask);
  counted_ = place_of(plan.network().sequences->counted);
  ends_ = place_of(plan.network().sequences->end.input);
}

std::optional<TensorView> SequenceRules::MaskOf(std::span<const TensorView> inputs) const {
  return mask_ < 0 ? std::nullopt : std::optional(inputs[mask_]);
}

std::optional<TensorView> SequenceRules::CountedOf(std::span<const TensorView> inputs) const {
  return counted_ < 0 ? std::nullopt : std::optional(inputs[counted_]);
}

std::optional<TensorView> SequenceRules::EndsOf(std::span<const TensorView> inputs) const {
  return ends_ < 0 ? std::nullopt : std::optional(inputs[ends_]);
}

Status SequenceRules::CheckShapes(std::span<const TensorView> inputs) const {
  const Shape& shape = inputs[0].shape;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].shape == shape) continue;
    return InvalidArgument("input '", spec_.inputs[i].name, "' of model '", spec_.name, "' has shape ",
                           ShapeText(inputs[i].shape), ", and input '", spec_.inputs[0].name, "' has ",
                           ShapeText(shape), "; they must be the same");
  }
  if (shape[0] < 1 || shape[0] > max_batch_ || shape[1] < 1) {
    return InvalidArgument("input '", spec_.inputs[0].name, "' of model '", spec_.name, "' has shape ",
                           ShapeText(shape), "; it must have 1 to ", max_batch_, " sequences of at least 1 token");
  }
  const int64_t longest = position_limit_;
  if (longest == 0 && shape[1] > max_tokens_) {  // masked or not: outputs have a place for each
    return InvalidArgument("input '", spec_.inputs[0].name, "' of model '", spec_.name, "' has sequences of ", shape[1],
                           " tokens; max_batch_tokens is ", max_tokens_);
  }
  if (longest == 0 || shape[1] <= longest) return {};
  return InvalidArgument("input '", spec_.inputs[0].name, "' of model '", spec_.name, "' has sequences of ", shape[1],
                         " tokens; the model has positions for ", longest);
}

Status SequenceRules::CheckValues(std::span<const TensorView> inputs) const {
  const int64_t elements = inputs[0].shape[0] * inputs[0].shape[1];
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_mask = static_cast<int>(i) == mask_;
    const int64_t limit = is_mask ? 2 : id_limits_[i];
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

// Of a request whose rows may run in different batches.
StatusOr<std::vector<int64_t>> SequenceRules::CountRows(std::span<const TensorView> inputs) const {
  const std::optional<TensorView> mask = MaskOf(inputs), ends = EndsOf(inputs);
  const int64_t length = inputs[0].shape[1];
  std::vector<int64_t> tokens(static_cast<size_t>(inputs[0].shape[0]));
  for (int64_t row = 0; row < std::ssize(tokens); ++row) {
    const int64_t its = tokens[static_cast<size_t>(row)] =
        CountTokens(packing_, 1, length, RowsOf(mask, row, 1), RowsOf(ends, row, 1));
    if (its <= max_tokens_) continue;
    return InvalidArgument("sequence ", row, " of the request to model '", spec_.name, "' has ", its,
                           " tokens; max_batch_tokens is ", max_tokens_, ": send shorter ones, or configure more");
  }
  return tokens;
}

StatusOr<std::vector<int64_t>> SequenceRules::Check(std::span<const TensorView> inputs) const {
  SWIZZLE_RETURN_IF_ERROR(CheckShapes(inputs));
  SWIZZLE_RETURN_IF_ERROR(CheckValues(inputs));
  if (spec_.max_batch_size > 0) return CountRows(inputs);
  const Shape& shape = inputs[0].shape;
  const int64_t tokens = CountTokens(packing_, shape[0], shape[1], MaskOf(inputs), EndsOf(inputs));
  if (tokens <= max_tokens_) return std::vector<int64_t>{tokens};
  return InvalidArgument("the request to model '", spec_.name, "' has ", tokens, " tokens; max_batch_tokens is ",
                         max_tokens_, ": send fewer sequences at a time, or configure more");
}

void SequenceRules::Describe(std::map<std::string, std::string>& properties) const {
  for (size_t i = 0; i < id_limits_.size(); ++i) {
    const std::string& name = spec_.inputs[i].name;
    if (static_cast<int>(i) == mask_) {
      properties["swizzle_mask." + name] = "1";
    } else if (id_limits_[i] > 0) {
      properties["swizzle_ids." + name] = std::to_string(id_limits_[i]);
    }
  }
  const int64_t longest = position_limit_ > 0 ? std::min(position_limit_, max_tokens_) : max_tokens_;
  properties["swizzle_max_length"] = std::to_string(longest);
}

std::unique_ptr<Session> NewSequenceSession(const SequenceRules& rules, const PortMap& ports,
                                            std::shared_ptr<RunnerSeat> seat, Clock& clock) {
  return std::make_unique<SequenceSession>(rules, ports, std::move(seat), clock);
}

}  // namespace swizzle
