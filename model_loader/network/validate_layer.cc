#include "model_loader/network/validate_layer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/operator/pair_biases.h"
#include "kernels/operator/place_vectors.h"
#include "model_loader/semantics/window_axis.h"

namespace swizzle {
namespace {

// Whether attributes are in range, as far as no value says more: one overload for each type.
Status CheckRange(const std::monostate&) { return {}; }

Status CheckRange(const Window& window) {
  if (VerticalAxis(window, 0).InRange() && HorizontalAxis(window, 0).InRange()) return {};
  return InvalidArgument("its window has a kernel, stride or dilation below 1, a negative pad, or one above ",
                         kMaxWindowExtent);
}

Status CheckRange(const Function& function) {
  if (static_cast<int>(function.kind) >= kFunctionKindCount) {
    return InvalidArgument("its function ", static_cast<int>(function.kind), " is not known");
  }
  if (std::isfinite(function.alpha) && std::isfinite(function.beta)) return {};
  return InvalidArgument("its function's alpha or beta is not finite");
}

Status CheckRange(const Lookup& lookup) {
  if (lookup.offset >= 0 && lookup.offset < kMaxExtent) return {};
  return InvalidArgument("its offset ", lookup.offset, " is negative or too large");
}

Status CheckRange(const Attention& attention) {
  if (attention.packed) return InvalidArgument("its operands are one, as only plans make them");
  if (attention.length < 0 || attention.reach < 0 || attention.reach > kMostPairReach) {
    return InvalidArgument("its length ", attention.length, " or its reach ", attention.reach,
                           " is negative or too large");
  }
  if (attention.group_size < 1) return InvalidArgument("its groups of heads are of ", attention.group_size);
  if (attention.windows < 1 || (attention.windows > 1 && attention.length == 0)) {
    return InvalidArgument("it has ", attention.windows, " windows of ", attention.length, " tokens");
  }
  return std::isfinite(attention.scale) ? Status() : InvalidArgument("its scale is not finite");
}

Status CheckRange(const Normalisation& normalisation) {
  if (normalisation.groups < 1) return InvalidArgument("it has ", normalisation.groups, " groups");
  if (normalisation.epsilon >= 0.0f && std::isfinite(normalisation.epsilon)) return {};
  return InvalidArgument("its epsilon ", normalisation.epsilon, " is negative or not finite");
}

Status CheckRange(const TokenChoice&) { return {}; }

Status CheckRange(const ConcatParts& parts) {
  if (parts.count < 1 || parts.count > kMaxParts) {
    return InvalidArgument("it has ", parts.count, " parts instead of 1 to ", kMaxParts);
  }
  for (int i = 0; i < kMaxParts; ++i) {
    if ((parts.sizes[i] > 0) != (i < parts.count)) return InvalidArgument("its part ", i, " is of ", parts.sizes[i]);
  }
  return {};
}

Status CheckRange(const ChannelRange& range) {
  if (range.first >= 0 && range.first < kMaxExtent) return {};
  return InvalidArgument("its first channel ", range.first, " is negative or too large");
}

Status CheckRange(const Resampling& resampling) {
  constexpr float kMostScale = 1 << 24;
  if (static_cast<int>(resampling.coordinates) >= kCoordinatesCount ||
      static_cast<int>(resampling.nearest) >= kNearestCount) {
    return InvalidArgument("its coordinates or nearest mode are not known");
  }
  for (const float scale : {resampling.scale_h, resampling.scale_w}) {
    if (scale != 0.0f && !(scale >= 1 / kMostScale && scale <= kMostScale)) {  // also where it is not a number
      return InvalidArgument("its scale ", scale, " is not within 2^-24 and 2^24");
    }
  }
  return {};
}

Status CheckRange(const SpaceBlock& space) {
  if (space.block >= 1 && space.block <= kMaxWindowExtent) return {};
  return InvalidArgument("its blocks of ", space.block, " are not 1 to ", kMaxWindowExtent);
}

Status CheckRange(const Rotation& rotation) {
  const auto& [heads, size, pairs] = rotation;
  if (heads >= 1 && size >= 2 && pairs >= 1 && pairs <= size / 2) return {};
  return InvalidArgument("its ", pairs, " pairs are not within ", heads, " heads of ", size, " channels");
}

Status CheckEpilogue(const OpTraits& traits, const Epilogue& epilogue) {
  if (!(epilogue.low <= epilogue.high)) {  // also where one is not a number
    return InvalidArgument("it clamps to [", epilogue.low, ", ", epilogue.high, "], which is empty");
  }
  if (epilogue.residual && !traits.Has(OpTraits::kAddsResidual)) {
    return InvalidArgument(traits.name, " adds no residual");
  }
  if (epilogue.Clamps() && !traits.Has(OpTraits::kClamps)) return InvalidArgument(traits.name, " cannot clamp");
  if (epilogue.requantise) return InvalidArgument("its output's scale is the value's to say, not its epilogue's");
  return {};
}

Status ExtentError(const char* relation, const NetworkValue& in, const NetworkValue& out) {
  return InvalidArgument("its output ", ExtentText(out), " ", relation, " its input ", ExtentText(in));
}

// One layer among its values.
class ValueCheck {
 public:
  ValueCheck(const Network& network, const Layer& layer)
      : network_(network), layer_(layer), traits_(TraitsOf(layer.op)), out_(network.values[layer.output]) {}

