#include "kernels/operator/print.h"

#include "kernels/base/status.h"

namespace swizzle {
namespace {

std::string Text(const std::monostate&) { return {}; }

std::string Text(const Window& window) {
  const auto& [kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, pad_bottom, pad_right, dilation_h, dilation_w,
               count_include_pad] = window;
  return Concat(" window ", kernel_h, "x", kernel_w, " stride ", stride_h, "x", stride_w, " dilation ", dilation_h, "x",
                dilation_w, " pad ", pad_top, ",", pad_left, ",", pad_bottom, ",", pad_right,
                count_include_pad ? " counted" : "");
}

std::string Text(const Function& function) {
  const auto& [kind, alpha, beta] = function;
  return Concat(" ", FunctionKindName(kind), " alpha ", alpha, " beta ", beta);
}

std::string Text(const Lookup& lookup) {
  const auto& [by_position, offset] = lookup;
  return Concat(by_position ? " by position" : " by id", " from ", offset);
}

std::string Text(const Attention& attention) {
  const auto& [heads, scale, length, nonzeros, packed, reach, windows, places, group_size] = attention;
  const std::string pattern =
      nonzeros == 0 ? "" : Concat(" pattern of ", length, " tokens and ", nonzeros, " nonzeros");
  const std::string biases = nonzeros > 0 || length == 0 ? "" : Concat(" biases of ", length, " tokens");
  const std::string groups = group_size == 1 ? "" : Concat(" in groups of ", group_size);
  return Concat(" heads ", heads, groups, " scale ", scale, pattern, biases, reach == 0 ? "" : Concat(" reach ", reach),
                windows == 1 ? "" : Concat(" in ", windows, " windows"), places == 0 ? "" : Concat(" places ", places),
                packed ? " packed" : "");
}

std::string Text(const Normalisation& normalisation) {
  const auto& [epsilon, centred, groups] = normalisation;
  return Concat(centred ? "" : " root mean square", " epsilon ", epsilon,
                groups == 1 ? "" : Concat(" groups ", groups));
}

std::string Text(const TokenChoice& choice) {
  const auto& [token] = choice;
  return Concat(" token ", token);
}

std::string Text(const ConcatParts& parts) {
  const auto& [count, of_planes, sizes] = parts;
  std::string text = of_planes ? " planes of" : " channels of";
  for (int i = 0; i < count; ++i) text += Concat(i == 0 ? " " : "+", sizes[i]);
  return text;
}

std::string Text(const ChannelRange& range) {
  const auto& [first] = range;
  return Concat(" channels from ", first);
}

std::string Text(const Resampling& resampling) {
  const auto& [linear, coordinates, nearest, scale_h, scale_w] = resampling;
  const std::string by = scale_h == 0.0f && scale_w == 0.0f ? "" : Concat(" by ", scale_h, "x", scale_w);
  return Concat(linear ? " linear" : " nearest ", linear ? "" : NearestName(nearest), " ", CoordinatesName(coordinates),
                by);
}

std::string Text(const SpaceBlock& space) {
  const auto& [block, places_first] = space;
  return Concat(" blocks of ", block, "x", block, places_first ? " places first" : "");
}

std::string Text(const Rotation& rotation) {
  const auto& [heads, size, pairs] = rotation;
  return Concat(" heads ", heads, " of ", size, " pairs ", pairs);
}

}  // namespace

std::string_view ReportName(const Operator& layer) {
  const auto* const function = std::get_if<Function>(&layer.attributes);
  return function == nullptr ? OpName(layer.op) : FunctionKindName(function->kind);
}

std::string AttributesText(const Attributes& attributes) {
  return std::visit([](const auto& its) { return Text(its); }, attributes);
}

}  // namespace swizzle
