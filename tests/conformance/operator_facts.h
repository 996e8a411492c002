// Whether what is known of operators holds: the facts of their rows (graph/operator_table.h) and what the symbolic walk
// makes of them (shapes/symbolic_walk.h), against what the interpreter computes in ONNX's own test cases.
//
// Each case runs with what it is given, with its sizes declared and free, with twice as many rows where the model takes
// them, and with elements in other places.
#ifndef SWIZZLE_TESTS_CONFORMANCE_OPERATOR_FACTS_H_
#define SWIZZLE_TESTS_CONFORMANCE_OPERATOR_FACTS_H_

#include <filesystem>
#include <ostream>

#include "kernels/backend/backend.h"

namespace swizzle::interpreter {

// Writes how many operators were held against theirs, which were not, and each fact that is wrong; false if there is
// one.
bool HoldFacts(const std::filesystem::path& folder, Stream& stream, std::ostream& out);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_TESTS_CONFORMANCE_OPERATOR_FACTS_H_
