// Which function interprets an operator by the forms of its inputs: the column SequenceUse::kByForm of
// graph/operator_table.h. Internal to the recogniser (recognise.h). Thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_HANDLERS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_HANDLERS_H_

#include <string_view>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Returns the form of the node's first output. UNIMPLEMENTED says why it is unknown; all other errors end the walk.
using Handler = StatusOr<Form> (*)(Context&);

// Null if there is none for this operator.
Handler FindHandler(std::string_view domain, std::string_view op);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_HANDLERS_H_
