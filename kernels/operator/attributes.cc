#include "kernels/operator/attributes.h"

#include <array>
#include <cstddef>

namespace swizzle {
namespace {

template <size_t kCount, typename Enum>
std::string_view NameIn(const std::array<std::string_view, kCount>& names, Enum of) {
  const auto index = static_cast<size_t>(of);
  return index < names.size() ? names[index] : "unknown";
}

}  // namespace

std::string_view FunctionKindName(FunctionKind kind) {
  static constexpr std::array<std::string_view, kFunctionKindCount> kNames = {
      "Sigmoid", "Silu", "HardSigmoid", "HardSwish", "LeakyRelu", "Tanh", "Gelu", "GeluTanh"};
  return NameIn(kNames, kind);
}

std::string_view CoordinatesName(Coordinates coordinates) {
  static constexpr std::array<std::string_view, kCoordinatesCount> kNames = {"half_pixel", "pytorch_half_pixel",
                                                                             "align_corners", "asymmetric"};
  return NameIn(kNames, coordinates);
}

std::string_view NearestName(Nearest nearest) {
  static constexpr std::array<std::string_view, kNearestCount> kNames = {"round_prefer_floor", "round_prefer_ceil",
                                                                         "floor", "ceil"};
  return NameIn(kNames, nearest);
}

}  // namespace swizzle
