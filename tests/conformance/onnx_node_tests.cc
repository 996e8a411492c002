// Runs ONNX's own test cases with the fallback executor, and writes which are not supported and why.
//
//   onnx_node_tests FOLDER            one line a suite, "node: 640 passed, 0 failed, 292 not supported, 932 in all",
//                                     and one line a failure; exits 1 if there is one
//   onnx_node_tests FOLDER --table    the table instead, as Markdown
//
// FOLDER holds the suites (node, pytorch-converted, ...) as Debian's libonnx-testdata has them. A case passes if every
// output of every data set is within ONNX's own tolerance.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/fallback/executor.h"
#include "model_loader/fallback/load.h"
#include "model_loader/load/loader.h"
#include "model_loader/onnx/proto_values.h"

namespace swizzle::fallback {
namespace {

namespace fs = std::filesystem;

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;
constexpr double kBFloat16Step = 1.0 / 128;  // the data is rounded towards zero, the executor's to nearest
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;
constexpr const char* kSuites[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};

// As arrays of strings lie: (uint32 length, bytes), one behind the other.
Tensor ReadStrings(const onnx::TensorProto& proto) {
  Tensor tensor;
  tensor.dtype = DType::kString;
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  for (const std::string& string : proto.string_data()) {
    const auto length = static_cast<uint32_t>(string.size());
    for (const auto part : {std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(string))}) {
      tensor.bytes.insert(tensor.bytes.end(), part.begin(), part.end());
    }
  }
  return tensor;
}

StatusOr<Tensor> ReadTensorFile(const fs::path& file) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(file, kMaxFileBytes));
  onnx::TensorProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument(file.filename().string(), " is no tensor");
  }
  if (proto.data_type() == onnx::TensorProto::STRING) return ReadStrings(proto);
  TensorSource source{ReadOptions()};
  return ReadTensor(proto, file.filename().string(), source);
}

// input_0.pb, input_1.pb, ... of a data set.
StatusOr<std::vector<Tensor>> ReadTensors(const fs::path& folder, const std::string& kind, size_t count) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(tensors.emplace_back(), ReadTensorFile(folder / Concat(kind, "_", i, ".pb")));
  }
  return tensors;
}

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

// ONNX's Python writes BF16 as UINT16. Some of those cases have data that their own models don't allow.
Status CorrectTensor(const Port& port, Tensor& tensor) {
  if (port.dtype == DType::kBFloat16 && tensor.dtype == DType::kUint16) tensor.dtype = DType::kBFloat16;
  bool fits = !port.shape || port.shape->size() == tensor.shape.size();
  for (size_t d = 0; fits && port.shape && d < tensor.shape.size(); ++d) {
    fits = (*port.shape)[d] == -1 || (*port.shape)[d] == tensor.shape[d];
  }
  return fits ? Status() : Unimplemented("the case's data has another shape than its model declares");
}

Status RunDataSet(const Program& program, const fs::path& folder, Stream& stream) {
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, ReadTensors(folder, "input", program.inputs().size()));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<Tensor> expected, ReadTensors(folder, "output", program.outputs().size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(CorrectTensor(program.inputs()[i], inputs[i]));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(CorrectTensor(program.outputs()[i], expected[i]));
  }
  std::vector<TensorView> views;
  for (const Tensor& tensor : inputs) views.push_back({tensor.dtype, tensor.shape, tensor.bytes});
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> outputs, program.Run(views, stream));
  const std::shared_ptr<Memory> memory = Memory::New({});
  for (size_t i = 0; i < outputs.size(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(Compare(*memory, outputs[i], expected[i], program.outputs()[i].name));
  }
  return {};
}

// ONNX leaves open which numbers those are.
bool HasRandomNumbers(const Program& program) {
  return std::ranges::any_of(program.graph().nodes, [](const Node& node) {
    return node.op.starts_with("Random") || node.op == "Bernoulli" || node.op == "Multinomial";
  });
}

Status RunCase(const fs::path& folder, Stream& stream) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program, ReadProgram(folder / "model.onnx"));
  if (HasRandomNumbers(*program)) return Unimplemented("the case's numbers are random");
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) SWIZZLE_RETURN_IF_ERROR(RunDataSet(*program, entry.path(), stream));
  }
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
  std::vector<fs::path> cases;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / name)) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  for (const fs::path& path : cases) {
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
               "What the fallback executor does with the test cases of Debian's `libonnx-testdata`. Written by\n"
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
  const bool table = argc == 3 && std::string(argv[2]) == "--table";
  if (argc != 2 && !table) {
    std::cerr << "usage: onnx_node_tests FOLDER [--table]\n";
    return 2;
  }
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const auto stream = backend->NewStream(1);
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
}  // namespace swizzle::fallback

int main(int argc, char** argv) { return swizzle::fallback::Main(argc, argv); }
