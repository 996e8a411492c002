// The function of a canonical Function node, to and from its attributes function, alpha and beta.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_FUNCTIONS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_FUNCTIONS_H_

#include <map>
#include <string>

#include "kernels/backend/kernel_table.h"
#include "model_loader/graph/graph.h"

namespace swizzle {

// REQUIRES of FunctionOf: FunctionAttributes made the node's.
Function FunctionOf(const Node& node);
std::map<std::string, Attribute> FunctionAttributes(const Function& function);

// Which of the two a Gelu node is, by its attribute approximate. INVALID_ARGUMENT, not naming the node, if it is
// neither.
StatusOr<FunctionKind> GeluKindOf(const Node& node);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_FUNCTIONS_H_
