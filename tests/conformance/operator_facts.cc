#include "tests/conformance/operator_facts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model_loader/files/read_file.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/semantics/strides.h"
#include "model_loader/shapes/symbolic_walk.h"
#include "onnx/onnx.pb.h"
#include "tests/conformance/node_case.h"
#include "tests/support/onnx_builder.h"

namespace swizzle::interpreter {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostModelBytes = int64_t{1} << 30;

// Sizes that a text stands for are one number in a run, whatever values have them.
class Sizes {
 public:
  bool Agree(const SymbolicShape& known, const Shape& shape) {
    if (known.size() != shape.size()) return false;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (known[d].Number().value_or(shape[d]) != shape[d]) return false;
      if (sizes_.emplace(known[d].Text(), shape[d]).first->second != shape[d]) return false;
    }
    return true;
  }

 private:
  std::map<std::string, int64_t> sizes_;
};

std::string TextOf(const SymbolicShape& shape) {
  std::string text = "[";
  for (const SymbolicInt& size : shape) text += " " + size.Text();
  return text + " ]";
}

// A model in one form, and what is known of it.
class Held {
 public:
  Held(std::shared_ptr<const Program> program, Stream& stream, std::set<std::string>& operators)
      : program_(std::move(program)), graph_(program_->graph()), stream_(stream), operators_(operators), walk_(graph_) {
    for (const Node& node : graph_.nodes) walk_.Visit(node);
    if (graph_.nodes.size() == 1) node_ = &graph_.nodes.front();
    if (node_ != nullptr) row_ = FindOnnxOperator(node_->domain, node_->op);
  }

  const Program& program() const { return *program_; }

  // Errors say what is wrong. Data that the model does not take says nothing.
  Status Check(const std::vector<Tensor>& inputs) const {
    const auto outputs = Run(inputs);
    if (!outputs.ok()) return {};
    SWIZZLE_RETURN_IF_ERROR(CheckWalk(inputs, *outputs));
    SWIZZLE_RETURN_IF_ERROR(CheckWithoutElements(inputs, *outputs));
    if (row_ == nullptr || outputs->empty() || graph_.outputs[0].value != node_->outputs[0]) return {};
    SWIZZLE_RETURN_IF_ERROR(CheckResult(inputs, outputs->front()));
    SWIZZLE_RETURN_IF_ERROR(CheckRows(inputs, outputs->front()));
    for (size_t i = 0; i < node_->inputs.size(); ++i) SWIZZLE_RETURN_IF_ERROR(CheckElements(inputs, i, *outputs));
    operators_.insert(node_->op);
    return {};
  }

