// How the elements of a matrix of tokens appear in the shape that the ONNX graph gives them.
//
// A view's dimensions are products of axes: the batch, the positions of the sequences, parts of the channels. Reshape,
// Transpose and their kin only sort the axes anew, so [batch, length, channels], [batch * length, channels] and [batch
// * heads, length, channels of a head] are views of one matrix, whichever way the exporter went from one to the other.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_VIEW_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_VIEW_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model_loader/sequences/whole.h"

namespace swizzle {

enum class AxisKind : uint8_t {
  kBatch,
  kLength,
  kChannels,
  kKeys,    // the positions of the tokens attended to, in attention scores
  kPlaces,  // some of the positions of sequences of a fixed length, which are counted from 0
  kRepeat,  // the same all along
};

struct Axis {
  AxisKind kind = AxisKind::kRepeat;
  Whole size;
  int64_t stride = 0;  // kChannels, kPlaces: from one to the next
  bool operator==(const Axis&) const = default;
};

// Outermost first; none has size 1, save axes of a fixed length.
using Axes = std::vector<Axis>;

struct View {
  std::vector<Axes> dims;
  int64_t first_channel = 0;
  bool operator==(const View&) const = default;

  size_t rank() const { return dims.size(); }
  Wholes shape() const;
  Axes AllAxes() const;
  bool Has(AxisKind kind) const;
  // Whether dimension `i` is one whole axis of this kind.
  bool Is(size_t i, AxisKind kind) const { return dims[i].size() == 1 && dims[i][0].kind == kind; }
};

Whole SizeOf(const Axes& axes);

// An axis as a dimension: none of size 1.
Axes AsDimension(const Axis& axis);

// The channels of an activation as a dimension.
Axes ChannelAxis(int64_t channels);

bool IsOfChannels(const Axes& dimension);

// Whether it is the same all along.
bool IsRepeated(const Axes& dimension);

// Whether a dimension of what is added to scores goes with theirs: along the same axes, or the same all along.
bool GoesAlong(const Axes& added, const Axes& scores);

// The axes of all dimensions but the last two.
Axes LeadingAxes(const View& view);

// One number, the same all along.
View RepeatedView(const Wholes& shape);

// The same elements in another shape; nothing where the axes do not divide so. Positions of a fixed length divide into
// kPlaces; all of them in their order are kLength again.
std::optional<View> Reshaped(const View& view, const Wholes& shape);

// REQUIRES: `perm` is a permutation of the dimensions.
View Transposed(const View& view, const std::vector<int64_t>& perm);

// With dimension `first` and those behind it as one that is all positions in their order, as many as that takes;
// nothing where they are no such.
std::optional<View> WithPositionsAsOne(const View& view, size_t first);

// The view of a matrix whose positions were put into the order of the dimensions.
View WithPlacesInOrder(const View& view);

// Broadcast to `shape` as ONNX's Expand does; nothing if it does not broadcast.
std::optional<View> Expanded(const View& view, const Wholes& shape);

// The view that both broadcast to: axes go with the same axes, with repetition and with nothing.
std::optional<View> Broadcast(const View& a, const View& b);

// The channels that these axes go through, in their order.
std::vector<int64_t> ChannelsOf(const Axes& axes, int64_t first_channel);

// A view's channels in the order of its dimensions, and the view of these.
struct OrderedChannels {
  std::vector<int64_t> channels;
  View view;
};
OrderedChannels InOrder(const View& view);

// The channels of two views that broadcast to each other, pair by pair in the order of the result's dimensions. What is
// the same along a dimension goes with anything there; channels go with as many channels, however they are split.
struct PairedChannels {
  std::vector<std::pair<int64_t, int64_t>> channels;
  View view;
};
std::optional<PairedChannels> PairInOrder(const View& a, const View& b);

// Where the channels of views that are joined along a dimension of channels come from, in the order of the result's
// dimensions: which view, and the place among its channels in order. Nothing where the views differ elsewhere.
struct JoinedChannels {
  std::vector<std::pair<size_t, int64_t>> sources;
  View view;
};
std::optional<JoinedChannels> JoinInOrder(const std::vector<View>& views, size_t axis);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_VIEW_H_
