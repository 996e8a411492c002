#include "model_loader/sequences/view.h"

#include <algorithm>
#include <ranges>

namespace swizzle {
namespace {

// Whether `inner` goes on where one step of `outer` ends.
bool AreOne(const Axis& outer, const Axis& inner) {
  if (outer.kind != inner.kind) return false;
  if (outer.kind == AxisKind::kRepeat) return true;
  const bool has_strides = outer.kind == AxisKind::kChannels || outer.kind == AxisKind::kPlaces;
  return has_strides && outer.stride == inner.stride * inner.size.factor;
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

bool AlikeInKind(const Axes& a, const Axes& b) {
  return std::ranges::equal(a, b, [](const Axis& x, const Axis& y) { return x.kind == y.kind && x.size == y.size; });
}

// Takes the outer `count` of an axis, leaving the rest; false where it does not divide so.
bool TakeOuter(Axis& axis, const Whole& count, Axis& taken) {
  const bool is_of_positions = axis.kind == AxisKind::kLength || axis.kind == AxisKind::kPlaces;
  if (axis.kind == AxisKind::kBatch || axis.kind == AxisKind::kKeys) return false;
  if (is_of_positions && !(axis.size.IsNumber() && count.IsNumber())) return false;
  const auto inner = Quotient(axis.size, count);
  if (!inner || Product(*inner, count) != axis.size) return false;
  if (axis.kind == AxisKind::kLength) axis = {AxisKind::kPlaces, axis.size, 1};
  taken = {axis.kind, count, axis.stride * inner->factor};
  axis.size = *inner;
  return true;
}

// What all positions of a view have become one axis of again is their length.
void JoinPositions(View& view) {
  int64_t all = 1;
  for (const Axis& axis : view.AllAxes()) {
    if (axis.kind == AxisKind::kPlaces) all *= axis.size.factor;
  }
  for (Axes& dim : view.dims) {
    for (Axis& axis : dim) {
      const bool is_length = axis.kind == AxisKind::kPlaces && axis.stride == 1 && axis.size == Whole{all};
      if (is_length) axis = {AxisKind::kLength, axis.size};
    }
  }
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
  JoinPositions(reshaped);
  return reshaped;
}

std::optional<View> WithPositionsAsOne(const View& view, size_t first) {
  const Wholes shape = view.shape();
  Wholes joined(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(std::min(first, shape.size())));
  joined.emplace_back();
  for (size_t next = first; next < shape.size(); ++next) {
    const auto size = Product(joined[first], shape[next]);
    if (!size) return std::nullopt;
    joined[first] = *size;
    Wholes all = joined;
    all.insert(all.end(), shape.begin() + static_cast<std::ptrdiff_t>(next) + 1, shape.end());
    auto view_of_all = Reshaped(view, all);
    if (view_of_all && view_of_all->Is(first, AxisKind::kLength)) return view_of_all;
  }
  return std::nullopt;
}

View WithPlacesInOrder(const View& view) {
  View ordered = view;
  int64_t stride = 1;
  for (Axes& dim : ordered.dims | std::views::reverse) {
    for (Axis& axis : dim | std::views::reverse) {
      if (axis.kind != AxisKind::kLength && axis.kind != AxisKind::kPlaces) continue;
      axis = {AxisKind::kPlaces, axis.size, stride};
      stride *= axis.size.factor;
    }
  }
  for (Axes& dim : ordered.dims) {
    Axes joined;
    for (const Axis& axis : dim) Append(joined, axis);
    dim = std::move(joined);
  }
  JoinPositions(ordered);
  return ordered;
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

OrderedChannels InOrder(const View& view) {
  OrderedChannels ordered{ChannelsOf(view.AllAxes(), view.first_channel), view};
  ordered.view.first_channel = 0;
  int64_t stride = 1;
  for (size_t i = ordered.view.rank(); i-- > 0;) {
    Axes& dim = ordered.view.dims[i];
    const int64_t inner = stride;
    for (size_t k = dim.size(); k-- > 0;) {
      if (dim[k].kind != AxisKind::kChannels) continue;
      dim[k].stride = stride;
      stride *= dim[k].size.factor;
    }
    if (dim.size() > 1 && IsOfChannels(dim)) dim = {{AxisKind::kChannels, SizeOf(dim), inner}};
  }
  return ordered;
}

std::optional<PairedChannels> PairInOrder(const View& a, const View& b) {
  const auto shape = Broadcast(a.shape(), b.shape());
  if (!shape) return std::nullopt;
  const View left = *Expanded(a, *shape), right = *Expanded(b, *shape);
  constexpr size_t kMostPairs = size_t{1} << 22;
  PairedChannels paired{{{a.first_channel, b.first_channel}}, {}};
  for (size_t i = 0; i < shape->size(); ++i) {
    const Axes &of_a = left.dims[i], &of_b = right.dims[i];
    std::vector<int64_t> from_a = ChannelsOf(of_a, 0), from_b = ChannelsOf(of_b, 0);
    if (IsRepeated(of_b)) {
      from_b.assign(from_a.size(), 0);
    } else if (IsRepeated(of_a)) {
      from_a.assign(from_b.size(), 0);
    } else if (!(IsOfChannels(of_a) && IsOfChannels(of_b)) && !AlikeInKind(of_a, of_b)) {
      return std::nullopt;
    }
    if (from_a.size() > kMostPairs / paired.channels.size()) return std::nullopt;
    paired.view.dims.push_back(IsRepeated(of_a) ? of_b : of_a);
    std::vector<std::pair<int64_t, int64_t>> next;
    for (const auto& [first, second] : paired.channels) {
      for (size_t k = 0; k < from_a.size(); ++k) next.emplace_back(first + from_a[k], second + from_b[k]);
    }
    paired.channels = std::move(next);
  }
  paired.view = InOrder(paired.view).view;
  return paired;
}

std::optional<JoinedChannels> JoinInOrder(const std::vector<View>& views, size_t axis) {
  JoinedChannels joined{{}, views[0]};
  std::vector<int64_t> counts;  // channels along the axis, and in the dimensions behind it
  int64_t outer = 1, along = 0;
  for (const View& view : views) {
    if (view.rank() != joined.view.rank() || !IsOfChannels(view.dims[axis])) return std::nullopt;
    int64_t inner = 1, before = 1;
    for (size_t i = 0; i < view.rank(); ++i) {
      if (i != axis && !AlikeInKind(view.dims[i], views[0].dims[i])) return std::nullopt;
      (i < axis ? before : inner) *= static_cast<int64_t>(ChannelsOf(view.dims[i], 0).size());
    }
    counts.push_back(inner);
    outer = before;
    along += SizeOf(view.dims[axis]).factor;
  }
  for (int64_t i = 0; i < outer; ++i) {
    for (size_t k = 0; k < views.size(); ++k) {
      for (int64_t j = 0; j < counts[k]; ++j) joined.sources.emplace_back(k, i * counts[k] + j);
    }
  }
  joined.view.dims[axis] = ChannelAxis(along);
  joined.view = InOrder(joined.view).view;
  return joined;
}

}  // namespace swizzle