  Status Run() const {
    SWIZZLE_RETURN_IF_ERROR(CheckBatches());
    SWIZZLE_RETURN_IF_ERROR(std::visit([&](const auto& attributes) { return Check(attributes); }, layer_.attributes));
    return IsOfSequences(layer_.op) ? CheckSequenceExtents() : CheckExtents();
  }

 private:
  const NetworkValue& Input(size_t i) const { return network_.values[layer_.inputs[i]]; }

  // Which of the layer's values are per token, and which hold ids.
  Status CheckBatches() const {
    const bool embeds = layer_.op == Op::kEmbedding, reduces = traits_.Has(OpTraits::kReducesTokens);
    const bool makes_tokens = traits_.Has(OpTraits::kMakesTokens);
    for (int input : layer_.inputs) {
      const NetworkValue& value = network_.values[input];
      if (value.ids != embeds) return InvalidArgument("only embeddings read ids, and nothing else");
      const bool per_token = reduces || (out_.per_token && !makes_tokens);
      if (value.per_token != per_token) {
        return InvalidArgument("it reads value ", input, ", which is ", per_token ? "not " : "", "per token");
      }
    }
    if (out_.ids) return InvalidArgument("it cannot make ids");
    if (reduces && out_.per_token) return InvalidArgument("it makes a value per token");
    if ((embeds || makes_tokens || IsAttention(layer_.op)) && !out_.per_token)
      return InvalidArgument("it makes no tokens");
    return {};
  }

  // Whether the values fit the attributes: one overload for each type.
  Status Check(const std::monostate&) const { return {}; }
  Status Check(const Function&) const { return {}; }
  Status Check(const Lookup&) const { return {}; }
  Status Check(const Normalisation& normalisation) const {
    if (out_.channels % normalisation.groups == 0 && (normalisation.groups == 1 || out_.per_token)) return {};
    return InvalidArgument("its ", normalisation.groups, " groups do not fit ", ExtentText(out_), " of each token");
  }
  Status Check(const Rotation& rotation) const {
    if (out_.per_token && int64_t{rotation.heads} * rotation.size <= out_.channels) return {};
    return InvalidArgument("its ", rotation.heads, " heads of ", rotation.size, " channels do not fit ",
                           ExtentText(out_), " of each token");
  }
  Status Check(const TokenChoice&) const { return {}; }
  Status Check(const Resampling&) const { return {}; }

  Status Check(const ConcatParts& parts) const {
    int64_t sum = 0;
    for (int i = 0; i < parts.count; ++i) {
      const NetworkValue& in = Input(i);
      const bool fits = parts.of_planes ? in.channels == out_.channels && in.height * in.width == parts.sizes[i]
                                        : SameExtent(in, {"", parts.sizes[i], out_.height, out_.width});
      if (!fits) return ExtentError("does not hold", in, out_);
      sum += parts.sizes[i];
    }
    if (sum == (parts.of_planes ? out_.height * out_.width : out_.channels)) return {};
    return InvalidArgument("its parts are ", sum, " together, its output is ", ExtentText(out_));
  }

