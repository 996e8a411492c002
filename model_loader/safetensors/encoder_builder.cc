#include "model_loader/safetensors/encoder_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace swizzle {
namespace {

constexpr int64_t kOpset = 17;

template <typename T>
void Transpose(const std::byte* from, size_t rows, size_t columns, std::byte* to) {
  constexpr size_t kBlock = 32;
  for (size_t row_block = 0; row_block < rows; row_block += kBlock) {
    for (size_t column_block = 0; column_block < columns; column_block += kBlock) {
      for (size_t row = row_block; row < std::min(rows, row_block + kBlock); ++row) {
        for (size_t column = column_block; column < std::min(columns, column_block + kBlock); ++column) {
          std::memcpy(to + (column * rows + row) * sizeof(T), from + (row * columns + column) * sizeof(T), sizeof(T));
        }
      }
    }
  }
}

// [rows, columns] of FP32 or INT8 as [columns, rows].
Tensor Transposed(const Tensor& matrix) {
  const auto rows = static_cast<size_t>(matrix.shape[0]), columns = static_cast<size_t>(matrix.shape[1]);
  Tensor result{matrix.dtype, {matrix.shape[1], matrix.shape[0]}, std::vector<std::byte>(matrix.bytes.size())};
  const auto transpose = matrix.dtype == DType::kInt8 ? Transpose<int8_t> : Transpose<float>;
  transpose(matrix.bytes.data(), rows, columns, result.bytes.data());
  return result;
}

}  // namespace

EncoderBuilder::EncoderBuilder(CheckpointWeights weights, float norm_eps)
    : weights_(std::move(weights)), norm_eps_(norm_eps) {
  graph_.name = "encoder";
  graph_.producer = "safetensors";
  graph_.opset = kOpset;
}

int EncoderBuilder::Input(const std::string& name) {
  graph_.inputs.push_back(graph_.AddValue({name, DType::kInt64, Shape{-1, -1}, std::nullopt}));
  return graph_.inputs.back();
}

void EncoderBuilder::Output(const std::string& name, int value, Shape shape) {
  graph_.values[static_cast<size_t>(value)].name = name;
  graph_.outputs.push_back({name, value, DType::kFloat32, std::move(shape)});
}

int EncoderBuilder::Scalar(const std::string& name, float value) {
  return graph_.AddConstant(name, Tensor::Floats({}, std::span(&value, 1)));
}

int EncoderBuilder::Number(const std::string& name, int64_t value) {
  return graph_.AddConstant(name, Tensor::Int64s({}, std::span(&value, 1)));
}

int EncoderBuilder::List(const std::string& name, const std::vector<int64_t>& values) {
  return graph_.AddConstant(name, Tensor::Int64s({static_cast<int64_t>(values.size())}, values));
}

int EncoderBuilder::Add(const std::string& place, const std::string& op, std::vector<int> inputs,
                        std::map<std::string, Attribute> attributes, DType dtype) {
  const std::string name = place + "/" + op;
  const int output = graph_.AddValue({name + "_output", dtype, std::nullopt, std::nullopt});
  graph_.nodes.push_back({op, "", name, std::move(inputs), {output}, std::move(attributes)});
  return output;
}

StatusOr<int> EncoderBuilder::Constant(const std::string& name, const Shape& shape) {
  SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, weights_.Take(name, shape));
  return graph_.AddConstant(name, std::move(tensor));
}

std::vector<int> EncoderBuilder::AddSplit(const std::string& place, int x, const std::vector<int64_t>& sizes,
                                          int64_t axis) {
  const std::string name = place + "/Split";
  std::vector<int> parts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    parts.push_back(graph_.AddValue({Concat(name, "_output_", i), DType::kFloat32, std::nullopt, std::nullopt}));
  }
  graph_.nodes.push_back({"Split", "", name, {x, List(place + ".parts", sizes)}, parts, {{"axis", axis}}});
  return parts;
}

int EncoderBuilder::AddMask(int attention_mask) {
  const int unsqueezed = Add("mask", "Unsqueeze", {attention_mask, List("mask.axes", {1, 2})});
  const int floats = Add("mask", "Cast", {unsqueezed}, {{"to", kOnnxFloat}});
  const int excluded = Add("mask", "Sub", {Scalar("mask.one", 1.0f), floats});
  return Add("mask", "Mul", {excluded, Scalar("mask.lowest", std::numeric_limits<float>::lowest())});
}