  // With twice as many rows in all inputs but settings; nothing where they have none.
  std::optional<std::vector<Tensor>> Doubled(std::vector<Tensor> inputs) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_setting = row_ != nullptr && IsSetting(graph_.inputs[i]);
      Tensor& tensor = inputs[i];
      if (is_setting || tensor.dtype == DType::kString || tensor.shape.empty()) continue;
      tensor.shape[0] *= 2;
      const std::vector<std::byte> once = tensor.bytes;
      tensor.bytes.insert(tensor.bytes.end(), once.begin(), once.end());
    }
    return inputs.empty() ? std::nullopt : std::optional(std::move(inputs));
  }

 private:
  StatusOr<std::vector<Array>> Run(const std::vector<Tensor>& inputs, const RunSupplies& supplies = {}) const {
    std::vector<TensorView> views;
    for (const Tensor& tensor : inputs) views.push_back({tensor.dtype, tensor.shape, tensor.bytes});
    return program_->Run(views, stream_, {}, nullptr, supplies);
  }

  bool IsSetting(int value) const {
    for (size_t i = 0; i < node_->inputs.size(); ++i) {
      if (node_->inputs[i] == value && row_->facts.IsSetting(i)) return true;
    }
    return false;
  }

  // Which of the graph's inputs the node's is, if it is one.
  std::optional<size_t> GivenAs(size_t input) const {
    const auto found = std::ranges::find(graph_.inputs, node_->Input(input));
    const bool is_given = node_->Input(input) != kNoValue && found != graph_.inputs.end();
    return is_given ? std::optional(static_cast<size_t>(found - graph_.inputs.begin())) : std::nullopt;
  }

  Status CheckWalk(const std::vector<Tensor>& inputs, const std::vector<Array>& outputs) const {
    Sizes sizes;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const SymbolicValue& known = walk_.Of(graph_.inputs[i]);
      if (known.shape) sizes.Agree(*known.shape, inputs[i].shape);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const SymbolicValue& known = walk_.Of(graph_.outputs[i].value);
      if (known.dtype && *known.dtype != outputs[i].dtype) {
        return InvalidArgument("output ", i, " is ", DTypeName(outputs[i].dtype), ", not ", DTypeName(*known.dtype));
      }
      if (known.shape && !sizes.Agree(*known.shape, outputs[i].shape)) {
        return InvalidArgument("output ", i, " is ", ShapeText(outputs[i].shape), ", not ", TextOf(*known.shape));
      }
    }
    return {};
  }

  // A node of which nobody looks at the elements makes results of the same types and shapes.
  Status CheckWithoutElements(const std::vector<Tensor>& inputs, const std::vector<Array>& outputs) const {
    if (node_ == nullptr) return {};
    const std::vector<bool> all(graph_.nodes.size(), true);
    const auto made = Run(inputs, {.without_elements = &all});
    SWIZZLE_RETURN_IF_ERROR(Annotate(made.status(), "without elements"));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if ((*made)[i].dtype == outputs[i].dtype && (*made)[i].shape == outputs[i].shape) continue;
      return InvalidArgument("without elements output ", i, " is ", ShapeText((*made)[i].shape), ", not ",
                             ShapeText(outputs[i].shape));
    }
    return {};
  }

  Status CheckResult(const std::vector<Tensor>& inputs, const Array& result) const {
    const auto first = GivenAs(0);
    if (row_->facts.KeepsShape() && first && inputs[*first].shape != result.shape) {
      return InvalidArgument("it does not keep the shape ", ShapeText(inputs[*first].shape));
    }
    const ResultType type = row_->facts.Type();
    const auto like = type.Input() ? GivenAs(*type.Input()) : std::nullopt;
    const auto dtype = like ? std::optional(inputs[*like].dtype) : type.Fixed();
    if (dtype && *dtype != result.dtype && !node_->attributes.contains("output_dtype")) {
      return InvalidArgument("it is ", DTypeName(result.dtype), ", not ", DTypeName(*dtype));
    }
    if (row_->interpreter.rows != RowRule::kElementwise || graph_.opset < 7) return {};
    std::vector<Shape> shapes;
    for (size_t i = 0; i < node_->inputs.size(); ++i) {
      const auto given = GivenAs(i);
      if (!given) return {};
      shapes.push_back(inputs[*given].shape);
    }
    const StatusOr<Shape> broadcast = BroadcastShape(shapes);
    return broadcast.ok() && *broadcast == result.shape ? Status() : InvalidArgument("its inputs do not broadcast so");
  }

  // Other elements in place of those of row 0, or of the first element, change that of the result alone.
  Status CheckRows(const std::vector<Tensor>& inputs, const Array& result) const {
    const RowRule rule = row_->interpreter.rows;
    const bool by_element = rule == RowRule::kElementwise;
    if (!by_element && rule != RowRule::kFirstInput && rule != RowRule::kAllInputs) return {};
    const auto given = GivenAs(0);
    if (!given || result.dtype == DType::kString || inputs[*given].dtype == DType::kString) return {};
    const Shape& shape = inputs[*given].shape;
    if (shape.empty() || result.shape.empty() || shape[0] != result.shape[0] || shape[0] < 2) return {};
    if (by_element && shape != result.shape) return {};
    if (rule == RowRule::kAllInputs && node_->inputs.size() > 1 && GivenAs(1) == given) return {};
    const auto parts = static_cast<size_t>(by_element ? inputs[*given].elements() : shape[0]);
    std::vector<Tensor> others = inputs;
    std::vector<std::byte>& bytes = others[*given].bytes;
    const size_t part = bytes.size() / parts;
    std::copy(bytes.end() - static_cast<ptrdiff_t>(part), bytes.end(), bytes.begin());
    const auto outputs = Run(others);
    if (!outputs.ok()) return {};
    const size_t changed = result.bytes() / parts;
    return std::ranges::equal(outputs->front().AsBytes().subspan(changed), result.AsBytes().subspan(changed))
               ? Status()
               : InvalidArgument("another ", by_element ? "element" : "row", " changes with the first");
  }

  // Elements in other places, and the last of them in all places, leave sizes, and what goes by shapes alone.
  Status CheckElements(const std::vector<Tensor>& inputs, size_t input, const std::vector<Array>& outputs) const {
    const auto given = GivenAs(input);
    if (!given || row_->facts.DecidesSizes(input) || inputs[*given].dtype == DType::kString) return {};
    const auto element = static_cast<ptrdiff_t>(ElementBytes(inputs[*given].dtype));
    std::vector<Tensor> turned = inputs, filled = inputs;
    std::vector<std::byte>&turned_bytes = turned[*given].bytes, &filled_bytes = filled[*given].bytes;
    if (std::ssize(turned_bytes) < 2 * element) return {};
    std::rotate(turned_bytes.begin(), turned_bytes.begin() + element, turned_bytes.end());
    for (auto at = filled_bytes.begin(); at + element != filled_bytes.end(); at += element) {
      std::copy(filled_bytes.end() - element, filled_bytes.end(), at);
    }
    SWIZZLE_RETURN_IF_ERROR(CheckOthers(turned, input, outputs));
    return CheckOthers(filled, input, outputs);
  }

  Status CheckOthers(const std::vector<Tensor>& others, size_t input, const std::vector<Array>& outputs) const {
    const auto made = Run(others);
    if (!made.ok()) return {};
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].IsLeftOut() && (*made)[i].shape != outputs[i].shape) {
        return InvalidArgument("elements of input ", input, " decide how large output ", i, " is");
      }
    }
    const bool same = std::ranges::equal((*made)[0].AsBytes(), outputs[0].AsBytes());
    return row_->facts.DecidesResults() || same ? Status() : InvalidArgument("its results go by elements");
  }

  const std::shared_ptr<const Program> program_;
  const Graph& graph_;
  Stream& stream_;
  std::set<std::string>& operators_;
  SymbolicWalk walk_;
  const Node* node_ = nullptr;         // the only one
  const OnnxOperator* row_ = nullptr;  // its row
};