  Status Check(const SpaceBlock& space) const {
    const NetworkValue& in = Input(0);
    const int64_t block = space.block;
    if (SameExtent(in, {"", out_.channels * block * block, in.height, in.width}) &&
        SameExtent(out_, {"", out_.channels, in.height * block, in.width * block})) {
      return {};
    }
    return ExtentError("does not follow from", in, out_);
  }

  Status Check(const ChannelRange& range) const {
    const NetworkValue& in = Input(0);
    if (!SameExtent({"", in.channels, out_.height, out_.width}, in)) return ExtentError("differs from", in, out_);
    if (out_.channels <= in.channels - range.first) return {};
    return InvalidArgument("its channels from ", range.first, " on are not all in ", ExtentText(in));
  }

  Status Check(const Window& window) const {
    const NetworkValue& in = Input(0);
    const WindowAxis vertical = VerticalAxis(window, in.height);
    const WindowAxis horizontal = HorizontalAxis(window, in.width);
    if (vertical.Output() != out_.height || horizontal.Output() != out_.width) {
      return InvalidArgument("its window over ", ExtentText(in), " gives a plane of ",
                             ShapeText({vertical.Output(), horizontal.Output()}), ", its output is ", ExtentText(out_));
    }
    if (traits_.Has(OpTraits::kPools) && !(vertical.AllTouch() && horizontal.AllTouch())) {
      return InvalidArgument("one of its windows lies in the padding alone, where a pool has no value");
    }
    return {};
  }

  Status Check(const Attention& attention) const {
    const int64_t heads = attention.heads, group_size = attention.group_size, key_heads = attention.key_heads();
    const int64_t q = Input(0).channels, k = Input(1).channels, v = Input(2).channels;
    const bool are_whole = heads >= 1 && heads % group_size == 0 && q % heads == 0 && out_.channels % heads == 0;
    if (!are_whole || k != q / heads * key_heads || v != out_.channels / heads * key_heads) {
      return InvalidArgument("its ", heads, " heads", group_size == 1 ? "" : Concat(" in groups of ", group_size),
                             " do not fit queries, keys, values and output of ", q, ", ", k, ", ", v, " and ",
                             out_.channels, " channels");
    }
    if (layer_.op == Op::kBiasedAttention) return CheckBiasedLayer(attention);
    if (layer_.op == Op::kDisentangledAttention && group_size != 1) {
      return InvalidArgument("its heads share keys in groups of ", group_size, ", and have vectors of places");
    }
    if (layer_.op == Op::kDisentangledAttention && attention.places < 1) {
      return InvalidArgument("it has ", attention.places, " places");
    }
    return traits_.weight == WeightRule::kPattern ? CheckPatternLayer(attention) : Status();
  }

  // Biases of pairs are of sequences of one length.
  Status CheckBiasedLayer(const Attention& attention) const {
    const int64_t length = network_.sequences->length;
    if (attention.length > kMostPairLength || (attention.length > 0 && attention.reach > 0)) {
      return InvalidArgument("its biases are of ", attention.length, " tokens and a reach of ", attention.reach);
    }
    const int64_t windows = attention.windows;
    const bool fits =
        windows == 1 ? attention.length == length : length % windows == 0 && attention.length == length / windows;
    if (attention.length == 0 || fits) return {};
    return InvalidArgument("its biases are of ", windows == 1 ? "" : Concat(windows, " windows of "), attention.length,
                           " tokens; sequences have ", length == 0 ? "any length" : Concat(length));
  }

  // A pattern goes by places, so that sequences have one length and no token is left out.
  Status CheckPatternLayer(const Attention& attention) const {
    if (!(attention.scale > 0.0f)) {
      return InvalidArgument("its scale ", attention.scale, " is not positive, as attention with a pattern takes");
    }
    const SequenceInputs& sequences = *network_.sequences;
    if (sequences.mask != -1) return InvalidArgument("it has a pattern of keys, which goes with no mask of tokens");
    if (sequences.length != attention.length) {
      return InvalidArgument("its pattern is of ", attention.length, " tokens; sequences have ",
                             sequences.length == 0 ? "any length" : Concat(sequences.length));
    }
    return {};
  }

