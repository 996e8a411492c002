#include "model_loader/regions/region.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "model_loader/graph/operators.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/semantics/affine.h"
#include "model_loader/semantics/axes.h"

namespace swizzle::regions {
namespace {

// The operators that compute vectors along the last dimension one by one, beside arithmetic, whose constants broadcast.
constexpr std::array<std::string_view, 9> kOfVectors = {"Clip",   "Gemm", "HardSigmoid", "HardSwish", "LeakyRelu",
                                                        "MatMul", "Relu", "Sigmoid",     "Softmax"};

// Makes a region's graph. Used once.
class Extraction {
 public:
  Extraction(const Graph& graph, const Survey& survey, const Region& region)
      : graph_(graph), survey_(survey), region_(region) {}

  StatusOr<Graph> Run() {
    made_.name = graph_.name;
    made_.producer = graph_.producer;
    made_.opset = graph_.opset;
    for (const int input : region_.inputs) {
      made_.inputs.push_back(AddValue(input));
      made_.values.back().dtype = survey_.dtypes[static_cast<size_t>(input)];
      Shape shape = RowShape(*survey_.shapes[static_cast<size_t>(input)], region_.form);
      shape.insert(shape.begin(), kFreeBatch);
      made_.values.back().shape = std::move(shape);
    }
    for (const int index : region_.nodes) {
      const Idiom* const idiom = survey_.IdiomOf(static_cast<size_t>(index));
      const Node& node = graph_.nodes[static_cast<size_t>(index)];
      if (idiom == nullptr) {
        SWIZZLE_RETURN_IF_ERROR(AddNode(node));
      } else if (idiom->op == "QuantizeLinear") {
        SWIZZLE_RETURN_IF_ERROR(CopyNode(node));
      } else if (index == idiom->nodes.back()) {
        SWIZZLE_RETURN_IF_ERROR(AddIdiom(*idiom));
      }
    }
    for (const int output : region_.outputs) {
      SWIZZLE_ASSIGN_OR_RETURN(const int real, IsOfBytes(output) ? RealOf(output) : values_.at(output));
      made_.outputs.push_back({made_.values[static_cast<size_t>(real)].name, real});
    }
    return std::move(made_);
  }

 private:
  bool IsOfBytes(int value) const { return survey_.dtypes[static_cast<size_t>(value)] == DType::kUint8; }

  // What the bytes of an output stand for, as the QuantizeLinear says that makes them.
  StatusOr<int> RealOf(int bytes) {
    const auto makes = [&](int index) { return graph_.nodes[static_cast<size_t>(index)].outputs[0] == bytes; };
    Node back = graph_.nodes[static_cast<size_t>(*std::ranges::find_if(region_.nodes, makes))];
    back.op = "DequantizeLinear";
    back.inputs[0] = values_.at(bytes);
    for (size_t i = 1; i < back.inputs.size(); ++i) {
      if (back.inputs[i] != kNoValue) back.inputs[i] = values_.at(back.inputs[i]);
    }
    Value real;
    real.name = Concat(made_.values[static_cast<size_t>(back.inputs[0])].name, ".real");
    back.outputs = {made_.AddValue(std::move(real))};
    back.attributes.clear();
    made_.nodes.push_back(std::move(back));
    return made_.nodes.back().outputs[0];
  }

  int AddValue(int value) {
    Value named;
    named.name = Concat(graph_.values[static_cast<size_t>(value)].name, "#", value);
    named.zeros = graph_.values[static_cast<size_t>(value)].zeros;
    made_.values.push_back(std::move(named));
    return values_[value] = static_cast<int>(made_.values.size()) - 1;
  }

  Status AddNode(const Node& from) {
    if (region_.form == Form::kVectors && !IsArithmetic(from.op) &&
        std::ranges::find(kOfVectors, from.op) == kOfVectors.end()) {
      return Unimplemented(Describe(from), " does not compute the vectors of its last dimension one by one");
    }
    return CopyNode(from);
  }