StatusOr<std::string> BytesOf(const onnx::ModelProto& model) {
  std::string bytes;
  return model.SerializeToString(&bytes) ? StatusOr<std::string>(std::move(bytes)) : InvalidArgument("it is too large");
}

void FreeSizes(onnx::ModelProto& model) {
  const auto free = [](onnx::ValueInfoProto& port) {
    if (!port.type().has_tensor_type()) return;
    for (auto& size : *port.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) size.Clear();
  };
  for (auto& input : *model.mutable_graph()->mutable_input()) free(input);
  for (auto& output : *model.mutable_graph()->mutable_output()) free(output);
}

Status HoldCase(const fs::path& folder, Stream& stream, std::set<std::string>& operators) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> file, ReadFile(folder / "model.onnx", kMostModelBytes));
  onnx::ModelProto model;
  if (!model.ParseFromArray(file.data(), static_cast<int>(file.size()))) return InvalidArgument("it is no model");
  for (const bool is_free : {false, true}) {
    if (is_free) FreeSizes(model);
    SWIZZLE_ASSIGN_OR_RETURN(const std::string bytes, BytesOf(model));
    auto program = ReadProgram(std::as_bytes(std::span(bytes)));
    if (!program.ok() || HasRandomNumbers(**program)) continue;
    const Held held(*std::move(program), stream, operators);
    for (const fs::path& data_set : DataSetsOf(folder)) {
      const auto inputs = InputsOf(data_set, held.program());
      if (!inputs.ok()) continue;
      SWIZZLE_RETURN_IF_ERROR(held.Check(*inputs));
      const auto doubled = is_free ? held.Doubled(*inputs) : std::nullopt;
      if (doubled) SWIZZLE_RETURN_IF_ERROR(Annotate(held.Check(*doubled), "with twice as many rows"));
    }
  }
  return {};
}

// Inputs but for the first: scales and lists of FP32, an axis, UINT8 numbers and lists.
using Given = std::variant<float, std::vector<float>, int64_t, uint8_t, std::vector<uint8_t>>;

// y = op(x, ...) of an input [3, 4] of FP32, or of UINT8 in com.microsoft; more inputs are constants.
struct OwnCase {
  std::string op;
  int64_t opset;
  std::map<std::string, Attribute> attributes = {};
  std::vector<Given> inputs = {};
  bool is_microsoft = false;
};

void AddGiven(const std::string& name, const Given& given, swizzle::testing::OnnxBuilder& builder) {
  if (const auto* const number = std::get_if<float>(&given)) builder.Floats(name, {}, {*number});
  if (const auto* const list = std::get_if<std::vector<float>>(&given))
    builder.Floats(name, {std::ssize(*list)}, *list);
  if (const auto* const number = std::get_if<int64_t>(&given)) builder.Int64s(name, {}, {*number});
  const auto* const byte = std::get_if<uint8_t>(&given);
  const auto* const bytes = std::get_if<std::vector<uint8_t>>(&given);
  if (byte == nullptr && bytes == nullptr) return;
  onnx::TensorProto& tensor = *builder.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::UINT8);
  if (bytes != nullptr) tensor.add_dims(std::ssize(*bytes));
  for (const uint8_t each : bytes != nullptr ? *bytes : std::vector<uint8_t>{*byte}) tensor.add_int32_data(each);
}