  Status CheckSequenceExtents() const {
    const bool of_planes = layer_.op == Op::kLayerNorm && !out_.per_token;
    if (of_planes) return SameExtent(Input(0), out_) ? Status() : ExtentError("differs from", Input(0), out_);
    if (out_.height != 1 || out_.width != 1) return InvalidArgument("its output ", ExtentText(out_), " is no matrix");
    if (layer_.op == Op::kEmbedding || IsAttention(layer_.op)) return {};
    return SameExtent(Input(0), out_) ? Status() : ExtentError("differs from", Input(0), out_);
  }

  // Every row of the batch is a sequence, which ends with its plane.
  Status CheckPlaneTokens() const {
    const NetworkValue& in = Input(0);
    if (in.channels != out_.channels) return ExtentError("has other channels than", in, out_);
    const int64_t plane = in.height * in.width, length = network_.sequences->length;
    if (network_.sequences->mask != -1) return InvalidArgument("it makes tokens of planes, which go with no mask");
    if (plane <= length) return {};
    return InvalidArgument("its plane has ", plane, " positions; sequences have ",
                           length == 0 ? "any length" : Concat(length));
  }

  Status CheckExtents() const {
    const NetworkValue& in = Input(0);
    if (layer_.op == Op::kPlaneTokens) return CheckPlaneTokens();
    if (layer_.op == Op::kReshape) {
      if (in.elements() != out_.elements()) return ExtentError("has other elements than", in, out_);
    } else if (layer_.op == Op::kTranspose) {
      const bool transposed = out_.channels == in.height * in.width && in.channels == out_.height * out_.width;
      if (!transposed) return ExtentError("is not the transpose of", in, out_);
    } else if (layer_.op == Op::kConcat || layer_.op == Op::kSlice || layer_.op == Op::kDepthToSpace) {
      return {};  // the attributes say it all
    } else if (!IsWindowed(layer_.op) && layer_.op != Op::kResize && !SameExtent(in, out_)) {
      return ExtentError("differs from", in, out_);
    }
    if (traits_.Has(OpTraits::kKeepsChannels) && in.channels != out_.channels) {
      return ExtentError("has other channels than", in, out_);
    }
    if (layer_.inputs.size() < 2) return {};
    const NetworkValue factors{out_.name, out_.channels, 1, 1};
    if (SameExtent(Input(1), layer_.op == Op::kScale ? factors : out_)) return {};
    return ExtentError("differs from", Input(1), out_);
  }

