// Network::Validate: ports, values, and what layers share; validate_layer.h has what each asks by itself.
#include <cmath>
#include <set>

#include "kernels/operator/count_zeros.h"
#include "model_loader/network/network.h"
#include "model_loader/network/validate_layer.h"

namespace swizzle {
namespace {

constexpr int64_t kMaxValueElements = int64_t{1} << 31;
constexpr int64_t kMaxBatchSize = int64_t{1} << 20;

Status ValidateValue(const NetworkValue& value, size_t index) {
  const int64_t extents[] = {value.channels, value.height, value.width};
  int64_t elements = 1;
  for (int64_t extent : extents) {
    if (extent < 1 || extent > kMaxExtent || extent > kMaxValueElements / elements) {
      return InvalidArgument("value ", index, " ('", value.name, "') has extent ", ExtentText(value),
                             "; extents are 1 to ", kMaxExtent, ", their product at most ", kMaxValueElements);
    }
    elements *= extent;
  }
  const std::string context = Concat("value ", index, " ('", value.name, "')");
  if (value.zeros) SWIZZLE_RETURN_IF_ERROR(Annotate(swizzle::Validate(*value.zeros), context));
  if (!value.quantisation) return {};
  if (value.ids) return InvalidArgument(context, " holds ids, which stand for no other numbers");
  return Annotate(value.quantisation->Validate(value.channels), context);
}

Status ValidateWeight(const Weight& weight) {
  SWIZZLE_RETURN_IF_ERROR(weight.matrix.Validate());
  if (!weight.bias.empty() && static_cast<int64_t>(weight.bias.size()) != weight.rows()) {
    return InvalidArgument("its bias has ", weight.bias.size(), " elements; its weight has ", weight.rows(), " rows");
  }
  if (!weight.quantisation) return {};
  if (!HasValues(weight.format())) return InvalidArgument("a pattern has no values to be quantised");
  return Annotate(weight.quantisation->Validate(weight.rows()), "its weight");
}

// Checks one network front to back, remembering which values exist and which weights are taken.
class Validator {
 public:
  explicit Validator(const Network& network)
      : network_(network), made_(network.values.size(), false), weight_used_(network.weights.size(), false) {}

  Status Run() {
    if (network_.batch_size < 0 || network_.batch_size > kMaxBatchSize) {
      return InvalidArgument("batch size ", network_.batch_size, " is not between 0 (free) and ", kMaxBatchSize);
    }
    for (size_t i = 0; i < network_.values.size(); ++i) {
      SWIZZLE_RETURN_IF_ERROR(ValidateValue(network_.values[i], i));
    }
    SWIZZLE_RETURN_IF_ERROR(CheckSequences());
    SWIZZLE_RETURN_IF_ERROR(CheckInputPorts());
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      const Layer& layer = network_.layers[i];
      SWIZZLE_RETURN_IF_ERROR(Annotate(CheckLayer(layer), Concat("layer ", i, " ('", layer.name, "')")));
    }
    SWIZZLE_RETURN_IF_ERROR(CheckAllUsed());
    SWIZZLE_RETURN_IF_ERROR(CheckLength());
    SWIZZLE_RETURN_IF_ERROR(CheckEnds());
    return CheckOutputPorts();
  }

 private:
  bool IsValue(int value) const { return value >= 0 && static_cast<size_t>(value) < network_.values.size(); }
  const NetworkValue& ValueAt(int value) const { return network_.values[value]; }

  // The port's dimensions without the batch.
  StatusOr<Shape> RowDims(const NetworkPort& port) const {
    if (network_.batch_size == 0) return port.dims;
    if (port.dims.empty() || port.dims[0] != network_.batch_size) {
      return InvalidArgument("its dimensions ", ShapeText(port.dims), " do not start with the batch size ",
                             network_.batch_size);
    }
    return Shape(port.dims.begin() + 1, port.dims.end());
  }

  Status CheckPort(const NetworkPort& port, std::set<std::string>& names) const {
    if (port.name.empty()) return InvalidArgument("it has no name");
    if (!names.insert(port.name).second) return InvalidArgument("its name is used twice");
    SWIZZLE_ASSIGN_OR_RETURN(const Shape dims, RowDims(port));
    if (port.value == -1 && network_.sequences) return CheckTokenDims(dims, 1, false);
    if (!IsValue(port.value)) return InvalidArgument("it names value ", port.value, ", which does not exist");
    const NetworkValue& value = ValueAt(port.value);
    if (value.per_token) return CheckTokenDims(dims, value.channels, !value.ids);
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(dims));
    if (elements == value.elements()) return {};
    return InvalidArgument("its dimensions ", ShapeText(port.dims), " have other elements than its value ",
                           ExtentText(value), network_.batch_size > 0 ? " times the batch size" : "");
  }

