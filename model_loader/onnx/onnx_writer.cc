#include "model_loader/onnx/onnx_writer.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>

#include "model_loader/onnx/graph_additions.h"
#include "model_loader/onnx/proto_values.h"
#include "model_loader/semantics/whole_numbers.h"
#include "onnx/onnx.pb.h"

namespace swizzle {
namespace {

constexpr int64_t kOpset = 13, kIrVersion = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Names = std::vector<std::string>;

class Writer {
 public:
  explicit Writer(const Network& network) : network_(network), graph_(*model_.mutable_graph()), additions_(graph_) {
    for (const NetworkPort& port : network.inputs) additions_.Avoid(port.name);
    for (const NetworkPort& port : network.outputs) additions_.Avoid(port.name);
    names_.resize(network.values.size());
  }

  StatusOr<std::vector<std::byte>> Run() {
    if (network_.sequences) return Unimplemented("a network of token sequences cannot be written as ONNX");
    model_.set_ir_version(kIrVersion);
    model_.set_producer_name("swizzle");
    model_.add_opset_import()->set_version(kOpset);
    graph_.set_name("network");
    for (const NetworkPort& port : network_.inputs) SWIZZLE_RETURN_IF_ERROR(WriteInput(port));
    for (const Layer& layer : network_.layers) {
      SWIZZLE_RETURN_IF_ERROR(Annotate(WriteLayer(layer), Concat("layer '", layer.name, "'")));
    }
    for (const NetworkPort& port : network_.outputs) WriteOutput(port);
    return Serialised(model_);
  }

 private:
  Shape FourDimensions(const NetworkValue& value) const {
    return {network_.batch_size, value.channels, value.height, value.width};
  }

  void Declare(const NetworkPort& port, onnx::ValueInfoProto& info) const {
    info.set_name(port.name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(port.dtype == DType::kUint8 ? onnx::TensorProto::UINT8 : onnx::TensorProto::FLOAT);
    if (network_.batch_size == 0) type.mutable_shape()->add_dim()->set_dim_param("N");
    for (const int64_t dimension : port.dims) type.mutable_shape()->add_dim()->set_dim_value(dimension);
  }

  Shape PortShape(const NetworkPort& port) const {
    Shape shape = port.dims;
    if (network_.batch_size == 0) shape.insert(shape.begin(), 0);
    return shape;
  }

  onnx::NodeProto& AddNode(const char* op, const Names& inputs, const std::string& output) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(op);
    node.set_name(additions_.Fresh(output + "." + op));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }

