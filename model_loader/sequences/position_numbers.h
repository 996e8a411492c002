// Numbers by position and channel, on the way from positions and frequencies, or from tables, to what a rotary
// embedding multiplies with. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_POSITION_NUMBERS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_POSITION_NUMBERS_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// What positions, numbers by channel alone and activations that are rows of a table by position are as such numbers.
// UNIMPLEMENTED for what is none.
StatusOr<PositionNumbers> AsPositionNumbers(Context& context, const Form& form);
// A constant of sequences of one length, [.., length, ..], or of their positions from `first_place` on, as `tokens`
// have their positions and channels.
StatusOr<PositionNumbers> NumbersOfLength(Context& context, const Known& known, const View& tokens,
                                          int64_t first_place);

// What an element-wise operator makes of them; a product of matrices with an inner size of 1 is one.
StatusOr<Form> CombinePositionNumbers(Context& context);
StatusOr<Form> MultiplyPositionNumbers(Context& context);
StatusOr<Form> ConcatPositionNumbers(Context& context, size_t axis);

// As FP32 arithmetic has it. REQUIRES: a table has the row.
float NumberAt(const PositionColumn& column, int64_t position);
// How many positions a column has; nothing where they are computed.
std::optional<int64_t> PositionsOf(const PositionColumn& column);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_POSITION_NUMBERS_H_
