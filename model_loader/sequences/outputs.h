// Where a walk over a sequence graph ends: activations as outputs of the canonical graph, and that graph. Internal to
// the recognisers (recognise.h, section.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_OUTPUTS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_OUTPUTS_H_

#include <string>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// The activation that a form stands for, functions applied, all of its channels in order: [batch, length, channels] or
// [batch, channels]; one number a token may stand without channels. may_split_length: several dimensions may stand for
// the length, too. UNIMPLEMENTED, naming the output, for all else.
StatusOr<Tokens> AsOutput(Context& context, const Form& form, const std::string& name, bool may_split_length);

// Makes it an output of the canonical graph. REQUIRES: AsOutput gave it.
void AddOutput(Context& context, const Tokens& tokens, const std::string& name);

// UNIMPLEMENTED where what is made copies the constants that were read, of which there are `held` elements, too often.
Status CheckSpent(const Context& context, int64_t held);

// The canonical graph without what no output needs, but with all inputs; the context is of no use afterwards. `read`:
// the graph that it was made from.
Graph TakeGraph(Context& context, const Graph& read);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_OUTPUTS_H_
