// Arrays that are not made yet (moved.h), and how they are.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_SETTLE_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_SETTLE_H_

#include <optional>
#include <utility>

#include "model_loader/interpreter/values/call.h"
#include "model_loader/interpreter/values/moved.h"

namespace swizzle::interpreter {

// Bytes on the host that are copied sooner than it is written down where they lie.
inline constexpr int64_t kWorthWaiting = 4096;

// Whether an array of so many elements may be a part of this one, which it then keeps all of: what loops and sequences
// collect must not keep far more than they hold.
bool PartMayShare(int64_t elements, const Array& of);

// The array with its elements, copied once where they do not lie one after another; itself, where it is made. All who
// share it get the same copy. `memory` and `stream` are where it lies: `device`'s, or, where that is null, the host's.
// RESOURCE_EXHAUSTED beyond a limit.
StatusOr<Array> Settled(const Array& array, Memory& memory, Stream& stream, Device* device);

// Of this shape, where the call runs: not made yet, or made where that is as cheap. REQUIRES: there could be such an
// array, as Memory::Check says.
StatusOr<Array> Unsettled(Call& call, Shape shape, Moved moved);

// What `move` makes of the array, which need not be made: `move` is asked for the array as it lies, or, where it has
// nothing for that, for a made one, of which it must have something. The errors of Memory::Check come before.
// REQUIRES: the shape has elements.
template <typename Move>
StatusOr<Array> MovedBy(Call& call, const Array& array, Shape shape, const Move& move) {
  SWIZZLE_RETURN_IF_ERROR(call.memory().Check(array.dtype, shape));
  if (std::optional<Moved> moved = move(MovedOf(array))) {
    const bool too_many = array.moved != nullptr && array.place == Place::kDevice && moved->rank() > kMaxStridedRank;
    if (!too_many) return Unsettled(call, std::move(shape), *std::move(moved));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Array made, Settled(array, call.memory(), call.stream(), call.device()));
  return Unsettled(call, std::move(shape), *move(MovedOf(made)));
}

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_SETTLE_H_
