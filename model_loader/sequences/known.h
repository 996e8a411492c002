// Numbers that are the same for every request, as operators read them: shapes, axes, weights. Internal to the
// recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_KNOWN_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_KNOWN_H_

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// More whole numbers than these are never listed.
inline constexpr int64_t kMaxListedWholes = int64_t{1} << 16;

// The form of a constant of the graph that is read.
Form KnownConstant(Context& context, int value);
// The whole numbers of a list or scalar input, which errors call `what`.
StatusOr<Wholes> WholesOf(Context& context, size_t input, const char* what);
// Likewise, where they depend on neither the batch nor the length.
StatusOr<std::vector<int64_t>> IntegersOf(Context& context, size_t input, const char* what);
// Axes from this input or, where it is left out, the attribute axes; nothing if there are neither. As they are given,
// or counted from the front, ascending.
StatusOr<std::optional<std::vector<int64_t>>> AxesGiven(Context& context, size_t input);
StatusOr<std::optional<std::vector<int64_t>>> AxesOr(Context& context, size_t input, int64_t rank);
// The one number that all elements are; nothing if there is none.
std::optional<double> NumberOf(const Known& known);
std::optional<double> NumberOf(Context& context, size_t input);
// Likewise, of a whole number.
std::optional<int64_t> IntegerOf(const Known& known);
// The shape and the elements of a constant FP32 input.
StatusOr<std::pair<Shape, std::span<const float>>> FloatTensor(Context& context, size_t input, const char* what);
// `count` numbers, or one for all.
StatusOr<std::vector<float>> FloatsOf(Context& context, size_t input, int64_t count, const char* what);
// Whether the last dimension counts up from `offset` in steps of 1, all others being 1.
bool IsCountingUp(const Known& known, int64_t& offset);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_KNOWN_H_
