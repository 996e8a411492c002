// Tokens that Reshape, Transpose and rolls move within sequences of a fixed length, as Swin Transformers move them into
// windows and back: where they go is followed, and they are copied once, when something computes with them. Internal to
// the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_MOVED_TOKENS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_MOVED_TOKENS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// The tokens of a form that is an activation, moved or not; nothing for others.
std::optional<MovedTokens> AsMoved(const Form& form);
// What has been moved as Tokens, where its matrix has the tokens in that order already.
Form InOrderOrMoved(Context& context, MovedTokens moved);
// The matrix in the order of the view: a new one where the tokens lie otherwise.
StatusOr<Tokens> Settled(Context& context, const MovedTokens& moved);
// The same for every input that was moved.
Status SettleInputs(Context& context);

// The row of the matrix, counted in a sequence, that each position of the view is; nothing where they are more than
// 2^20.
std::vector<int32_t> RowsOf(const MovedTokens& moved);

// `count` positions of a dimension of an activation's; nothing where it is not of positions of a fixed length.
std::optional<Form> SlicePlaces(const Form& form, size_t axis, int64_t start, int64_t count);
// Parts of one activation's sequences, joined along a dimension of positions: what rolls end with.
StatusOr<Form> JoinPlaces(Context& context, size_t axis);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_MOVED_TOKENS_H_