// Operators that have no case, or whose numbers are random, and follow a seed here.
std::vector<OwnCase> OwnCases() {
  const std::map<std::string, Attribute> seeded = {{"seed", 7.0f}};
  constexpr uint8_t kZero = 100;
  const std::vector<uint8_t> kBytes = {3, 140, 90, 255};
  return {{"BitCast", 26, {{"to", int64_t{onnx::TensorProto::INT32}}}},
          {"Bernoulli", 22, seeded},
          {"CumProd", 26, {}, {int64_t{1}}},
          {"Identity", 16},
          {"Multinomial", 22, {{"seed", 7.0f}, {"sample_size", int64_t{5}}}},
          {"RandomNormalLike", 22, seeded},
          {"RandomUniformLike", 22, seeded},
          {"QLinearAdd", 17, {}, {.1f, kZero, kBytes, .2f, kZero, .3f, kZero}, true},
          {"QLinearLeakyRelu", 17, {}, {.1f, kZero, .2f, kZero}, true},
          {"QLinearMul", 17, {}, {.1f, kZero, kBytes, .2f, kZero, .3f, kZero}, true},
          {"QLinearSigmoid", 17, {}, {.1f, kZero, .01f, kZero}, true},
          {"SimplifiedLayerNormalization", 17, {}, {std::vector<float>{1, 2, 3, 4}}}};
}

Tensor DrawnInput(const OwnCase& test_case) {
  const Shape shape = {3, 4};
  std::vector<float> numbers(12);
  std::vector<std::byte> bytes(12);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(i % 5) / 8.0f + 0.1f;
    bytes[i] = static_cast<std::byte>(i * 37 % 256);
  }
  return test_case.is_microsoft ? Tensor{DType::kUint8, shape, bytes} : Tensor::Floats(shape, numbers);
}

std::vector<std::byte> ModelOf(const OwnCase& test_case, const Shape& shape) {
  swizzle::testing::OnnxBuilder builder(test_case.opset);
  builder.Input("x", shape);
  std::vector<std::string> names = {"x"};
  for (const Given& given : test_case.inputs) {
    names.push_back(Concat("input", names.size()));
    AddGiven(names.back(), given, builder);
  }
  if (test_case.is_microsoft) {
    builder.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::UINT8);
    builder.MicrosoftNode(test_case.op, names, {"y"}, test_case.attributes).Output("y");
    builder.graph().mutable_output(0)->clear_type();
  } else {
    builder.Node(test_case.op, names, {"y"}, test_case.attributes).Output("y");
  }
  return builder.Bytes();
}

Status HoldOwnCase(const OwnCase& test_case, Stream& stream, std::set<std::string>& operators) {
  const std::vector<Tensor> inputs = {DrawnInput(test_case)};
  for (const bool is_free : {false, true}) {
    const std::vector<std::byte> model = ModelOf(test_case, is_free ? Shape{-1, -1} : inputs.front().shape);
    SWIZZLE_ASSIGN_OR_RETURN(auto program, ReadProgram(std::span<const std::byte>(model)));
    const Held held(std::move(program), stream, operators);
    SWIZZLE_RETURN_IF_ERROR(held.Check(inputs));
    if (is_free) SWIZZLE_RETURN_IF_ERROR(held.Check(*held.Doubled(inputs)));
  }
  return {};
}

}  // namespace

bool HoldFacts(const fs::path& folder, Stream& stream, std::ostream& out) {
  std::set<std::string> operators;
  int cases = 0, wrong = 0;
  const auto count = [&](const std::string& name, const Status& status) {
    ++cases;
    if (status.ok()) return;
    ++wrong;
    out << name << ": " << status.message() << "\n";
  };
  for (const char* const suite : kSuites) {
    for (const fs::path& path : CasesOf(folder, suite)) {
      count(path.filename().string(), HoldCase(path, stream, operators));
    }
  }
  for (const OwnCase& own : OwnCases()) count(own.op, HoldOwnCase(own, stream, operators));
  out << cases << " cases, " << operators.size() << " operators held, " << wrong << " wrong\n";
  out << "in no case:";
  for (const OnnxOperator& row : OnnxOperators()) {
    const std::string op(row.spec.op);
    if (row.spec.domain.empty() && row.interpreter.Runs() && !operators.contains(op)) out << " " << op;
  }
  out << "\n";
  return wrong == 0;
}

}  // namespace swizzle::interpreter