  // [length, and so many channels]; of regions, a fixed length may be several dimensions.
  Status CheckTokenDims(const Shape& dims, int64_t channels, bool may_split_length) const {
    const int64_t length = network_.sequences->length == 0 ? -1 : network_.sequences->length;
    auto rest = dims.begin();
    int64_t begin = rest == dims.end() ? 0 : *rest++;
    for (; may_split_length && rest != dims.end() && begin > 0 && begin < length && *rest <= length / begin; ++rest)
      begin *= *rest;
    if (begin != length) {
      return InvalidArgument("its dimensions ", ShapeText(dims), " do not start with the length of the sequences, ",
                             length);
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(Shape(rest, dims.end())));
    if (elements == channels) return {};
    return InvalidArgument("its dimensions ", ShapeText(dims), " have other elements than its ", channels, " channels");
  }

  Status CheckSequences() const {
    for (size_t i = 0; i < network_.values.size(); ++i) {
      const NetworkValue& value = network_.values[i];
      if (!value.per_token && !value.ids) continue;
      const bool matrix = value.height == 1 && value.width == 1;
      if (!network_.sequences || !value.per_token || !matrix || (value.ids && value.channels != 1)) {
        return InvalidArgument("value ", i, " ('", value.name, "') is no matrix of tokens");
      }
    }
    if (!network_.sequences) return {};
    const SequenceInputs& sequences = *network_.sequences;
    const bool is_mask = sequences.mask >= 0 && static_cast<size_t>(sequences.mask) < network_.inputs.size() &&
                         network_.inputs[sequences.mask].value == -1;
    if (sequences.mask != -1 && !is_mask) return InvalidArgument("input ", sequences.mask, " cannot be the mask");
    if (sequences.counted < -1 || sequences.counted >= static_cast<int>(network_.inputs.size())) {
      return InvalidArgument("positions count tokens of input ", sequences.counted, ", which there is not");
    }
    const int end = sequences.end.input;
    if (end != -1 && (end < 0 || static_cast<size_t>(end) >= network_.inputs.size() || end == sequences.mask ||
                      network_.inputs[end].dtype == DType::kFloat32)) {
      return InvalidArgument("input ", end, " cannot tell where sequences end");
    }
    if (sequences.length < 0 || sequences.length > kMaxExtent) {
      return InvalidArgument("the length of its sequences, ", sequences.length, ", is not between 0 (free) and ",
                             kMaxExtent);
    }
    if (sequences.longest < 0 || sequences.longest > kMaxExtent) {
      return InvalidArgument("the most tokens of its sequences, ", sequences.longest, ", are not between 0 (any) and ",
                             kMaxExtent);
    }
    if (std::isnan(sequences.masked_bias)) return InvalidArgument("its bias of masked keys is not a number");
    return {};
  }

  // Sequences that end before their rows do go with nothing that is of all places. REQUIRES: the layers are valid.
  Status CheckEnds() const {
    if (!network_.sequences || network_.sequences->end.input == -1) return {};
    for (const Layer& layer : network_.layers) {
      const bool is_of_all = (IsAttention(layer.op) && layer.attention().length > 0) ||
                             layer.op == Op::kPermuteTokens || layer.op == Op::kPlaneTokens;
      if (is_of_all) return InvalidArgument("layer '", layer.name, "' is of all places, and sequences have ends");
    }
    return {};
  }

  // Whether sequences of a fixed length have rows of all tables by position. REQUIRES: the layers are valid.
  Status CheckLength() const {
    if (!network_.sequences || network_.sequences->counted != -1) return {};
    const int64_t length = network_.sequences->length, limit = network_.LookupLimit(-1);
    if (limit == 0 || length <= limit) return {};
    return InvalidArgument("its sequences have ", length, " tokens, its tables rows for ", limit, " positions");
  }

  Status CheckInputPorts() {
    if (network_.inputs.empty()) return InvalidArgument("the network has no input");
    std::set<std::string> names;
    for (const NetworkPort& port : network_.inputs) {
      SWIZZLE_RETURN_IF_ERROR(Annotate(CheckPort(port, names), Concat("input '", port.name, "'")));
      SWIZZLE_RETURN_IF_ERROR(Annotate(CheckInputType(port), Concat("input '", port.name, "'")));
      if (port.value == -1) continue;
      if (made_[port.value]) return InvalidArgument("input '", port.name, "': another input has the same value");
      made_[port.value] = true;
    }
    return {};
  }

