#include "model_loader/sequences/probes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model_loader/sequences/known.h"
#include "model_loader/sequences/scores.h"

namespace swizzle::sequences {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 21;  // of a query, once for each token

struct Probe {
  std::vector<float> numbers;
  View view;  // its channels are places in `numbers`
};

std::optional<Probe> ProbeOf(const Form& form) {
  if (const auto* vectors = std::get_if<ConstantVectors>(&form)) return Probe{*vectors->numbers, vectors->view};
  const auto* by_channel = std::get_if<PositionNumbers>(&form);
  if (by_channel == nullptr || by_channel->view.Has(AxisKind::kLength)) return std::nullopt;
  Probe probe{{}, by_channel->view};
  for (const PositionColumn& column : *by_channel->columns) {
    if (column.kind != PositionColumn::Kind::kLinear || column.slope != 0.0f) return std::nullopt;
    probe.numbers.push_back(static_cast<float>(column.start * column.factor));
  }
  return probe;
}

// The product with a matrix [channels, rows], or [rows, channels] where that is transposed.
StatusOr<Form> ThroughLinear(Context& context, const Probe& probe, double alpha, bool transposed) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto weight, FloatTensor(context, 1, "weight"));
  const OrderedChannels ordered = InOrder(probe.view);
  const auto depth = static_cast<int64_t>(ordered.channels.size());
  const int64_t inner = weight.first[transposed ? 1 : 0], rows = weight.first[transposed ? 0 : 1];
  const bool is_vector = rows > 0 && depth > 0 && !probe.view.dims.empty() && IsOfChannels(probe.view.dims.back()) &&
                         SizeOf(probe.view.dims.back()) == Whole{depth};
  if (!is_vector || depth != inner || !context.TakeNumbers(depth + rows)) {
    return context.Refuse("its weight ", ShapeText(weight.first), " does not fit ", Text(probe.view.shape()));
  }
  auto columns = std::make_shared<PositionColumns>();
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0.0;
    for (int64_t i = 0; i < depth; ++i) {
      const int64_t at = transposed ? row * depth + i : i * rows + row;
      sum += double{probe.numbers[static_cast<size_t>(ordered.channels[static_cast<size_t>(i)])]} *
             weight.second[static_cast<size_t>(at)];
    }
    columns->push_back({.start = static_cast<float>(sum * alpha)});
  }
  View view = ordered.view;
  view.dims.back() = ChannelAxis(rows);
  return PositionNumbers{std::move(columns), std::move(view)};
}

// The product with keys [.., channels, length]: each token has the probe for its query, and one of them is read.
StatusOr<Form> ScoresOfProbe(Context& context, Probe probe, Tokens keys, double alpha, bool transposed) {
  const size_t rank = keys.view.rank();
  if (transposed && rank >= 2) std::swap(keys.view.dims[rank - 1], keys.view.dims[rank - 2]);
  const Axes batch = context.BatchAxis();
  for (Axes& dim : probe.view.dims) {
    for (Axis& axis : dim) {
      const bool is_batch = axis.kind == AxisKind::kRepeat && !batch.empty() && axis.size == batch[0].size;
      if (is_batch) axis = batch[0];
    }
  }
  const auto count = static_cast<int64_t>(probe.numbers.size()), length = context.FixedLength();
  if (count < 1 || count > kMostNumbers / length || !context.TakeNumbers(count * length)) {
    return context.Refuse("its query has too many numbers");
  }
  std::vector<float> rows;
  rows.reserve(static_cast<size_t>(count * length));
  for (int64_t token = 0; token < length; ++token) {
    rows.insert(rows.end(), probe.numbers.begin(), probe.numbers.end());
  }
  context.out().Spend(rows.size());
  Tokens queries;
  queries.value = context.out().Embedding(kNoValue, Tensor::Floats({length, count}, rows), 0);
  queries.view = std::move(probe.view);
  return ScoresOf(context, queries, keys, alpha, /*of_one_query=*/true);
}

}  // namespace

bool MeetsProbe(Context& context) {
  if (context.FixedLength() == 0 || !context.HasInput(0) || !context.HasInput(1)) return false;
  if (!ProbeOf(context.Input(0))) return false;
  const auto* weight = context.InputAs<Known>(1);
  return context.InputAs<Tokens>(1) != nullptr || (weight != nullptr && weight->shape.size() == 2);
}

StatusOr<Form> MultiplyProbe(Context& context, double alpha, bool transposed) {
  Probe probe = *ProbeOf(context.Input(0));
  if (context.InputAs<Known>(1) != nullptr) return ThroughLinear(context, probe, alpha, transposed);
  return ScoresOfProbe(context, std::move(probe), *context.InputAs<Tokens>(1), alpha, transposed);
}

}  // namespace swizzle::sequences
