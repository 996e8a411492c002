#include "tests/support/graph_text.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "model_loader/semantics/element_types.h"

namespace swizzle::testing {
namespace {

constexpr std::string_view kFloatAttributes[] = {"alpha", "beta",  "epsilon",     "high",  "low",   "max",  "min",
                                                 "ratio", "scale", "value_float", "value", "lambd", "gamma"};

StatusOr<DType> TypeOfName(std::string_view name) {
  const auto dtype = DTypeFromName(name);
  if (!dtype) return InvalidArgument("there is no type '", std::string(name), "'");
  return *dtype;
}

float FloatOf(std::string_view text) { return std::strtof(std::string(text).c_str(), nullptr); }
int64_t IntOf(std::string_view text) { return std::strtoll(std::string(text).c_str(), nullptr, 10); }

// Reads one line from left to right; what does not fit makes it fail for good.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}

  bool failed() const { return failed_; }
  bool AtEnd() const { return rest_.empty(); }
  bool At(std::string_view text) const { return rest_.starts_with(text); }
  bool Skip(std::string_view text) {
    if (!At(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void Expect(std::string_view text) {
    if (!Skip(text)) failed_ = true;
  }
  // Up to the first of `ends`, which stays.
  std::string_view Until(std::string_view ends) {
    const std::string_view taken = rest_.substr(0, std::min(rest_.find_first_of(ends), rest_.size()));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // Between `open` and `close`, apart at commas; nothing between them is no element.
  std::vector<std::string_view> List(std::string_view open, std::string_view close) {
    std::vector<std::string_view> elements;
    Expect(open);
    while (!failed_ && !Skip(close)) {
      elements.push_back(Until(std::string(",") + std::string(close)));
      if (!Skip(",") && !At(close)) failed_ = true;
    }
    return elements;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

Tensor Filled(DType dtype, Shape shape, const std::vector<std::string_view>* elements) {
  const int64_t count = *ElementCount(shape);
  Tensor tensor{dtype, std::move(shape), std::vector<std::byte>(static_cast<size_t>(count) * ElementBytes(dtype))};
  VisitElementType(dtype, [&]<typename T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      T element = Narrowed<T>(i + 1);
      if (elements != nullptr && at < elements->size()) {
        element = IsFloating(dtype) ? Narrowed<T>(FloatOf((*elements)[at])) : Narrowed<T>(IntOf((*elements)[at]));
      }
      std::memcpy(tensor.bytes.data() + at * sizeof(T), &element, sizeof(T));
    }
  });
  return tensor;
}

class Parser {
 public:
  explicit Parser(int64_t opset) { graph_.opset = opset; }

  StatusOr<Graph> Run(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.empty()) continue;
      Cursor cursor(line);
      SWIZZLE_RETURN_IF_ERROR(ParseLine(cursor));
      if (cursor.failed() || !cursor.AtEnd()) return InvalidArgument("this is no line of a graph: ", std::string(line));
    }
    return std::move(graph_);
  }

 private:
  Status ParseLine(Cursor& cursor) {
    if (cursor.Skip("input ")) return ParseInput(cursor);
    if (cursor.Skip("constant ")) return ParseConstant(cursor);
    if (cursor.Skip("output ")) return ParseOutput(cursor);
    return ParseNode(cursor);
  }

  StatusOr<Value> ParseType(Cursor& cursor) {
    Value value;
    SWIZZLE_ASSIGN_OR_RETURN(value.dtype, TypeOfName(cursor.Until("[")));
    if (cursor.Skip("[?]")) return value;
    value.shape.emplace();
    for (const std::string_view dimension : cursor.List("[", "]")) {
      value.shape->push_back(dimension == "N" ? kFreeBatch : IntOf(dimension));
    }
    return value;
  }

  Status ParseInput(Cursor& cursor) {
    const std::string_view name = cursor.Until(":");
    cursor.Expect(": ");
    SWIZZLE_ASSIGN_OR_RETURN(Value value, ParseType(cursor));
    graph_.inputs.push_back(Define(name, std::move(value)));
    return {};
  }

  StatusOr<Tensor> ParseTensor(Cursor& cursor) {
    SWIZZLE_ASSIGN_OR_RETURN(const Value type, ParseType(cursor));
    if (!type.shape || !ElementCount(*type.shape).ok()) return InvalidArgument("a constant has no fixed shape");
    if (!cursor.Skip(" = ")) return Filled(type.dtype, *type.shape, nullptr);
    const auto elements = cursor.List("{", "}");
    return Filled(type.dtype, *type.shape, &elements);
  }

  Status ParseConstant(Cursor& cursor) {
    const std::string_view name = cursor.Until(":");
    cursor.Expect(": ");
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ParseTensor(cursor));
    Value value{"", tensor.dtype, tensor.shape, std::nullopt};
    value.constant = std::move(tensor);
    Define(name, std::move(value));
    return {};
  }

  Status ParseOutput(Cursor& cursor) {
    cursor.Expect("\"");
    const std::string name(cursor.Until("\""));
    cursor.Expect("\" = ");
    SWIZZLE_ASSIGN_OR_RETURN(const int value, Find(cursor.Until("")));
    graph_.outputs.push_back({name, value});
    return {};
  }

  Status ParseNode(Cursor& cursor) {
    Node node;
    std::vector<std::string_view> outputs = {cursor.Until(", ")};
    while (cursor.Skip(",")) outputs.push_back(cursor.Until(", "));
    cursor.Expect(" = ");
    const std::string op(cursor.Until("("));
    const size_t dot = op.rfind('.');
    if (dot != std::string::npos) node.domain = op.substr(0, dot);
    node.op = dot == std::string::npos ? op : op.substr(dot + 1);
    for (const std::string_view input : cursor.List("(", ")")) {
      SWIZZLE_ASSIGN_OR_RETURN(node.inputs.emplace_back(), Find(input));
    }
    if (cursor.Skip(" {")) SWIZZLE_RETURN_IF_ERROR(ParseAttributes(cursor, node));
    cursor.Expect(" \"");
    node.name = cursor.Until("\"");
    cursor.Expect("\" -> ");
    for (size_t i = 0; i < outputs.size() && !cursor.failed(); ++i) {
      if (i > 0) cursor.Expect(",");
      if (outputs[i] == "_") {
        cursor.Expect("_");
        node.outputs.push_back(kNoValue);
        continue;
      }
      SWIZZLE_ASSIGN_OR_RETURN(Value value, ParseType(cursor));
      node.outputs.push_back(Define(outputs[i], std::move(value)));
    }
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  Status ParseAttributes(Cursor& cursor, Node& node) {
    while (!cursor.failed() && !cursor.Skip("}")) {
      const std::string name(cursor.Until("="));
      cursor.Expect("=");
      SWIZZLE_ASSIGN_OR_RETURN(node.attributes[name], ParseAttribute(cursor, name));
      if (!cursor.Skip(",") && !cursor.At("}")) return InvalidArgument("attribute '", name, "' does not end");
    }
    return {};
  }

  StatusOr<Attribute> ParseAttribute(Cursor& cursor, const std::string& name) {
    if (cursor.Skip("\"")) {
      const std::string text(cursor.Until("\""));
      cursor.Expect("\"");
      return Attribute(text);
    }
    if (cursor.At("[")) {
      const auto elements = cursor.List("[", "]");
      std::vector<int64_t> integers;
      std::vector<float> floats;
      for (const std::string_view element : elements) {
        integers.push_back(IntOf(element));
        floats.push_back(FloatOf(element));
      }
      return name == "value_floats" ? Attribute(floats) : Attribute(integers);
    }
    if (cursor.At("FP") || cursor.At("INT") || cursor.At("BOOL") || cursor.At("UINT")) {
      SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ParseTensor(cursor));
      return Attribute(std::move(tensor));
    }
    const std::string_view number = cursor.Until(",}");
    const bool is_float =
        std::find(std::begin(kFloatAttributes), std::end(kFloatAttributes), name) != std::end(kFloatAttributes);
    return is_float ? Attribute(FloatOf(number)) : Attribute(IntOf(number));
  }

  int Define(std::string_view name, Value value) {
    value.name = name.substr(std::min<size_t>(name.size(), 1));  // without %
    return values_[std::string(name)] = graph_.AddValue(std::move(value));
  }

  StatusOr<int> Find(std::string_view name) const {
    if (name == "_") return kNoValue;
    const auto found = values_.find(std::string(name));
    if (found != values_.end()) return found->second;
    return InvalidArgument("nothing before it makes ", std::string(name));
  }

  Graph graph_;
  std::map<std::string, int> values_;  // by name, with %
};

}  // namespace

StatusOr<Graph> ParseGraph(std::string_view text, int64_t opset) { return Parser(opset).Run(text); }

}  // namespace swizzle::testing
