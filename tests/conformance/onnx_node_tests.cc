// Runs ONNX's own test cases with the interpreter, and writes which are not supported and why.
//
//   onnx_node_tests FOLDER            one line a suite, "node: 640 passed, 0 failed, 292 not supported, 932 in all",
//                                     and one line a failure; exits 1 if there is one
//   onnx_node_tests FOLDER --table    the table instead, as Markdown
//   onnx_node_tests FOLDER --facts    whether what is known of operators (operator_facts.h) holds in the cases instead
//
// FOLDER holds the suites (node, pytorch-converted, ...) as Debian's libonnx-testdata has them. A case passes if every
// output of every data set is within ONNX's own tolerance.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/interpreter/run/load.h"
#include "tests/conformance/node_case.h"
#include "tests/conformance/operator_facts.h"

namespace swizzle::interpreter {
namespace {

namespace fs = std::filesystem;

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;
constexpr double kBFloat16Step = 1.0 / 128;  // the data is rounded towards zero, the executor's to nearest

bool IsClose(double actual, double expected, double relative) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return actual == expected;
  return std::fabs(actual - expected) <= kAbsolute + relative * std::fabs(expected);
}

Status Compare(Memory& memory, const Array& actual, const Tensor& expected, const std::string& name) {
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) {
    return InvalidArgument("output '", name, "' is ", DTypeName(actual.dtype), " ", ShapeText(actual.shape),
                           " instead of ", DTypeName(expected.dtype), " ", ShapeText(expected.shape));
  }
  if (expected.dtype == DType::kString) {
    return std::ranges::equal(actual.AsBytes(), expected.bytes)
               ? Status()
               : InvalidArgument("output '", name, "' has other strings");
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array wanted, memory.Allocate(expected.dtype, expected.shape));
  std::copy(expected.bytes.begin(), expected.bytes.end(), wanted.data.get());
  SWIZZLE_ASSIGN_OR_RETURN(const Array a, Convert(memory, actual, DType::kFloat64));
  SWIZZLE_ASSIGN_OR_RETURN(const Array b, Convert(memory, wanted, DType::kFloat64));
  const double relative = expected.dtype == DType::kBFloat16 ? kBFloat16Step : kRelative;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.As<double>()[static_cast<size_t>(i)], y = b.As<double>()[static_cast<size_t>(i)];
    if (!IsClose(x, y, relative)) return InvalidArgument("output '", name, "' has ", x, " instead of ", y, " at ", i);
  }
  return {};
}

Status RunDataSet(const Program& program, const fs::path& folder, Stream& stream) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, InputsOf(folder, program));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, OutputsOf(folder, program));
  std::vector<TensorView> views;
  for (const Tensor& tensor : inputs) views.push_back({tensor.dtype, tensor.shape, tensor.bytes});
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> outputs, program.Run(views, stream));
  const std::shared_ptr<Memory> memory = Memory::New({});
  for (size_t i = 0; i < outputs.size(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(Compare(*memory, outputs[i], expected[i], program.outputs()[i].name));
  }
  return {};
}

Status RunCase(const fs::path& folder, Stream& stream) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program, ReadProgram(folder / "model.onnx"));
  if (HasRandomNumbers(*program)) return Unimplemented("the case's numbers are random");
  for (const fs::path& data_set : DataSetsOf(folder)) SWIZZLE_RETURN_IF_ERROR(RunDataSet(*program, data_set, stream));
  return {};
}

struct Suite {
  std::string name;
  int passed = 0;
  std::map<std::string, std::string> failed;                    // case -> message
  std::map<std::string, std::vector<std::string>> unsupported;  // reason -> cases

  int UnsupportedCount() const {
    int count = 0;
    for (const auto& [reason, cases] : unsupported) count += static_cast<int>(cases.size());
    return count;
  }
};

// The message without what varies from case to case: the file, the node and its name, the opset.
std::string Reason(std::string message, const fs::path& folder) {
  const std::string path = (folder / "model.onnx").string() + ": ";
  if (message.starts_with(path)) message.erase(0, path.size());
  for (const char* begin : {" (opset ", " (node '", " node '"}) {
    const size_t at = message.find(begin);
    if (at == std::string::npos) continue;
    const size_t end = message.find(begin == std::string(" node '") ? "'" : ")", at + std::string(begin).size());
    if (end != std::string::npos) message.erase(at, end + 1 - at);
  }
  return message;
}

Suite RunSuite(const fs::path& folder, const std::string& name, Stream& stream) {
  Suite suite;
  suite.name = name;
  for (const fs::path& path : CasesOf(folder, name)) {
    const std::string case_name = path.filename().string();
    const Status status = RunCase(path, stream);
    const std::string message(status.message());
    if (status.ok()) {
      ++suite.passed;
    } else if (status.code() == StatusCode::kUnimplemented) {
      suite.unsupported[Reason(message, path)].push_back(case_name);
    } else {
      suite.failed[case_name] = message;
    }
  }
  return suite;
}

void PrintSummary(const Suite& suite) {
  std::cout << suite.name << ": " << suite.passed << " passed, " << suite.failed.size() << " failed, "
            << suite.UnsupportedCount() << " not supported, "
            << suite.passed + static_cast<int>(suite.failed.size()) + suite.UnsupportedCount() << " in all\n";
  for (const auto& [name, message] : suite.failed) std::cout << "  " << name << ": " << message << "\n";
}

void PrintTable(const std::vector<Suite>& suites) {
  std::cout << "# ONNX's own tests\n\n"
               "What the interpreter does with the test cases of Debian's `libonnx-testdata`. Written by\n"
               "`onnx_node_tests FOLDER --table`; a test fails where it is out of date.\n\n"
               "| suite | passed | failed | not supported |\n|---|---|---|---|\n";
  for (const Suite& suite : suites) {
    std::cout << "| " << suite.name << " | " << suite.passed << " | " << suite.failed.size() << " | "
              << suite.UnsupportedCount() << " |\n";
  }
  for (const Suite& suite : suites) {
    if (suite.unsupported.empty()) continue;
    std::cout << "\n## Not supported of " << suite.name << "\n\n| why | cases |\n|---|---|\n";
    for (const auto& [reason, cases] : suite.unsupported) {
      std::cout << "| " << reason << " |";
      for (const std::string& name : cases) std::cout << " " << name;
      std::cout << " |\n";
    }
  }
}

int Main(int argc, char** argv) {
  const std::string option = argc == 3 ? argv[2] : "";
  const bool table = option == "--table";
  if (argc != 2 && !table && option != "--facts") {
    std::cerr << "usage: onnx_node_tests FOLDER [--table | --facts]\n";
    return 2;
  }
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const auto stream = backend->NewStream(1);
  if (option == "--facts") return HoldFacts(argv[1], **stream, std::cout) ? 0 : 1;
  std::vector<Suite> suites;
  bool failed = false;
  for (const char* name : kSuites) {
    suites.push_back(RunSuite(argv[1], name, **stream));
    failed |= !suites.back().failed.empty();
    if (!table) PrintSummary(suites.back());
  }
  if (table) PrintTable(suites);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace swizzle::interpreter

int main(int argc, char** argv) { return swizzle::interpreter::Main(argc, argv); }
