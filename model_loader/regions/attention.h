// Attention as exporters write it, between a program's layers: the product of queries and keys, a factor, what is added
// (score_terms.h), softmax, the product with values. It runs in one call, which reads queries, keys and values where
// the layers left them (kernels/cpu/tokens/view_attention.h): transpositions around it are only views.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_ATTENTION_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_ATTENTION_H_

#include <vector>

#include "model_loader/interpreter/run/executor.h"
#include "model_loader/regions/survey.h"

namespace swizzle::regions {

// As parts of the program, no node in two or in an idiom of the survey. What one makes on the way nothing else reads.
// A part does not take inputs that broadcast along sequences or heads, but for what is added.
// `place`: where it is to run. A device adds inputs to scores as they are.
std::vector<interpreter::PartOfProgram> FindAttention(const Graph& graph, const Survey& survey,
                                                      interpreter::Place place);

// What of attention shares no node with `parts`.
std::vector<interpreter::PartOfProgram> AttentionBeside(const std::vector<interpreter::PartOfProgram>& parts,
                                                        std::vector<interpreter::PartOfProgram> attention);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_ATTENTION_H_
