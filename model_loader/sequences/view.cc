#include "model_loader/sequences/view.h"

#include <algorithm>

namespace swizzle {
namespace {

// Whether `inner` goes on where one step of `outer` ends.
bool AreOne(const Axis& outer, const Axis& inner) {
  if (outer.kind != inner.kind) return false;
  if (outer.kind == AxisKind::kRepeat) return true;
  return outer.kind == AxisKind::kChannels && outer.stride == inner.stride * inner.size.factor;
}

void Append(Axes& dim, const Axis& axis) {
  if (!dim.empty() && AreOne(dim.back(), axis)) {
    if (const auto joined = Product(dim.back().size, axis.size)) {
      dim.back().size = *joined;
      dim.back().stride = axis.stride;
      return;
    }
  }
  dim.push_back(axis);
}

// Takes the outer `count` of an axis, leaving the rest; false where it does not divide so.
bool TakeOuter(Axis& axis, const Whole& count, Axis& taken) {
  if (axis.kind != AxisKind::kChannels && axis.kind != AxisKind::kRepeat) return false;
  const auto inner = Quotient(axis.size, count);
  if (!inner || Product(*inner, count) != axis.size) return false;
  taken = {axis.kind, count, axis.stride * inner->factor};
  axis.size = *inner;
  return true;
}

}  // namespace

Whole SizeOf(const Axes& axes) {
  Whole size;
  for (const Axis& axis : axes) size = Product(size, axis.size).value_or(Whole{0});
  return size;
}

Axes AsDimension(const Axis& axis) { return axis.size.IsOne() ? Axes() : Axes{axis}; }

Axes ChannelAxis(int64_t channels) { return AsDimension({AxisKind::kChannels, Whole{channels}, 1}); }

bool IsOfChannels(const Axes& dimension) {
  return std::all_of(dimension.begin(), dimension.end(),
                     [](const Axis& axis) { return axis.kind == AxisKind::kChannels; });
}

View RepeatedView(const Wholes& shape) {
  View view;
  for (const Whole& size : shape) view.dims.push_back(AsDimension({AxisKind::kRepeat, size}));
  return view;
}

Wholes View::shape() const {
  Wholes sizes;
  for (const Axes& dim : dims) sizes.push_back(SizeOf(dim));
  return sizes;
}

Axes View::AllAxes() const {
  Axes all;
  for (const Axes& dim : dims) all.insert(all.end(), dim.begin(), dim.end());
  return all;
}

bool View::Has(AxisKind kind) const {
  const Axes all = AllAxes();
  return std::any_of(all.begin(), all.end(), [&](const Axis& axis) { return axis.kind == kind; });
}

std::optional<View> Reshaped(const View& view, const Wholes& shape) {
  Axes left = view.AllAxes();
  std::reverse(left.begin(), left.end());
  View reshaped;
  reshaped.first_channel = view.first_channel;
  for (const Whole& size : shape) {
    Axes& dim = reshaped.dims.emplace_back();
    for (Whole missing = size; !missing.IsOne();) {
      if (left.empty() || missing.factor < 1) return std::nullopt;
      Axis taken = left.back();
      const auto after = Quotient(missing, taken.size);
      if (after && Product(*after, taken.size) == missing) {
        left.pop_back();
        missing = *after;
      } else if (TakeOuter(left.back(), missing, taken)) {
        missing = Whole{1};
      } else {
        return std::nullopt;
      }
      Append(dim, taken);
    }
  }
  if (!left.empty()) return std::nullopt;
  return reshaped;
}

View Transposed(const View& view, const std::vector<int64_t>& perm) {
  View transposed;
  transposed.first_channel = view.first_channel;
  for (int64_t from : perm) transposed.dims.push_back(view.dims[from]);
  return transposed;
}

std::optional<View> Expanded(const View& view, const Wholes& shape) {
  const Wholes from = view.shape();
  const auto to = Broadcast(from, shape);
  if (!to) return std::nullopt;
  View expanded = view;
  expanded.dims.insert(expanded.dims.begin(), to->size() - from.size(), Axes());
  for (size_t i = 0; i < to->size(); ++i) {
    if (SizeOf(expanded.dims[i]) != (*to)[i]) expanded.dims[i] = {{AxisKind::kRepeat, (*to)[i]}};
  }
  return expanded;
}

bool IsRepeated(const Axes& dimension) {
  return std::ranges::all_of(dimension, [](const Axis& axis) { return axis.kind == AxisKind::kRepeat; });
}

bool GoesAlong(const Axes& added, const Axes& scores) {
  const auto fits = [](const Axis& x, const Axis& y) {
    return x.size == y.size && (x.kind == AxisKind::kRepeat || x.kind == y.kind);
  };
  return IsRepeated(added) || std::ranges::equal(added, scores, fits);
}

Axes LeadingAxes(const View& view) {
  Axes axes;
  for (size_t i = 0; i + 2 < view.rank(); ++i) axes.insert(axes.end(), view.dims[i].begin(), view.dims[i].end());
  return axes;
}

std::optional<View> Broadcast(const View& a, const View& b) {
  const auto shape = Broadcast(a.shape(), b.shape());
  if (!shape) return std::nullopt;
  View result = *Expanded(a, *shape);
  const View other = *Expanded(b, *shape);
  for (size_t i = 0; i < result.rank(); ++i) {
    if (result.dims[i] == other.dims[i] || IsRepeated(other.dims[i])) continue;
    if (!IsRepeated(result.dims[i])) return std::nullopt;
    result.dims[i] = other.dims[i];
  }
  return result;
}

std::vector<int64_t> ChannelsOf(const Axes& axes, int64_t first_channel) {
  std::vector<int64_t> channels = {first_channel};
  for (const Axis& axis : axes) {
    if (axis.kind != AxisKind::kChannels) continue;
    std::vector<int64_t> next;
    next.reserve(channels.size() * static_cast<size_t>(axis.size.factor));
    for (int64_t channel : channels) {
      for (int64_t i = 0; i < axis.size.factor; ++i) next.push_back(channel + i * axis.stride);
    }
    channels = std::move(next);
  }
  return channels;
}

}  // namespace swizzle
