#include "model_loader/packed/packed_operator.h"

#include <algorithm>
#include <array>

namespace swizzle {
namespace {

packed::FunctionKind PackedFunction(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::kSigmoid:
      return packed::FUNCTION_KIND_SIGMOID;
    case FunctionKind::kSilu:
      return packed::FUNCTION_KIND_SILU;
    case FunctionKind::kHardSigmoid:
      return packed::FUNCTION_KIND_HARD_SIGMOID;
    case FunctionKind::kHardSwish:
      return packed::FUNCTION_KIND_HARD_SWISH;
    case FunctionKind::kLeakyRelu:
      return packed::FUNCTION_KIND_LEAKY_RELU;
    case FunctionKind::kTanh:
      return packed::FUNCTION_KIND_TANH;
    case FunctionKind::kGelu:
      return packed::FUNCTION_KIND_GELU;
    case FunctionKind::kGeluTanh:
      return packed::FUNCTION_KIND_GELU_TANH;
  }
  return packed::FUNCTION_KIND_UNSPECIFIED;
}

std::optional<FunctionKind> UnpackedFunction(packed::FunctionKind proto) {
  for (int i = 0; i < kFunctionKindCount; ++i) {
    const auto kind = static_cast<FunctionKind>(i);
    if (PackedFunction(kind) == proto) return kind;
  }
  return std::nullopt;
}

void Pack(const std::monostate&, packed::Layer&) {}
Status Unpack(const packed::Layer&, std::monostate&) { return {}; }

void Pack(const Window& window, packed::Layer& layer) {
  if (window == Window()) return;
  const auto& [kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, pad_bottom, pad_right, dilation_h, dilation_w,
               count_include_pad] = window;
  packed::Window& proto = *layer.mutable_window();
  proto.set_kernel_h(kernel_h);
  proto.set_kernel_w(kernel_w);
  proto.set_stride_h(stride_h);
  proto.set_stride_w(stride_w);
  proto.set_pad_top(pad_top);
  proto.set_pad_left(pad_left);
  proto.set_pad_bottom(pad_bottom);
  proto.set_pad_right(pad_right);
  proto.set_dilation_h(dilation_h);
  proto.set_dilation_w(dilation_w);
  proto.set_count_include_pad(count_include_pad);
}

Status Unpack(const packed::Layer& layer, Window& window) {
  if (!layer.has_window()) return {};
  auto& [kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, pad_bottom, pad_right, dilation_h, dilation_w,
         count_include_pad] = window;
  const packed::Window& proto = layer.window();
  kernel_h = proto.kernel_h();
  kernel_w = proto.kernel_w();
  stride_h = proto.stride_h();
  stride_w = proto.stride_w();
  pad_top = proto.pad_top();
  pad_left = proto.pad_left();
  pad_bottom = proto.pad_bottom();
  pad_right = proto.pad_right();
  dilation_h = proto.dilation_h();
  dilation_w = proto.dilation_w();
  count_include_pad = proto.count_include_pad();
  return {};
}

void Pack(const Function& function, packed::Layer& layer) {
  const auto& [kind, alpha, beta] = function;
  layer.mutable_function()->set_kind(PackedFunction(kind));
  layer.mutable_function()->set_alpha(alpha);
  layer.mutable_function()->set_beta(beta);
}

Status Unpack(const packed::Layer& layer, Function& function) {
  auto& [kind, alpha, beta] = function;
  const packed::Function& proto = layer.function();
  const std::optional<FunctionKind> unpacked = UnpackedFunction(proto.kind());
  if (!unpacked) return InvalidArgument("its function ", static_cast<int>(proto.kind()), " is not known");
  kind = *unpacked;
  alpha = proto.alpha();
  beta = proto.beta();
  return {};
}

void Pack(const Lookup& lookup, packed::Layer& layer) {
  const auto& [by_position, offset] = lookup;
  layer.mutable_lookup()->set_by_position(by_position);
  layer.mutable_lookup()->set_offset(offset);
}

Status Unpack(const packed::Layer& layer, Lookup& lookup) {
  auto& [by_position, offset] = lookup;
  by_position = layer.lookup().by_position();
  offset = layer.lookup().offset();
  return {};
}

// The weight says how long a pattern is (SetPatternSizes), and only plans pack operands: neither is stored.
void Pack(const Attention& attention, packed::Layer& layer) {
  const auto& [heads, scale, length, nonzeros, packed, reach, windows, places, group_size] = attention;
  layer.mutable_attention()->set_heads(heads);
  layer.mutable_attention()->set_scale(scale);
  if (places > 0) layer.mutable_attention()->set_places(places);
  if (group_size != 1) layer.mutable_attention()->set_group_size(group_size);
  if (layer.kind() != packed::LAYER_KIND_BIASED_ATTENTION) return;
  layer.mutable_attention()->set_length(length);
  layer.mutable_attention()->set_reach(reach);
  if (windows != 1) layer.mutable_attention()->set_windows(windows);
}

Status Unpack(const packed::Layer& layer, Attention& attention) {
  if (!layer.has_attention()) return {};
  auto& [heads, scale, length, nonzeros, packed, reach, windows, places, group_size] = attention;
  heads = layer.attention().heads();
  scale = layer.attention().scale();
  places = layer.attention().places();
  if (layer.attention().group_size() != 0) group_size = layer.attention().group_size();
  if (layer.kind() != packed::LAYER_KIND_BIASED_ATTENTION) return {};
  length = layer.attention().length();
  reach = layer.attention().reach();
  if (layer.attention().has_windows()) windows = layer.attention().windows();
  return {};
}

void Pack(const Normalisation& normalisation, packed::Layer& layer) {
  const auto& [epsilon, centred, groups] = normalisation;
  layer.set_epsilon(epsilon);
  layer.set_root_mean_square(!centred);
  if (groups != 1) layer.set_groups(groups);
}

Status Unpack(const packed::Layer& layer, Normalisation& normalisation) {
  auto& [epsilon, centred, groups] = normalisation;
  epsilon = layer.epsilon();
  centred = !layer.root_mean_square();
  if (layer.has_groups()) groups = layer.groups();
  return {};
}

void Pack(const TokenChoice& choice, packed::Layer& layer) {
  const auto& [token] = choice;
  layer.set_token(token);
}

Status Unpack(const packed::Layer& layer, TokenChoice& choice) {
  auto& [token] = choice;
  token = layer.token();
  return {};
}

void Pack(const ConcatParts& parts, packed::Layer& layer) {
  const auto& [count, of_planes, sizes] = parts;
  layer.mutable_parts()->set_of_planes(of_planes);
  layer.mutable_parts()->mutable_sizes()->Add(sizes.begin(), sizes.begin() + count);
}

Status Unpack(const packed::Layer& layer, ConcatParts& parts) {
  auto& [count, of_planes, sizes] = parts;
  const auto& given = layer.parts().sizes();
  if (given.size() > kMaxParts) return InvalidArgument("it has ", given.size(), " parts; the most are ", kMaxParts);
  count = given.size();
  of_planes = layer.parts().of_planes();
  std::copy(given.begin(), given.end(), sizes.begin());
  return {};
}

void Pack(const ChannelRange& range, packed::Layer& layer) {
  const auto& [first] = range;
  layer.set_first_channel(first);
}

Status Unpack(const packed::Layer& layer, ChannelRange& range) {
  auto& [first] = range;
  first = layer.first_channel();
  return {};
}

// Both enumerations have the schema's order, behind its 0.
void Pack(const Resampling& resampling, packed::Layer& layer) {
  const auto& [linear, coordinates, nearest, scale_h, scale_w] = resampling;
  packed::Resampling& proto = *layer.mutable_resampling();
  proto.set_coordinates(static_cast<packed::Coordinates>(static_cast<int>(coordinates) + 1));
  if (!linear) proto.set_nearest(static_cast<packed::Nearest>(static_cast<int>(nearest) + 1));
  proto.set_scale_h(scale_h);
  proto.set_scale_w(scale_w);
}

Status Unpack(const packed::Layer& layer, Resampling& resampling) {
  auto& [linear, coordinates, nearest, scale_h, scale_w] = resampling;
  const packed::Resampling& proto = layer.resampling();
  if (proto.coordinates() < 1 || proto.coordinates() > kCoordinatesCount) {
    return InvalidArgument("its coordinates ", static_cast<int>(proto.coordinates()), " are not known");
  }
  if (proto.nearest() < 0 || proto.nearest() > kNearestCount) {
    return InvalidArgument("its nearest ", static_cast<int>(proto.nearest()), " is not known");
  }
  coordinates = static_cast<Coordinates>(static_cast<int>(proto.coordinates()) - 1);
  linear = proto.nearest() == packed::NEAREST_UNSPECIFIED;
  if (!linear) nearest = static_cast<Nearest>(static_cast<int>(proto.nearest()) - 1);
  scale_h = proto.scale_h();
  scale_w = proto.scale_w();
  return {};
}

void Pack(const SpaceBlock& space, packed::Layer& layer) {
  const auto& [block, places_first] = space;
  layer.mutable_space_block()->set_block(block);
  layer.mutable_space_block()->set_places_first(places_first);
}

Status Unpack(const packed::Layer& layer, SpaceBlock& space) {
  auto& [block, places_first] = space;
  block = layer.space_block().block();
  places_first = layer.space_block().places_first();
  return {};
}

void Pack(const Rotation& rotation, packed::Layer& layer) {
  const auto& [heads, size, pairs] = rotation;
  layer.mutable_rotation()->set_heads(heads);
  layer.mutable_rotation()->set_size(size);
  layer.mutable_rotation()->set_pairs(pairs);
}

Status Unpack(const packed::Layer& layer, Rotation& rotation) {
  auto& [heads, size, pairs] = rotation;
  heads = layer.rotation().heads();
  size = layer.rotation().size();
  pairs = layer.rotation().pairs();
  return {};
}

// Functions in epilogues are of plans: networks have layers for them; and so are scales, which their values have.
void Pack(const Epilogue& epilogue, packed::Layer& layer) {
  if (epilogue == Epilogue()) return;
  const auto& [low, high, residual, function, requantise] = epilogue;
  packed::Epilogue& proto = *layer.mutable_epilogue();
  if (low != Epilogue().low) proto.set_low(low);
  if (high != Epilogue().high) proto.set_high(high);
  proto.set_residual(residual);
}

void Unpack(const packed::Layer& layer, Epilogue& epilogue) {
  auto& [low, high, residual, function, requantise] = epilogue;
  if (layer.epilogue().has_low()) low = layer.epilogue().low();
  if (layer.epilogue().has_high()) high = layer.epilogue().high();
  residual = layer.epilogue().residual();
}

struct OpKind {
  Op op;
  packed::LayerKind kind;
};

// In the order of the operators, of which plans' own have none.
constexpr std::array kKinds = {
    OpKind{Op::kConv, packed::LAYER_KIND_CONV},
    OpKind{Op::kDepthwiseConv, packed::LAYER_KIND_DEPTHWISE_CONV},
    OpKind{Op::kAdd, packed::LAYER_KIND_ADD},
    OpKind{Op::kActivation, packed::LAYER_KIND_ACTIVATION},
    OpKind{Op::kMaxPool, packed::LAYER_KIND_MAX_POOL},
    OpKind{Op::kAveragePool, packed::LAYER_KIND_AVERAGE_POOL},
    OpKind{Op::kSoftmax, packed::LAYER_KIND_SOFTMAX},
    OpKind{Op::kReshape, packed::LAYER_KIND_RESHAPE},
    OpKind{Op::kMultiply, packed::LAYER_KIND_MULTIPLY},
    OpKind{Op::kScale, packed::LAYER_KIND_SCALE},
    OpKind{Op::kFunction, packed::LAYER_KIND_FUNCTION},
    OpKind{Op::kTranspose, packed::LAYER_KIND_TRANSPOSE},
    OpKind{Op::kConcat, packed::LAYER_KIND_CONCAT},
    OpKind{Op::kSlice, packed::LAYER_KIND_SLICE},
    OpKind{Op::kResize, packed::LAYER_KIND_RESIZE},
    OpKind{Op::kDepthToSpace, packed::LAYER_KIND_DEPTH_TO_SPACE},
    OpKind{Op::kEmbedding, packed::LAYER_KIND_EMBEDDING},
    OpKind{Op::kLayerNorm, packed::LAYER_KIND_LAYER_NORM},
    OpKind{Op::kAttention, packed::LAYER_KIND_ATTENTION},
    OpKind{Op::kSelectToken, packed::LAYER_KIND_SELECT_TOKEN},
    OpKind{Op::kMeanTokens, packed::LAYER_KIND_MEAN_TOKENS},
    OpKind{Op::kSparseAttention, packed::LAYER_KIND_SPARSE_ATTENTION},
    OpKind{Op::kBiasedAttention, packed::LAYER_KIND_BIASED_ATTENTION},
    OpKind{Op::kDisentangledAttention, packed::LAYER_KIND_DISENTANGLED_ATTENTION},
    OpKind{Op::kRotary, packed::LAYER_KIND_ROTARY},
    OpKind{Op::kPermuteTokens, packed::LAYER_KIND_PERMUTE_TOKENS},
    OpKind{Op::kPlaneTokens, packed::LAYER_KIND_PLANE_TOKENS},
};
static_assert(
    [] {
      size_t next = 0;
      for (const OpTraits& traits : kOpTraits) {
        if (traits.Has(OpTraits::kOfPlansOnly)) continue;
        if (next == kKinds.size() || kKinds[next++].op != traits.op) return false;
      }
      return next == kKinds.size();
    }(),
    "one row for each operator of networks");

}  // namespace

