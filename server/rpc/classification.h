// Triton's classification extension: of each row of an output the best classes, as text, in place of the tensor.
//
// A class is an index into a row, whatever dimensions this has. The answer is BYTES [rows, classes], or [classes] where
// shapes are exactly the model's, of "value:index" or, where the output has labels, "value:index:label", the greatest
// value first: of [0.1, 0.7, 0.2] the best two are "0.700000:1:dress", "0.200000:2:coat". Of equal values the lower
// index is first; NaN is last. Free functions, thread-safe.
#ifndef SWIZZLE_SERVER_RPC_CLASSIFICATION_H_
#define SWIZZLE_SERVER_RPC_CLASSIFICATION_H_

#include <cstdint>
#include <span>

#include "kernels/base/status.h"
#include "server/model/model.h"
#include "server/model/request.h"
#include "server/rpc/requested_output.h"

namespace swizzle {

// Texts in one answer to one output: sorting and writing them takes milliseconds at most.
inline constexpr int64_t kMostClassTexts = int64_t{1} << 17;

// INVALID_ARGUMENT, naming the output, if its type has no order, or `classes`, which the client gave, are too many for
// the request's rows.
Status CheckClasses(const ModelSpec& spec, const TensorSpec& output, int64_t classes, int64_t rows);

// Bytes of the texts, from above.
int64_t MostClassBytes(const TensorSpec& output, int64_t classes, int64_t rows);

// Replaces the outputs that are asked for so. INTERNAL if what the model made has no such rows.
Status Classify(const ModelSpec& spec, std::span<const RequestedOutput> outputs, Result& result);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_CLASSIFICATION_H_