int EncoderBuilder::AddLength(const std::string& place, int input_ids) {
  const int shape = Add(place, "Shape", {input_ids}, {}, DType::kInt64);
  return Add(place, "Gather", {shape, List(place + ".dimension", {1})}, {{"axis", int64_t{0}}}, DType::kInt64);
}

int EncoderBuilder::AddRange(const std::string& place, int input_ids) {
  const int list = AddLength(place, input_ids);
  const int length = Add(place + ".length", "Squeeze", {list, List(place + ".first", {0})}, {}, DType::kInt64);
  return Add(place, "Range", {Number(place + ".begin", 0), length, Number(place + ".step", 1)}, {}, DType::kInt64);
}

StatusOr<int> EncoderBuilder::AddLayerNorm(const std::string& name, int x, int64_t size, bool has_bias) {
  SWIZZLE_ASSIGN_OR_RETURN(const int scale, Constant(name + ".weight", {size}));
  int bias;
  if (has_bias) {
    SWIZZLE_ASSIGN_OR_RETURN(bias, Constant(name + ".bias", {size}));
  } else {
    const std::vector<float> zeros(static_cast<size_t>(size));
    bias = graph_.AddConstant(name + ".bias", Tensor::Floats({size}, zeros));
  }
  return Add(name, "LayerNormalization", {x, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", norm_eps_}});
}

StatusOr<int> EncoderBuilder::AddRootMeanSquareNorm(const std::string& name, int x, int64_t size) {
  SWIZZLE_ASSIGN_OR_RETURN(const int scale, Constant(name + ".weight", {size}));
  const int squares = Add(name, "Pow", {x, Scalar(name + ".two", 2.0f)});
  const int mean = Add(name, "ReduceMean", {squares}, {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{1}}});
  const int root = Add(name, "Sqrt", {Add(name, "Add", {mean, Scalar(name + ".epsilon", norm_eps_)})});
  const int normed = Add(name, "Mul", {x, Add(name, "Reciprocal", {root})});
  return Add(name + ".scaled", "Mul", {scale, normed});
}

// Made once for all layers that read the value.
const EncoderBuilder::Rounded& EncoderBuilder::Round(int x) {
  const auto [found, is_new] = rounded_.try_emplace(x);
  if (is_new) {
    const std::string name = graph_.values[static_cast<size_t>(x)].name + "/DynamicQuantizeLinear";
    const auto add = [&](const char* ending, DType dtype) {
      return graph_.AddValue({name + ending, dtype, std::nullopt, std::nullopt});
    };
    found->second = {add("_wholes", DType::kUint8), add("_scale", DType::kFloat32), add("_zero", DType::kUint8)};
    const Rounded& to = found->second;
    graph_.nodes.push_back({"DynamicQuantizeLinear", "", name, {x}, {to.wholes, to.scale, to.zero_point}, {}});
  }
  return found->second;
}

// The constants that follow whole numbers: a scale, and a zero point if there is one.
std::vector<int> EncoderBuilder::AddScaling(const std::string& name, Scaling scaling) {
  std::vector<int> constants = {graph_.AddConstant(name + "_scale", std::move(scaling.scales))};
  if (scaling.zero_points) {
    constants.push_back(graph_.AddConstant(name + "_zero_point", *std::move(scaling.zero_points)));
  }
  return constants;
}

// x, rounded as the scaling says.
int EncoderBuilder::AddRounding(const std::string& name, int x, Scaling scaling) {
  if (!scaling.zero_points) {  // ONNX would take them for UINT8
    scaling.zero_points = Tensor{DType::kInt8, {}, std::vector<std::byte>(1)};
  }
  const std::vector<int> by = AddScaling(name, std::move(scaling));
  const int wholes = Add(name, "QuantizeLinear", {x, by[0], by[1]}, {}, DType::kInt8);
  return Add(name, "DequantizeLinear", {wholes, by[0], by[1]});
}

// x [.., in] times the weight [out, in].
int EncoderBuilder::AddProduct(const std::string& name, int x, LinearWeight weight) {
  const int matrix = graph_.AddConstant(name + ".weight", Transposed(weight.matrix));
  if (!weight.numbers) return Add(name, "MatMul", {x, matrix});
  const std::vector<int> by = AddScaling(name + ".weight", *std::move(weight.numbers));
  if (weight.input) {
    std::vector<int> inputs = {matrix};
    inputs.insert(inputs.end(), by.begin(), by.end());
    const int real = Add(name + ".weight", "DequantizeLinear", inputs, {{"axis", int64_t{1}}});
    return Add(name, "MatMul", {AddRounding(name + ".input", x, *std::move(weight.input)), real});
  }
  const Rounded& rounded = Round(x);
  std::vector<int> inputs = {rounded.wholes, matrix, rounded.zero_point};
  if (by.size() > 1) inputs.push_back(by[1]);
  const int sums = Add(name, "MatMulInteger", inputs, {}, DType::kInt32);
  const int scale = Add(name + ".scale", "Mul", {rounded.scale, by[0]});
  return Add(name, "Mul", {Add(name, "Cast", {sums}, {{"to", kOnnxFloat}}), scale});
}

StatusOr<EncoderBuilder::Linear> EncoderBuilder::AddLinear(const std::string& name, int x, int64_t inputs,
                                                           int64_t outputs, bool has_bias) {
  SWIZZLE_ASSIGN_OR_RETURN(LinearWeight weight, weights_.TakeLinear(name, {outputs, inputs}));
  outputs = weight.matrix.shape[0];
  if (!has_bias) return Linear{AddProduct(name, x, std::move(weight)), outputs};
  SWIZZLE_ASSIGN_OR_RETURN(const int bias, Constant(name + ".bias", {outputs}));
  return Linear{Add(name, "Add", {bias, AddProduct(name, x, std::move(weight))}), outputs};
}

StatusOr<std::vector<int>> EncoderBuilder::AddSharedLinear(const std::string& name, const std::vector<int>& xs,
                                                           int64_t inputs, int64_t outputs) {
  SWIZZLE_ASSIGN_OR_RETURN(const LinearWeight weight, weights_.TakeLinear(name, {outputs, inputs}));
  if (weight.numbers) {
    return Unimplemented("the tensor '", name, ".weight' is of whole numbers, and places share it: export it to ONNX");
  }
  const int matrix = graph_.AddConstant(name + ".weight", Transposed(weight.matrix));
  SWIZZLE_ASSIGN_OR_RETURN(const int bias, Constant(name + ".bias", {outputs}));
  std::vector<int> results;
  for (size_t i = 0; i < xs.size(); ++i) {
    const std::string place = i == 0 ? name : Concat(name, ".shared.", i);
    results.push_back(Add(place, "Add", {bias, Add(place, "MatMul", {xs[i], matrix})}));
  }
  return results;
}

int EncoderBuilder::AddHeads(const std::string& name, int x, int64_t heads, int64_t head_size,
                             std::vector<int64_t> order) {
  const int target = List(name + ".heads", {0, 0, heads, head_size});
  return Add(name, "Transpose", {Add(name, "Reshape", {x, target})}, {{"perm", std::move(order)}});
}

int EncoderBuilder::AddJoinedHeads(const std::string& name, int by_head, int64_t rows) {
  const int joined = Add(name, "Transpose", {by_head}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  return Add(name, "Reshape", {joined, List(name + ".rows", {0, 0, rows})});
}

// x / 2 (1 + erf(x / sqrt 2)), or with a hyperbolic tangent in place of erf.
int EncoderBuilder::AddGelu(const std::string& name, int x, bool by_tanh) {
  const int half = Scalar(name + ".half", 0.5f), one = Scalar(name + ".one", 1.0f);
  int inner;
  if (!by_tanh) {
    const int scaled = Add(name, "Div", {x, Scalar(name + ".root", std::sqrt(2.0f))});
    inner = Add(name, "Erf", {scaled});
  } else {
    const int cube = Add(name + ".cube", "Pow", {x, Scalar(name + ".three", 3.0f)});
    const int small = Add(name + ".cube", "Mul", {cube, Scalar(name + ".factor", 0.044715f)});
    const int sum = Add(name + ".cube", "Add", {x, small});
    const float root = std::sqrt(2.0f / 3.14159265358979f);
    inner = Add(name, "Tanh", {Add(name + ".argument", "Mul", {sum, Scalar(name + ".root", root)})});
  }
  const int product = Add(name, "Mul", {x, Add(name, "Add", {inner, one})});
  return Add(name + ".halved", "Mul", {product, half});
}

int EncoderBuilder::AddClip(const std::string& name, int x, float low, float high) {
  return Add(name, "Clip", {x, Scalar(name + ".low", low), Scalar(name + ".high", high)});
}

int EncoderBuilder::AddActivation(const std::string& name, int x, EncoderActivation activation) {
  switch (activation) {
    case EncoderActivation::kGelu:
      return AddGelu(name, x, /*by_tanh=*/false);
    case EncoderActivation::kGeluTanh:
      return AddGelu(name, x, /*by_tanh=*/true);
    case EncoderActivation::kGelu10:
      return AddClip(name, AddGelu(name, x, /*by_tanh=*/false), -10.0f, 10.0f);
    case EncoderActivation::kQuickGelu: {
      const int scaled = Add(name + ".argument", "Mul", {x, Scalar(name + ".factor", 1.702f)});
      return Add(name, "Mul", {x, Add(name, "Sigmoid", {scaled})});
    }
    case EncoderActivation::kSilu:
      return Add(name, "Mul", {x, Add(name, "Sigmoid", {x})});
    case EncoderActivation::kMish:
      return Add(name, "Mul", {x, Add(name, "Tanh", {Add(name, "Softplus", {x})})});
    case EncoderActivation::kRelu:
      return Add(name, "Relu", {x});
    case EncoderActivation::kRelu2: {
      const int positive = Add(name, "Relu", {x});
      return Add(name, "Mul", {positive, positive});
    }
    case EncoderActivation::kRelu6:
      return AddClip(name, x, 0.0f, 6.0f);
    case EncoderActivation::kLeakyRelu:
      return Add(name, "LeakyRelu", {x}, {{"alpha", 0.01f}});
    case EncoderActivation::kTanh:
      return Add(name, "Tanh", {x});
    case EncoderActivation::kSigmoid:
      return Add(name, "Sigmoid", {x});
    case EncoderActivation::kLinear:
      return x;
  }
  SWIZZLE_CHECK(false);
}

int EncoderBuilder::AddFirstToken(const std::string& name, int hidden_state) {
  return Add(name, "Gather", {hidden_state, Number(name + ".first", 0)}, {{"axis", int64_t{1}}});
}

int EncoderBuilder::AddMeanToken(const std::string& name, int hidden_state, int attention_mask) {
  const int axes = List(name + ".tokens", {1});
  const auto sum = [&](const std::string& of, int x) {
    return Add(name + of, "ReduceSum", {x, axes}, {{"keepdims", int64_t{0}}});
  };
  const int column = Add(name, "Unsqueeze", {attention_mask, List(name + ".column", {-1})}, {}, DType::kInt64);
  const int weights = Add(name, "Cast", {column}, {{"to", kOnnxFloat}});
  const int total = sum("", Add(name, "Mul", {hidden_state, weights}));
  return Add(name, "Div", {total, sum(".count", weights)});
}

StatusOr<int> EncoderBuilder::AddPooler(int hidden_state, int64_t size) {
  const int token = AddFirstToken("pooler", hidden_state);
  SWIZZLE_ASSIGN_OR_RETURN(const Linear dense, AddLinear("pooler.dense", token, size, size));
  const int pooled = Add("pooler", "Tanh", {dense.value});
  Output("pooler_output", pooled, {-1, size});
  return pooled;
}

Status EncoderBuilder::AddLogits(const std::string& name, Linear input) {
  SWIZZLE_ASSIGN_OR_RETURN(const Linear scores, AddLinear(name, input.value, input.outputs, -1));
  Output("logits", scores.value, {-1, scores.outputs});
  return {};
}

StatusOr<Graph> EncoderBuilder::Finish() {
  SWIZZLE_RETURN_IF_ERROR(weights_.CheckAllTaken());
  return std::move(graph_);
}

}  // namespace swizzle
