#include "model_loader/semantics/resampling_modes.h"

namespace swizzle {
namespace {

template <typename Enum>
std::optional<Enum> Named(std::string_view name, int count, std::string_view (*name_of)(Enum)) {
  for (int i = 0; i < count; ++i) {
    if (name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Coordinates> CoordinatesNamed(std::string_view name) {
  return Named<Coordinates>(name, kCoordinatesCount, CoordinatesName);
}

std::optional<Nearest> NearestNamed(std::string_view name) { return Named<Nearest>(name, kNearestCount, NearestName); }

}  // namespace swizzle