packed::LayerKind PackedOp(Op op) {
  const auto found = std::ranges::find(kKinds, op, &OpKind::op);
  return found == kKinds.end() ? packed::LAYER_KIND_UNSPECIFIED : found->kind;
}

std::optional<Op> UnpackedOp(packed::LayerKind kind) {
  const auto found = std::ranges::find(kKinds, kind, &OpKind::kind);
  return found == kKinds.end() ? std::nullopt : std::optional(found->op);
}

void PackOperator(const Operator& layer, packed::Layer& proto) {
  const auto& [op, attributes, epilogue] = layer;
  proto.set_kind(PackedOp(op));
  std::visit([&](const auto& its) { Pack(its, proto); }, attributes);
  Pack(epilogue, proto);
}

StatusOr<Operator> UnpackOperator(const packed::Layer& proto) {
  const std::optional<Op> known = UnpackedOp(proto.kind());
  if (!known) return InvalidArgument("its kind ", static_cast<int>(proto.kind()), " is not known");
  Operator layer;
  layer.SetOp(*known);
  auto& [op, attributes, epilogue] = layer;
  SWIZZLE_RETURN_IF_ERROR(std::visit([&](auto& its) { return Unpack(proto, its); }, attributes));
  Unpack(proto, epilogue);
  return layer;
}

}  // namespace swizzle
