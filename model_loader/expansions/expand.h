// Operators that are written out as older ones as soon as a graph is read, so that everything later knows them by what
// they are made of: those of com.microsoft, which ONNX Runtime saves, and of new opsets.
//
// expand.cc lists them; graph/operator_table.h says which operators are written out where they are not taken as they
// are. What an operator asks for that others do not give, to the bit but for the order of sums, is UNIMPLEMENTED.
#ifndef SWIZZLE_MODEL_LOADER_EXPANSIONS_EXPAND_H_
#define SWIZZLE_MODEL_LOADER_EXPANSIONS_EXPAND_H_

#include <span>
#include <string_view>

#include "model_loader/expansions/site.h"
#include "model_loader/expansions/value_facts.h"
#include "model_loader/graph/graph.h"
#include "model_loader/graph/operators.h"

namespace swizzle::expansions {

struct Expansion {
  std::string_view domain, op;
  Status (*write)(Site& site);
  bool (*wants)(const Site& site) = nullptr;  // null: always; else for nodes that are taken as they are, too
};

// Sorted by domain and name.
std::span<const Expansion> Expansions();

// Null if there is none.
const Expansion* FindExpansion(std::string_view domain, std::string_view op);

// Writes out the nodes that `find` does not know, and those of others that their expansion wants; nodes within nodes
// are not looked at. Errors name the node.
Status ExpandOperators(Graph& graph, OperatorFinder find, const Hints& hints);

}  // namespace swizzle::expansions

#endif  // SWIZZLE_MODEL_LOADER_EXPANSIONS_EXPAND_H_
