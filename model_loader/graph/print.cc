#include "model_loader/graph/print.h"

#include <charconv>
#include <cstring>
#include <sstream>

namespace swizzle {
namespace {

constexpr int64_t kMaxPrintedElements = 8;

template <typename Range, typename Function>
std::string Join(const Range& range, const Function& text) {
  std::string joined;
  for (const auto& element : range) joined += (joined.empty() ? "" : ",") + text(element);
  return joined;
}

std::string Number(float value) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}
std::string Whole(int64_t value) { return Concat(value); }

std::string TypeText(const Value& value) {
  if (!value.shape) return Concat(DTypeName(value.dtype), "[?]");
  const auto dimension = [](int64_t d) { return d == kFreeBatch ? std::string("N") : Whole(d); };
  return Concat(DTypeName(value.dtype), "[", Join(*value.shape, dimension), "]");
}

// " as INT8{0.5,0.25|3,4} axis 0": of a value that is quantised, its type, scales, and zero points where there are
// some. " from " where requests bring it so.
std::string WholesText(const Value& value) {
  if (!value.wholes) return "";
  const char* const as = value.arrives_whole ? " from " : " as ";
  const auto& [dtype, scales, zero_points] = value.wholes->quantisation;
  std::string text = Concat(as, DTypeName(dtype), "{", Join(scales, Number));
  if (!zero_points.empty()) text += "|" + Join(zero_points, Whole);
  return text + "}" + (scales.size() > 1 ? Concat(" axis ", value.wholes->axis) : "");
}

template <typename T>
std::vector<T> ElementsOf(const Tensor& tensor) {
  std::vector<T> elements(tensor.bytes.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), tensor.bytes.data(), tensor.bytes.size());
  return elements;
}

// " = {1,2}", or nothing where there are many elements or another type.
std::string ElementsText(const Tensor& tensor) {
  if (tensor.elements() > kMaxPrintedElements) return "";
  if (tensor.dtype == DType::kFloat32) return " = {" + Join(tensor.floats(), Number) + "}";
  if (tensor.dtype == DType::kInt64) return " = {" + Join(ElementsOf<int64_t>(tensor), Whole) + "}";
  if (tensor.dtype == DType::kInt32) return " = {" + Join(ElementsOf<int32_t>(tensor), Whole) + "}";
  if (tensor.dtype == DType::kInt8) return " = {" + Join(ElementsOf<int8_t>(tensor), Whole) + "}";
  if (tensor.dtype == DType::kUint8) return " = {" + Join(ElementsOf<uint8_t>(tensor), Whole) + "}";
  return "";
}

struct AttributeText {
  std::string operator()(int64_t value) const { return Whole(value); }
  std::string operator()(float value) const { return Number(value); }
  std::string operator()(const std::string& value) const { return "\"" + value + "\""; }
  std::string operator()(const std::vector<int64_t>& values) const { return "[" + Join(values, Whole) + "]"; }
  std::string operator()(const std::vector<float>& values) const { return "[" + Join(values, Number) + "]"; }
  std::string operator()(const std::vector<std::string>& values) const {
    return "[" + Join(values, [](const std::string& value) { return "\"" + value + "\""; }) + "]";
  }
  std::string operator()(const std::shared_ptr<const Body>& body) const {
    return Concat("graph of ", body->graph.nodes.size(), " nodes");
  }
  std::string operator()(const Tensor& tensor) const {
    return Concat(DTypeName(tensor.dtype), ShapeText(tensor.shape), ElementsText(tensor));
  }
};

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string Run() {
    for (int input : graph_.inputs) {
      const Value& value = graph_.values[input];
      out_ << "input " << Name(input) << ": " << TypeText(value) << WholesText(value) << "\n";
    }
    for (size_t i = 0; i < graph_.values.size(); ++i) PrintConstant(static_cast<int>(i));
    for (const Node& node : graph_.nodes) PrintNode(node);
    for (const GraphOutput& output : graph_.outputs) {
      out_ << "output \"" << output.name << "\" = " << Name(output.value) << "\n";
    }
    return out_.str();
  }

 private:
  std::string Name(int value) const { return value == kNoValue ? "_" : "%" + graph_.values[value].name; }

  void PrintConstant(int value) {
    if (!graph_.IsConstant(value)) return;
    out_ << "constant " << Name(value) << ": " << TypeText(graph_.values[value])
         << ElementsText(*graph_.values[value].constant) << WholesText(graph_.values[value]) << "\n";
  }

  void PrintNode(const Node& node) {
    const auto name = [this](int value) { return Name(value); };
    out_ << Join(node.outputs, name) << " = " << (node.domain.empty() ? "" : node.domain + ".") << node.op << "("
         << Join(node.inputs, name) << ")";
    if (!node.attributes.empty()) {
      const auto attribute = [](const auto& a) { return a.first + "=" + std::visit(AttributeText(), a.second); };
      out_ << " {" << Join(node.attributes, attribute) << "}";
    }
    const auto type = [this](int value) {
      return value == kNoValue ? "_" : TypeText(graph_.values[value]) + WholesText(graph_.values[value]);
    };
    out_ << " \"" << node.name << "\" -> " << Join(node.outputs, type) << "\n";
  }

  const Graph& graph_;
  std::ostringstream out_;
};

}  // namespace

std::string Print(const Graph& graph) { return Printer(graph).Run(); }

}  // namespace swizzle
