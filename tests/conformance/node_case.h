// ONNX's own test cases, as Debian's libonnx-testdata has them: a folder with a model and data sets, each with what the
// model is given and what it has to make.
#ifndef SWIZZLE_TESTS_CONFORMANCE_NODE_CASE_H_
#define SWIZZLE_TESTS_CONFORMANCE_NODE_CASE_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "model_loader/interpreter/run/executor.h"

namespace swizzle::interpreter {

// The suites that hold them.
inline constexpr const char* kSuites[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};

std::vector<std::filesystem::path> CasesOf(const std::filesystem::path& folder, const std::string& suite);
std::vector<std::filesystem::path> DataSetsOf(const std::filesystem::path& test_case);

// The inputs of a data set, of the types that the program declares; UNIMPLEMENTED where the data is not what the case's
// own model allows. `Outputs` likewise.
StatusOr<std::vector<Tensor>> InputsOf(const std::filesystem::path& data_set, const Program& program);
StatusOr<std::vector<Tensor>> OutputsOf(const std::filesystem::path& data_set, const Program& program);

// Whether ONNX leaves open which numbers it makes.
bool HasRandomNumbers(const Program& program);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_TESTS_CONFORMANCE_NODE_CASE_H_