  const Network& network_;
  const Layer& layer_;
  const OpTraits& traits_;
  const NetworkValue& out_;
};

Status CheckPattern(const Layer& layer, const Weight& weight) {
  if (weight.format() != Format::kPattern) return InvalidArgument("its weight is no pattern of keys");
  if (!weight.bias.empty()) return InvalidArgument("its pattern has a bias");
  const Attention& attention = layer.attention();
  if (weight.rows() == attention.length && weight.nonzeros() == attention.nonzeros) return {};
  return InvalidArgument("its pattern of ", weight.rows(), " tokens has ", weight.nonzeros(),
                         " nonzeros; the layer says ", attention.length, " and ", attention.nonzeros);
}

// Of sequences of as many tokens, whose places are whole numbers.
Status CheckPlaces(const DenseMatrix& places) {
  constexpr int64_t kMostPlaces = int64_t{1} << 24;  // which floats tell apart
  if (places.rows > kMostPlaces) return InvalidArgument("it permutes more than ", kMostPlaces, " tokens");
  for (const float place : places.values) {
    const bool is_place = place >= 0.0f && place < static_cast<float>(places.rows) && place == std::floor(place);
    if (!is_place) return InvalidArgument("its place ", place, " is none of ", places.rows, " tokens");
  }
  return {};
}

// The row of a token that comes first, where rows go by position.
int64_t FirstPosition(const Network& network, const Layer& layer) {
  const auto* const lookup = std::get_if<Lookup>(&layer.attributes);
  const bool by_position = lookup == nullptr || lookup->by_position;
  const bool counted = by_position && network.sequences && network.sequences->counted != -1;
  return (lookup == nullptr ? 0 : lookup->offset) + (counted ? 1 : 0);
}

// Rows and columns that its weight, of values, has to have.
std::pair<int64_t, int64_t> WeightShape(const Network& network, const Layer& layer, const Weight& weight) {
  const int64_t rows = network.values[layer.output].channels;
  switch (layer.op) {
    case Op::kEmbedding:
      return {std::max(weight.rows(), FirstPosition(network, layer) + 1), rows};
    case Op::kLayerNorm:
      return {rows, 1};
    case Op::kDepthwiseConv:
      return {rows, layer.window().taps()};
    case Op::kRotary:
      return {std::max(weight.rows(), FirstPosition(network, layer) + 1), 2 * layer.rotation().pairs};
    case Op::kBiasedAttention: {
      const int64_t columns = PairPlacesOf(layer.attention()).count();
      return {layer.attention().heads, weight.cols() == columns ? columns : columns * layer.attention().windows};
    }
    case Op::kDisentangledAttention:
      return {2 * network.values[layer.inputs[0]].channels + 1, layer.attention().places};
    case Op::kPermuteTokens:
      return {network.sequences ? network.sequences->length : 0, 1};
    case Op::kPlaneTokens:
      return {network.sequences->length, rows};
    case Op::kConv:
      return {rows, network.values[layer.inputs[0]].channels * layer.window().taps()};
    case Op::kAdd:
    case Op::kActivation:
    case Op::kMaxPool:
    case Op::kAveragePool:
    case Op::kSoftmax:
    case Op::kReshape:
    case Op::kMultiply:
    case Op::kScale:
    case Op::kFunction:
    case Op::kTranspose:
    case Op::kConcat:
    case Op::kSlice:
    case Op::kResize:
    case Op::kDepthToSpace:
    case Op::kAttention:
    case Op::kSelectToken:
    case Op::kMeanTokens:
    case Op::kSparseAttention:
    case Op::kConvertLayout:
      break;  // they have none, or one without values
  }
  return {0, 0};
}

}  // namespace

bool SameExtent(const NetworkValue& a, const NetworkValue& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

std::string ExtentText(const NetworkValue& value) { return ShapeText({value.channels, value.height, value.width}); }

Status CheckOperator(const Operator& layer) {
  const auto& [op, attributes, epilogue] = layer;
  if (!IsKnown(op) || TraitsOf(op).Has(OpTraits::kOfPlansOnly)) {
    return InvalidArgument("its operator ", static_cast<int>(op), " is none that a network has");
  }
  const OpTraits& traits = TraitsOf(op);
  if (attributes.index() != traits.attributes) {
    return InvalidArgument(traits.name, " has attributes of another operator");
  }
  SWIZZLE_RETURN_IF_ERROR(CheckEpilogue(traits, epilogue));
  return std::visit([](const auto& its) { return CheckRange(its); }, attributes);
}

Status CheckLayerValues(const Network& network, const Layer& layer) { return ValueCheck(network, layer).Run(); }

Status CheckLayerWeight(const Network& network, const Layer& layer, const Weight& weight) {
  const WeightRule rule = TraitsOf(layer.op).weight;
  if (rule == WeightRule::kPattern) return CheckPattern(layer, weight);
  if (!HasValues(weight.format())) return InvalidArgument("only attention has a pattern for its weight");
  if (rule == WeightRule::kDense && weight.format() != Format::kDense) {
    return InvalidArgument("weights of ", OpName(layer.op), " are always dense");
  }
  const auto [rows, cols] = WeightShape(network, layer, weight);
  if (weight.rows() != rows || weight.cols() != cols) {
    return InvalidArgument("its weight is ", ShapeText({weight.rows(), weight.cols()}), " instead of ",
                           ShapeText({rows, cols}));
  }
  if (layer.op == Op::kDisentangledAttention && !AreLeastDistances(weight.ToDense())) {
    return InvalidArgument("the last row of its weight is not of whole distances that rise, none above ",
                           kMostPlaceDistance);
  }
  if (layer.op == Op::kPermuteTokens && network.sequences->mask != -1) {
    return InvalidArgument("it orders all tokens of a sequence, which go with no mask");
  }
  if (layer.op == Op::kPermuteTokens) return CheckPlaces(weight.ToDense());
  if (rows > kMaxWeightElements / cols) {
    return InvalidArgument("its weight ", ShapeText({rows, cols}), " has more than ", kMaxWeightElements, " elements");
  }
  return {};
}

}  // namespace swizzle