  Status CopyNode(const Node& from) {
    Node node = from;
    for (int& input : node.inputs) {
      if (input == kNoValue) continue;
      SWIZZLE_ASSIGN_OR_RETURN(input, ValueFor(from, input));
    }
    if (region_.form == Form::kVectors && from.op == "Softmax") {
      SWIZZLE_RETURN_IF_ERROR(CheckRunsAlongVectors(from));
      node.attributes["axis"] = int64_t{1};  // of [rows, channels]
    }
    node.outputs.assign(from.op == "Split" ? from.outputs.size() : 1, kNoValue);  // a Split counts them
    for (const int output : MadeValues(from, survey_)) {
      const auto place = std::ranges::find(from.outputs, output) - from.outputs.begin();
      node.outputs[static_cast<size_t>(place)] = AddValue(output);
    }
    made_.nodes.push_back(std::move(node));
    return {};
  }

  Status CheckRunsAlongVectors(const Node& softmax) const {
    const auto rank = static_cast<int64_t>(survey_.shapes[static_cast<size_t>(softmax.inputs[0])]->size());
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SoftmaxAxes(softmax, graph_.opset, rank));
    if (axes == std::vector{rank - 1}) return {};
    return Unimplemented(Describe(softmax), " does not run along the last dimension alone");
  }

  Status AddIdiom(const Idiom& idiom) {
    if (region_.form != Form::kVectors && idiom.op != "Function") {
      return Unimplemented("layer normalisation is of vectors");
    }
    const std::string& name = graph_.nodes[static_cast<size_t>(idiom.nodes.back())].name;
    Node node{idiom.op, std::string(kSwizzleDomain), name, {}, {}, idiom.attributes};
    node.inputs.push_back(values_.at(idiom.input));
    for (const int constant : idiom.constants) {
      node.inputs.push_back(made_.AddConstant(Concat(name, "#", constant), PerChannel(idiom, constant)));
    }
    node.outputs.push_back(AddValue(idiom.output));
    made_.nodes.push_back(std::move(node));
    return {};
  }

  Tensor PerChannel(const Idiom& idiom, int constant) const {
    if (constant == kNoValue) {
      const int64_t channels = survey_.shapes[static_cast<size_t>(idiom.input)]->back();
      return Tensor::Floats({channels}, std::vector<float>(static_cast<size_t>(channels)));
    }
    const interpreter::Array& array = survey_.known.at(constant);
    return Tensor::Floats({array.elements()}, array.As<float>());
  }

  StatusOr<int> ValueFor(const Node& node, int value) {
    if (const auto found = values_.find(value); found != values_.end()) return found->second;
    if (const Node* const wholes = WholesOf(node, value)) {
      SWIZZLE_RETURN_IF_ERROR(CopyNode(*wholes));
      return values_.at(value);
    }
    const interpreter::Array& array = survey_.known.at(value);
    SWIZZLE_ASSIGN_OR_RETURN(Shape shape, ConstantShape(node, array.shape));
    const auto bytes = array.AsBytes();
    Tensor tensor{array.dtype, std::move(shape), std::vector<std::byte>(bytes.begin(), bytes.end())};
    const std::string& name = graph_.values[static_cast<size_t>(value)].name;
    return values_[value] = made_.AddConstant(Concat(name, "#", value), std::move(tensor));
  }

  // What makes a weight of whole numbers; null where the value is none.
  const Node* WholesOf(const Node& reader, int value) const {
    const bool is_weight =
        (reader.op == "Conv" || reader.op == "Gemm" || reader.op == "MatMul") && reader.Input(1) == value;
    const int maker = is_weight ? survey_.MakerOf(value) : Survey::kOutside;
    if (maker == Survey::kOutside) return nullptr;
    const Node& node = graph_.nodes[static_cast<size_t>(maker)];
    const auto is_known = [&](int input) { return input == kNoValue || survey_.IsKnown(input); };
    const bool scales = node.op == "DequantizeLinear" && node.domain.empty();
    return scales && std::ranges::all_of(node.inputs, is_known) ? &node : nullptr;
  }

  // As one row of the region has it.
  StatusOr<Shape> ConstantShape(const Node& node, const Shape& shape) const {
    if (region_.form != Form::kVectors || !IsArithmetic(node.op) || shape.empty()) return shape;
    const bool is_vector = std::all_of(shape.begin(), shape.end() - 1, [](int64_t extent) { return extent == 1; });
    if (is_vector) return Shape{shape.back()};
    return Unimplemented(Describe(node), ": its constant of shape ", ShapeText(shape), " differs between vectors");
  }

