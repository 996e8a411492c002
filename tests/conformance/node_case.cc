#include "tests/conformance/node_case.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "model_loader/load/loader.h"
#include "model_loader/onnx/proto_values.h"

namespace swizzle::interpreter {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

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

// ONNX's Python writes BF16 as UINT16. Some of those cases have data that their own models don't allow.
Status CorrectTensor(const Port& port, Tensor& tensor) {
  if (port.dtype == DType::kBFloat16 && tensor.dtype == DType::kUint16) tensor.dtype = DType::kBFloat16;
  bool fits = !port.shape || port.shape->size() == tensor.shape.size();
  for (size_t d = 0; fits && port.shape && d < tensor.shape.size(); ++d) {
    fits = (*port.shape)[d] == -1 || (*port.shape)[d] == tensor.shape[d];
  }
  return fits ? Status() : Unimplemented("the case's data has another shape than its model declares");
}

StatusOr<std::vector<Tensor>> CorrectTensors(const fs::path& folder, const std::string& kind,
                                             std::span<const Port> ports) {
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<Tensor> tensors, ReadTensors(folder, kind, ports.size()));
  for (size_t i = 0; i < tensors.size(); ++i) SWIZZLE_RETURN_IF_ERROR(CorrectTensor(ports[i], tensors[i]));
  return tensors;
}

std::vector<fs::path> Sorted(const fs::path& folder, bool folders_only) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() || !folders_only) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::vector<fs::path> CasesOf(const fs::path& folder, const std::string& suite) {
  return Sorted(folder / suite, false);
}

std::vector<fs::path> DataSetsOf(const fs::path& test_case) { return Sorted(test_case, true); }

StatusOr<std::vector<Tensor>> InputsOf(const fs::path& data_set, const Program& program) {
  return CorrectTensors(data_set, "input", program.inputs());
}

StatusOr<std::vector<Tensor>> OutputsOf(const fs::path& data_set, const Program& program) {
  return CorrectTensors(data_set, "output", program.outputs());
}

bool HasRandomNumbers(const Program& program) {
  return std::ranges::any_of(program.graph().nodes, [](const Node& node) {
    return node.op.starts_with("Random") || node.op == "Bernoulli" || node.op == "Multinomial";
  });
}

}  // namespace swizzle::interpreter