  static void SetInts(onnx::NodeProto& node, const char* name, const Shape& values) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.mutable_ints()->Add(values.begin(), values.end());
  }
  static void SetInt(onnx::NodeProto& node, const char* name, int64_t value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  static void SetFloat(onnx::NodeProto& node, const char* name, float value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
  }

  static void SetString(onnx::NodeProto& node, const char* name, std::string_view value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(std::string(value));
  }

  std::string AddFloats(const std::string& wanted, const Shape& shape, const std::vector<float>& values) {
    return additions_.AddInitializer(wanted, onnx::TensorProto::FLOAT, shape, values);
  }

  void Reshape(const std::string& input, const Shape& shape, const std::string& output) {
    const auto rank = static_cast<int64_t>(shape.size());
    AddNode("Reshape", {input, additions_.AddInitializer(output + ".shape", onnx::TensorProto::INT64, {rank}, shape)},
            output);
  }

  Status WriteInput(const NetworkPort& port) {
    Declare(port, *graph_.add_input());
    const NetworkValue& value = network_.values[port.value];
    std::string& name = names_[port.value] = port.name;
    if (port.dtype == DType::kUint8) {
      if (value.quantisation->Of(0) != Quantised{port.dtype, 1.0f, 0}) {
        return Unimplemented("input '", port.name, "' has a scale or zero point, which no Cast has");
      }
      name = additions_.Fresh(port.name + ".real");
      SetInt(AddNode("Cast", {port.name}, name), "to", onnx::TensorProto::FLOAT);
    }
    if (PortShape(port) == FourDimensions(value)) return {};
    const std::string given = std::exchange(name, additions_.Fresh(port.name + ".plane"));
    Reshape(given, FourDimensions(value), name);
    return {};
  }

  void WriteOutput(const NetworkPort& port) {
    Declare(port, *graph_.add_output());
    Reshape(names_[port.value], PortShape(port), port.name);
  }

  Status WriteLayer(const Layer& layer) {
    SWIZZLE_ASSIGN_OR_RETURN(std::string result, WriteOperator(layer));
    if (layer.epilogue.residual) {
      const std::string sum = additions_.Fresh(layer.name + ".sum");
      AddNode("Add", {result, names_[layer.inputs.back()]}, sum);
      result = sum;
    }
    names_[layer.output] = WriteQuantised(layer, WriteClamp(layer, result));
    return {};
  }

  // Bounds that are those of the whole numbers need no operator of their own.
  std::string WriteClamp(const Layer& layer, const std::string& result) {
    const auto& quantisation = network_.values[layer.output].quantisation;
    auto [low, high] = std::pair(layer.epilogue.low, layer.epilogue.high);
    if (quantisation && quantisation->per_tensor()) {
      const RealRange range = RangeOf(quantisation->Of(0));
      if (low <= range.low) low = -kInfinity;
      if (high >= range.high) high = kInfinity;
    }
    if (low == -kInfinity && high == kInfinity) return result;
    std::string clamped = additions_.Fresh(layer.name + ".clamped");
    if (low == 0.0f && high == kInfinity) {
      AddNode("Relu", {result}, clamped);
      return clamped;
    }
    Names inputs = {result, "", ""};
    if (low != -kInfinity) inputs[1] = AddFloats(clamped + ".low", {}, {low});
    if (high != kInfinity) inputs[2] = AddFloats(clamped + ".high", {}, {high});
    AddNode("Clip", inputs, clamped);
    return clamped;
  }

  std::string WriteQuantised(const Layer& layer, const std::string& real) {
    const auto& quantisation = network_.values[layer.output].quantisation;
    if (!quantisation) return real;
    const std::string scale = AddFloats(real + ".scale", {}, quantisation->scales),
                      zero_point = ZeroPoint(*quantisation, real);
    const std::string whole = additions_.Fresh(real + ".quantised");
    std::string again = additions_.Fresh(real + ".dequantised");
    AddNode("QuantizeLinear", {real, scale, zero_point}, whole);
    AddNode("DequantizeLinear", {whole, scale, zero_point}, again);
    return again;
  }

  std::string ZeroPoint(const Quantisation& quantisation, const std::string& of) {
    const auto whole = static_cast<uint8_t>(quantisation.Of(0).zero_point);
    const bool is_signed = quantisation.dtype == DType::kInt8;
    return additions_.AddInitializer(of + ".zero_point", is_signed ? onnx::TensorProto::INT8 : onnx::TensorProto::UINT8,
                                     {}, std::vector<uint8_t>{whole});
  }

  StatusOr<std::string> WriteOperator(const Layer& layer) {
    const std::string result = additions_.Fresh(layer.name);
    Names inputs;
    for (int i = 0; i < InputCount(layer); ++i) inputs.push_back(names_[layer.inputs[i]]);
    switch (layer.op) {
      case Op::kConv:
      case Op::kDepthwiseConv:
        return WriteConv(layer, result);
      case Op::kAdd:
        AddNode("Add", inputs, result);
        return result;
      case Op::kMultiply:
      case Op::kScale:
        AddNode("Mul", inputs, result);
        return result;
      case Op::kActivation:
        return inputs[0];
      case Op::kMaxPool:
      case Op::kAveragePool:
        return WritePool(layer, inputs, result);
      case Op::kSoftmax:
        SetInt(AddNode("Softmax", inputs, result), "axis", 1);
        return result;
      case Op::kReshape:
        Reshape(inputs[0], FourDimensions(network_.values[layer.output]), result);
        return result;
      case Op::kFunction:
        return WriteFunction(layer.function(), inputs[0], result);
      case Op::kConcat:
        return WriteConcat(layer, std::move(inputs), result);
      case Op::kSlice:
        return WriteSlice(layer, inputs[0], result);
      case Op::kResize:
        return WriteResize(layer, inputs[0], result);
      case Op::kDepthToSpace: {
        onnx::NodeProto& node = AddNode("DepthToSpace", inputs, result);
        SetInt(node, "blocksize", layer.space_block().block);
        SetString(node, "mode", layer.space_block().places_first ? "DCR" : "CRD");
        return result;
      }
      case Op::kTranspose:
        return WriteTranspose(layer, inputs[0], result);
      case Op::kEmbedding:
      case Op::kLayerNorm:
      case Op::kAttention:
      case Op::kSelectToken:
      case Op::kMeanTokens:
      case Op::kSparseAttention:
      case Op::kBiasedAttention:
      case Op::kDisentangledAttention:
      case Op::kRotary:
      case Op::kPermuteTokens:
      case Op::kPlaneTokens:
      case Op::kConvertLayout:
        break;
    }
    return Unimplemented(OpName(layer.op), " cannot be written as ONNX");
  }

  // The value in another shape, by a name of its own.
  std::string Reshaped(const std::string& input, const Shape& shape) {
    std::string name = additions_.Fresh(input + ".reshaped");
    Reshape(input, shape, name);
    return name;
  }

  std::string WriteConcat(const Layer& layer, Names inputs, const std::string& result) {
    if (!layer.parts().of_planes) {
      SetInt(AddNode("Concat", inputs, result), "axis", 1);
      return result;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const NetworkValue& value = network_.values[layer.inputs[i]];
      inputs[i] = Reshaped(inputs[i], {network_.batch_size, value.channels, 1, value.height * value.width});
    }
    const std::string flat = additions_.Fresh(result + ".flat");
    SetInt(AddNode("Concat", inputs, flat), "axis", 3);
    Reshape(flat, FourDimensions(network_.values[layer.output]), result);
    return result;
  }

  std::string WriteSlice(const Layer& layer, const std::string& input, const std::string& result) {
    const auto list = [&](const char* name, int64_t number) {
      return additions_.AddInitializer(result + name, onnx::TensorProto::INT64, {1}, std::vector<int64_t>{number});
    };
    const int64_t first = layer.channel_range().first, end = first + network_.values[layer.output].channels;
    AddNode("Slice", {input, list(".starts", first), list(".ends", end), list(".axes", 1)}, result);
    return result;
  }

  // By scales, since sizes name the batch. One that the model gives by a size has to make that size again.
  std::string WriteResize(const Layer& layer, const std::string& input, const std::string& result) {
    const Resampling& how = layer.resampling();
    const NetworkValue &from = network_.values[layer.inputs[0]], &to = network_.values[layer.output];
    const auto scale_of = [](float given, int64_t in, int64_t out) {
      if (given != 0.0f) return given;
      auto scale = static_cast<float>(static_cast<double>(out) / static_cast<double>(in));
      while (std::floor(static_cast<float>(in) * scale) < static_cast<float>(out))
        scale = std::nextafter(scale, kInfinity);
      return scale;
    };
    const std::vector<float> scales = {1.0f, 1.0f, scale_of(how.scale_h, from.height, to.height),
                                       scale_of(how.scale_w, from.width, to.width)};
    onnx::NodeProto& node = AddNode("Resize", {input, "", AddFloats(result + ".scales", {4}, scales)}, result);
    SetString(node, "mode", how.linear ? "linear" : "nearest");
    SetString(node, "coordinate_transformation_mode", CoordinatesName(how.coordinates));
    SetString(node, "nearest_mode", NearestName(how.nearest));
    return result;
  }

  std::string WriteTranspose(const Layer& layer, const std::string& input, const std::string& result) {
    const NetworkValue& from = network_.values[layer.inputs[0]];
    const std::string matrix = Reshaped(input, {network_.batch_size, from.channels, from.height * from.width});
    const std::string turned = additions_.Fresh(result + ".turned");
    SetInts(AddNode("Transpose", {matrix}, turned), "perm", {0, 2, 1});
    Reshape(turned, FourDimensions(network_.values[layer.output]), result);
    return result;
  }

  static void SetWindow(onnx::NodeProto& node, const Window& window) {
    SetInts(node, "kernel_shape", {window.kernel_h, window.kernel_w});
    SetInts(node, "strides", {window.stride_h, window.stride_w});
    SetInts(node, "pads", {window.pad_top, window.pad_left, window.pad_bottom, window.pad_right});
  }

  std::string WritePool(const Layer& layer, const Names& inputs, const std::string& result) {
    const Window& window = layer.window();
    const NetworkValue& input = network_.values[layer.inputs[0]];
    const bool max = layer.op == Op::kMaxPool,
               whole = window.kernel_h == input.height && window.kernel_w == input.width;
    if (!max && whole && window.pad_top + window.pad_left + window.pad_bottom + window.pad_right == 0) {
      AddNode("GlobalAveragePool", inputs, result);
      return result;
    }
    onnx::NodeProto& node = AddNode(max ? "MaxPool" : "AveragePool", inputs, result);
    SetWindow(node, window);
    if (!max) SetInt(node, "count_include_pad", window.count_include_pad ? 1 : 0);
    if (max) SetInts(node, "dilations", {window.dilation_h, window.dilation_w});
    return result;
  }

  StatusOr<std::string> WriteFunction(const Function& function, const std::string& input, const std::string& result) {
    const auto gated = [&](const char* gate) -> onnx::NodeProto& {
      const std::string name = additions_.Fresh(result + ".gate");
      onnx::NodeProto& node = AddNode(gate, {input}, name);  // stays where it is as nodes are added
      AddNode("Mul", {input, name}, result);
      return node;
    };
    switch (function.kind) {
      case FunctionKind::kSigmoid:
        AddNode("Sigmoid", {input}, result);
        return result;
      case FunctionKind::kTanh:
        AddNode("Tanh", {input}, result);
        return result;
      case FunctionKind::kSilu:
        gated("Sigmoid");
        return result;
      case FunctionKind::kHardSwish:
      case FunctionKind::kHardSigmoid: {
        onnx::NodeProto& node =
            function.kind == FunctionKind::kHardSwish ? gated("HardSigmoid") : AddNode("HardSigmoid", {input}, result);
        SetFloat(node, "alpha", function.alpha);
        SetFloat(node, "beta", function.beta);
        return result;
      }
      case FunctionKind::kLeakyRelu:
        SetFloat(AddNode("LeakyRelu", {input}, result), "alpha", function.alpha);
        return result;
      case FunctionKind::kGelu:
        return WriteGelu(input, result);
      case FunctionKind::kGeluTanh:
        break;
    }
    return Unimplemented(FunctionKindName(function.kind), " cannot be written as ONNX");
  }

  // As exporters write it below opset 20: x / 2 * (1 + erf(x / sqrt(2))).
  std::string WriteGelu(const std::string& input, const std::string& result) {
    const auto scalar = [&](const char* name, float number) { return AddFloats(result + name, {}, {number}); };
    const std::string root = additions_.Fresh(result + ".root"), erf = additions_.Fresh(result + ".erf"),
                      sum = additions_.Fresh(result + ".one_more"), product = additions_.Fresh(result + ".product");
    AddNode("Div", {input, scalar(".sqrt2", std::numbers::sqrt2_v<float>)}, root);
    AddNode("Erf", {root}, erf);
    AddNode("Add", {erf, scalar(".one", 1.0f)}, sum);
    AddNode("Mul", {input, sum}, product);
    AddNode("Mul", {product, scalar(".half", 0.5f)}, result);
    return result;
  }

  std::string WriteConv(const Layer& layer, const std::string& result) {
    const Weight& weight = network_.weights[layer.weight];
    const Window& window = layer.window();
    const DenseMatrix matrix = weight.ToDense();
    const Shape shape = {matrix.rows, matrix.cols / window.taps(), window.kernel_h, window.kernel_w};
    const auto& input = network_.values[layer.inputs[0]].quantisation;
    Names inputs = {names_[layer.inputs[0]]};
    const bool whole = weight.quantisation && weight.quantisation->dtype == DType::kInt8;
    inputs.push_back(whole ? WriteWholeWeight(*weight.quantisation, matrix, shape, result)
                           : AddFloats(result + ".weight", shape, matrix.values));
    if (!weight.bias.empty() && whole && input) {
      inputs.push_back(WriteWholeBias(weight, input->Of(0).scale, result));
    } else if (!weight.bias.empty()) {
      inputs.push_back(AddFloats(result + ".bias", {matrix.rows}, weight.bias));
    }
    onnx::NodeProto& node = AddNode("Conv", inputs, result);
    SetWindow(node, window);
    SetInts(node, "dilations", {window.dilation_h, window.dilation_w});
    SetInt(node, "group", layer.op == Op::kDepthwiseConv ? matrix.rows : 1);
    return result;
  }

  // Constants behind a DequantizeLinear by rows.
  std::string Dequantised(const std::string& wholes, const std::vector<float>& scales, const std::string& zero_points) {
    const std::string scale = AddFloats(wholes + ".scale", {static_cast<int64_t>(scales.size())}, scales);
    std::string real = additions_.Fresh(wholes + ".real");
    SetInt(AddNode("DequantizeLinear", {wholes, scale, zero_points}, real), "axis", 0);
    return real;
  }

  std::string WriteWholeWeight(const Quantisation& as, const DenseMatrix& matrix, const Shape& shape,
                               const std::string& result) {
    const auto cols = static_cast<size_t>(matrix.cols);
    std::vector<int8_t> wholes(matrix.values.size()), zero_points(static_cast<size_t>(matrix.rows));
    std::vector<float> scales(zero_points.size());
    for (size_t row = 0; row < scales.size(); ++row) {
      const Quantised of_row = as.Of(static_cast<int64_t>(row));
      scales[row] = of_row.scale;
      zero_points[row] = static_cast<int8_t>(of_row.zero_point);
      for (size_t i = row * cols; i < (row + 1) * cols; ++i) {
        wholes[i] = static_cast<int8_t>(std::nearbyint(matrix.values[i] / of_row.scale) +
                                        static_cast<float>(of_row.zero_point));
      }
    }
    const std::string name = additions_.AddInitializer(result + ".weight", onnx::TensorProto::INT8, shape, wholes);
    return Dequantised(
        name, scales,
        additions_.AddInitializer(name + ".zero_point", onnx::TensorProto::INT8, {matrix.rows}, zero_points));
  }

  std::string WriteWholeBias(const Weight& weight, float input_scale, const std::string& result) {
    std::vector<int32_t> wholes(weight.bias.size());
    std::vector<float> scales(wholes.size());
    for (size_t row = 0; row < wholes.size(); ++row) {
      scales[row] = input_scale * weight.quantisation->Of(static_cast<int64_t>(row)).scale;
      const double whole = std::nearbyint(double{weight.bias[row]} / scales[row]);
      constexpr double kMost = 1 << 30;
      wholes[row] = static_cast<int32_t>(whole < -kMost ? -kMost : whole > kMost ? kMost : whole);
    }
    const Shape shape = {weight.rows()};
    const std::string name = additions_.AddInitializer(result + ".bias", onnx::TensorProto::INT32, shape, wholes);
    return Dequantised(name, scales,
                       additions_.AddInitializer(name + ".zero_point", onnx::TensorProto::INT32, shape,
                                                 std::vector<int32_t>(wholes.size())));
  }

  const Network& network_;
  onnx::ModelProto model_;
  onnx::GraphProto& graph_;
  GraphAdditions additions_;
  Names names_;  // by value
};

}  // namespace

StatusOr<std::vector<std::byte>> WriteOnnx(const Network& network) { return Writer(network).Run(); }

}  // namespace swizzle