  const Graph& graph_;
  const Survey& survey_;
  const Region& region_;
  Graph made_;
  std::map<int, int> values_;  // of graph_ -> of made_
};

// What is bytes in the program is bytes of the network.
Status SetPortTypes(const Survey& survey, const Region& region, Network& network) {
  for (size_t i = 0; i < region.inputs.size(); ++i) {
    if (network.inputs[i].dtype == survey.dtypes[static_cast<size_t>(region.inputs[i])]) continue;
    return Unimplemented("a region reads ", DTypeName(survey.dtypes[static_cast<size_t>(region.inputs[i])]), " as ",
                         DTypeName(network.inputs[i].dtype));
  }
  for (size_t i = 0; i < region.outputs.size(); ++i) {
    NetworkPort& port = network.outputs[i];
    const DType dtype = survey.dtypes[static_cast<size_t>(region.outputs[i])];
    if (dtype == DType::kFloat32) continue;
    const auto wholes = network.values[static_cast<size_t>(port.value)].quantisation;
    if (!wholes || wholes->dtype != dtype) return Unimplemented("a region does not end in ", DTypeName(dtype));
    port.dtype = dtype;
  }
  return {};
}

}  // namespace

Region MakeRegion(const Graph& graph, const Survey& survey, Form form, std::vector<int> nodes) {
  Region region{form, std::move(nodes), {}, {}};
  std::set<int> made;
  for (const int index : region.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(index)];
    for (const int input : node.inputs) {
      if (input == kNoValue || made.contains(input) || survey.IsKnown(input)) continue;
      if (std::ranges::find(region.inputs, input) == region.inputs.end()) region.inputs.push_back(input);
    }
    for (const int output : MadeValues(node, survey)) made.insert(output);
  }
  const auto is_outside = [&](int reader) {
    return reader == Survey::kOutside || !std::ranges::binary_search(region.nodes, reader);
  };
  for (const int value : made) {
    if (std::ranges::any_of(survey.readers[static_cast<size_t>(value)], is_outside)) region.outputs.push_back(value);
  }
  return region;
}

std::vector<int> MadeValues(const Node& node, const Survey& survey) {
  std::vector<int> made = {node.outputs[0]};
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    const int output = node.outputs[i];
    if (output != kNoValue && !survey.readers[static_cast<size_t>(output)].empty()) made.push_back(output);
  }
  return made;
}

bool IsActivation(const Survey& survey, int value, Form form) {
  const auto& shape = survey.shapes[static_cast<size_t>(value)];
  if (!shape || survey.IsKnown(value) || survey.dtypes[static_cast<size_t>(value)] != DType::kFloat32) return false;
  const size_t least = form == Form::kVectors ? 2 : 1;
  return shape->size() >= least && std::ranges::all_of(*shape, [](int64_t extent) { return extent > 0; });
}

bool HasKnownWeight(const Node& node, const Survey& survey) {
  const bool multiplies = node.op == "Conv" || node.op == "Gemm" || node.op == "MatMul";
  return multiplies && node.Input(1) != kNoValue && survey.IsKnown(node.inputs[1]);
}

Shape RowShape(const Shape& shape, Form form) {
  return form == Form::kVectors ? Shape{shape.back()} : Shape(shape.begin() + 1, shape.end());
}

StatusOr<Network> NetworkOf(const Graph& graph, const Survey& survey, const Region& region) {
  SWIZZLE_ASSIGN_OR_RETURN(Graph own, Extraction(graph, survey, region).Run());
  SWIZZLE_RETURN_IF_ERROR(RunRegionPasses(own));
  SWIZZLE_ASSIGN_OR_RETURN(Network network, Lower(std::move(own)));
  SWIZZLE_RETURN_IF_ERROR(SetPortTypes(survey, region, network));
  for (size_t i = 0; i < region.outputs.size(); ++i) {
    const auto& shape = survey.shapes[static_cast<size_t>(region.outputs[i])];
    if (!shape) continue;
    const Shape expected = RowShape(*shape, region.form);
    if (network.outputs[i].dims == expected) continue;
    return Unimplemented("a region makes rows of ", ShapeText(network.outputs[i].dims), " instead of ",
                         ShapeText(expected));
  }
  return network;
}

}  // namespace swizzle::regions
