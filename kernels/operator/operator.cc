#include "kernels/operator/operator.h"

#include <utility>

#include "kernels/base/status.h"

namespace swizzle {
namespace {

template <size_t... kIndices>
Attributes MadeAt(size_t index, std::index_sequence<kIndices...>) {
  Attributes made;
  ((index == kIndices ? static_cast<void>(made.emplace<kIndices>()) : static_cast<void>(0)), ...);
  return made;
}

}  // namespace

void internal::WrongAttributes(Op op) {
  const std::string what = Concat("the attributes asked of ", OpName(op), " are not its own");
  CheckFailed(__FILE__, __LINE__, what.c_str());
}

Attributes AttributesOf(Op op) {
  return MadeAt(TraitsOf(op).attributes, std::make_index_sequence<std::variant_size_v<Attributes>>());
}

}  // namespace swizzle