  // Sequences come as ids and masks, or, in regions, as activations and as the images that they are made of; everything
  // else comes as FP32 or as what its value may be stored as.
  Status CheckInputType(const NetworkPort& port) const {
    if (!network_.sequences) {
      if (port.dtype == DType::kFloat32) return {};
      if (port.dtype != DType::kUint8) {
        return InvalidArgument("it is ", DTypeName(port.dtype), "; only FP32 and UINT8 are known");
      }
      const auto& wholes = ValueAt(port.value).quantisation;
      if (wholes && wholes->per_tensor() && wholes->dtype == port.dtype) return {};
      return InvalidArgument("it is UINT8, which its value does not say how to read");
    }
    if (port.value != -1 && !ValueAt(port.value).ids) {
      if (port.dtype == DType::kFloat32) return {};
      return InvalidArgument("its value holds no ids");
    }
    if (port.dtype == DType::kInt64 || port.dtype == DType::kInt32) return {};
    return InvalidArgument("it is ", DTypeName(port.dtype), "; ids and masks are INT64 or INT32");
  }

  Status CheckOutputPorts() const {
    if (network_.outputs.empty()) return InvalidArgument("the network has no output");
    std::set<std::string> names;
    for (const NetworkPort& port : network_.outputs) {
      SWIZZLE_RETURN_IF_ERROR(Annotate(CheckPort(port, names), Concat("output '", port.name, "'")));
      if (port.dtype != DType::kFloat32 || port.value == -1) {
        return InvalidArgument("output '", port.name, "' is ", DTypeName(port.dtype), " of value ", port.value,
                               "; outputs are FP32 values");
      }
      for (const NetworkPort& input : network_.inputs) {
        if (input.value != port.value) continue;
        return InvalidArgument("output '", port.name, "' is the input '", input.name, "'; a layer must copy it");
      }
    }
    return {};
  }

  Status CheckAllUsed() const {
    for (size_t i = 0; i < made_.size(); ++i) {
      if (!made_[i]) return InvalidArgument("value ", i, " ('", network_.values[i].name, "') is made by no layer");
    }
    for (size_t i = 0; i < weight_used_.size(); ++i) {
      if (!weight_used_[i]) return InvalidArgument("weight ", i, " belongs to no layer");
    }
    return {};
  }

  Status CheckLayer(const Layer& layer) {
    SWIZZLE_RETURN_IF_ERROR(CheckOperator(layer));
    SWIZZLE_RETURN_IF_ERROR(CheckEdges(layer));
    SWIZZLE_RETURN_IF_ERROR(CheckLayerValues(network_, layer));
    return CheckWeight(layer);
  }

  Status CheckEdges(const Layer& layer) {
    const size_t inputs = static_cast<size_t>(InputCount(layer)) + (layer.epilogue.residual ? 1 : 0);
    if (layer.inputs.size() != inputs) {
      return InvalidArgument("it has ", layer.inputs.size(), " inputs instead of ", inputs);
    }
    for (int input : layer.inputs) {
      if (!IsValue(input)) return InvalidArgument("it reads value ", input, ", which does not exist");
      if (!made_[input]) return InvalidArgument("it reads value ", input, " before it is made");
    }
    if (!IsValue(layer.output)) return InvalidArgument("it makes value ", layer.output, ", which does not exist");
    if (made_[layer.output]) return InvalidArgument("it makes value ", layer.output, " a second time");
    made_[layer.output] = true;
    return {};
  }

  Status CheckWeight(const Layer& layer) {
    if (!HasWeight(layer.op)) {
      return layer.weight == -1 ? Status() : InvalidArgument(OpName(layer.op), " has no weight");
    }
    if (layer.weight < 0 || static_cast<size_t>(layer.weight) >= network_.weights.size()) {
      return InvalidArgument("it names weight ", layer.weight, ", which does not exist");
    }
    const Weight& weight = network_.weights[layer.weight];
    if (!weight_used_[layer.weight]) SWIZZLE_RETURN_IF_ERROR(ValidateWeight(weight));
    weight_used_[layer.weight] = true;
    return CheckLayerWeight(network_, layer, weight);
  }

  const Network& network_;
  std::vector<bool> made_;         // by value
  std::vector<bool> weight_used_;  // by weight
};

}  // namespace

Status Network::Validate() const { return Validator(*this).Run(); }

Status Network::ValidateModel() const {
  SWIZZLE_RETURN_IF_ERROR(Validate());
  for (const NetworkPort& port : inputs) {
    if (!sequences || port.dtype != DType::kFloat32) continue;
    return InvalidArgument("input '", port.name, "': it is FP32; sequences of tokens come as ids and masks");
  }
  for (const NetworkPort& port : outputs) {
    if (!sequences || !values[port.value].per_token) continue;
    const int64_t length = sequences->length == 0 ? -1 : sequences->length;
    if (port.dims[batch_size > 0 ? 1 : 0] == length) continue;
    return InvalidArgument("output '", port.name, "': its dimensions ", ShapeText(port.dims),
                           " have not the length of the sequences, ", length, ", for their first");
  }
  return {};
}

}  // namespace swizzle
