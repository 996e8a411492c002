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
  const auto& [heads, scale, length, nonzeros, packed] = attention;
  const std::string pattern = length == 0 ? "" : Concat(" pattern of ", length, " tokens and ", nonzeros, " nonzeros");
  return Concat(" heads ", heads, " scale ", scale, pattern, packed ? " packed" : "");
}

std::string Text(const Normalisation& normalisation) {
  const auto& [epsilon] = normalisation;
  return Concat(" epsilon ", epsilon);
}

std::string Text(const TokenChoice& choice) {
  const auto& [token] = choice;
  return Concat(" token ", token);
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
