#include "model_loader/network/network.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace swizzle {
namespace {

// Bounds that keep every later product of extents, taps, batch and element size within int64, and what a small file
// can make dense within reason.
constexpr int64_t kMaxExtent = int64_t{1} << 24;
constexpr int64_t kMaxValueElements = int64_t{1} << 31;
constexpr int64_t kMaxWeightElements = int64_t{1} << 28;
constexpr int64_t kMaxBatchSize = int64_t{1} << 20;
constexpr int64_t kMaxWindowExtent = int64_t{1} << 15;

// What takes values per token and makes one per row.
bool IsReduction(Op op) { return TraitsOf(op).Has(OpTraits::kReducesTokens); }

size_t InputCount(const Layer& layer) {
  if (layer.op == Op::kEmbedding) return layer.lookup.by_position ? 0 : 1;
  if (IsAttention(layer.op)) return 3;
  return IsBinary(layer.op) || layer.epilogue.residual ? 2 : 1;
}

std::string ExtentText(const NetworkValue& value) { return ShapeText({value.channels, value.height, value.width}); }

bool SameExtent(const NetworkValue& a, const NetworkValue& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

// One axis of a window over a plane.
struct Axis {
  int64_t input, kernel, stride, pad_before, pad_after, dilation;

  bool InRange() const {
    const auto within = [](int64_t x, int64_t least) { return x >= least && x <= kMaxWindowExtent; };
    return within(kernel, 1) && within(stride, 1) && within(dilation, 1) && within(pad_before, 0) &&
           within(pad_after, 0);
  }
  // 0 or less where the window does not fit. REQUIRES: InRange().
  int64_t Output() const {
    const int64_t room = input + pad_before + pad_after - (dilation * (kernel - 1) + 1);
    return room < 0 ? 0 : room / stride + 1;
  }
  // Whether the window at output position `o` touches the plane.
  bool Touches(int64_t o) const {
    const int64_t start = o * stride - pad_before;
    const int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    return first < kernel && start + first * dilation < input;
  }
  bool AllTouch() const {
    for (int64_t o = 0; o < Output(); ++o) {
      if (!Touches(o)) return false;
    }
    return true;
  }
};

Axis VerticalAxis(const Window& w, int64_t height) {
  return {height, w.kernel_h, w.stride_h, w.pad_top, w.pad_bottom, w.dilation_h};
}

Axis HorizontalAxis(const Window& w, int64_t width) {
  return {width, w.kernel_w, w.stride_w, w.pad_left, w.pad_right, w.dilation_w};
}

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
  return {};
}

Status ValidateMatrix(const DenseMatrix& matrix) { return matrix.Validate(); }
Status ValidateMatrix(const CsrMatrix& matrix) { return matrix.Validate(); }
Status ValidateMatrix(const AttentionPattern& pattern) { return pattern.Validate(); }

Status ValidateWeight(const Weight& weight) {
  SWIZZLE_RETURN_IF_ERROR(std::visit([](const auto& matrix) { return ValidateMatrix(matrix); }, weight.matrix));
  if (!weight.bias.empty() && static_cast<int64_t>(weight.bias.size()) != weight.rows()) {
    return InvalidArgument("its bias has ", weight.bias.size(), " elements; its weight has ", weight.rows(), " rows");
  }
  return {};
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
    return CheckOutputPorts();
  }

 private:
  bool IsValue(int value) const { return value >= 0 && static_cast<size_t>(value) < network_.values.size(); }
  const NetworkValue& ValueAt(int value) const { return network_.values[value]; }
  const NetworkValue& InputOf(const Layer& layer) const { return ValueAt(layer.inputs[0]); }
  const NetworkValue& OutputOf(const Layer& layer) const { return ValueAt(layer.output); }

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
    if (port.value == -1 && network_.sequences) return CheckTokenDims(dims, 1);
    if (!IsValue(port.value)) return InvalidArgument("it names value ", port.value, ", which does not exist");
    const NetworkValue& value = ValueAt(port.value);
    if (value.per_token) return CheckTokenDims(dims, value.channels);
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(dims));
    if (elements == value.elements()) return {};
    return InvalidArgument("its dimensions ", ShapeText(port.dims), " have other elements than its value ",
                           ExtentText(value), network_.batch_size > 0 ? " times the batch size" : "");
  }

  // [length, and so many channels]
  Status CheckTokenDims(const Shape& dims, int64_t channels) const {
    const int64_t length = network_.sequences->length == 0 ? -1 : network_.sequences->length;
    if (dims.empty() || dims[0] != length) {
      return InvalidArgument("its dimensions ", ShapeText(dims), " do not start with the length of the sequences, ",
                             length);
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(Shape(dims.begin() + 1, dims.end())));
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
    if (sequences.length < 0 || sequences.length > kMaxExtent) {
      return InvalidArgument("the length of its sequences, ", sequences.length, ", is not between 0 (free) and ",
                             kMaxExtent);
    }
    if (std::isnan(sequences.masked_bias)) return InvalidArgument("its bias of masked keys is not a number");
    return {};
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

  // Sequences come as ids and masks, everything else as FP32.
  Status CheckInputType(const NetworkPort& port) const {
    if (!network_.sequences) {
      if (port.dtype == DType::kFloat32) return {};
      return InvalidArgument("it is ", DTypeName(port.dtype), "; only FP32 is known");
    }
    if (port.value != -1 && !ValueAt(port.value).ids) return InvalidArgument("its value holds no ids");
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
    if (!IsKnown(layer.op) || TraitsOf(layer.op).Has(OpTraits::kOfPlansOnly)) {
      return InvalidArgument("its operator ", static_cast<int>(layer.op), " is none that a network has");
    }
    SWIZZLE_RETURN_IF_ERROR(CheckEdges(layer));
    SWIZZLE_RETURN_IF_ERROR(CheckEpilogue(layer));
    SWIZZLE_RETURN_IF_ERROR(CheckFunction(layer));
    SWIZZLE_RETURN_IF_ERROR(CheckBatches(layer));
    SWIZZLE_RETURN_IF_ERROR(IsOfSequences(layer.op) ? CheckSequenceLayer(layer) : CheckExtents(layer));
    return CheckWeight(layer);
  }

  Status CheckEdges(const Layer& layer) {
    if (layer.inputs.size() != InputCount(layer)) {
      return InvalidArgument("it has ", layer.inputs.size(), " inputs instead of ", InputCount(layer));
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

  Status CheckEpilogue(const Layer& layer) const {
    const Epilogue& epilogue = layer.epilogue;
    if (!(epilogue.low <= epilogue.high)) {  // also where one is not a number
      return InvalidArgument("it clamps to [", epilogue.low, ", ", epilogue.high, "], which is empty");
    }
    if (epilogue.residual && !TraitsOf(layer.op).Has(OpTraits::kAddsResidual)) {
      return InvalidArgument(OpName(layer.op), " adds no residual");
    }
    if (epilogue.Clamps() && !TraitsOf(layer.op).Has(OpTraits::kClamps)) {
      return InvalidArgument(OpName(layer.op), " cannot clamp");
    }
    return {};
  }

  Status CheckFunction(const Layer& layer) const {
    const Function& function = layer.function;
    if (layer.op != Op::kFunction) {
      return function == Function{} ? Status() : InvalidArgument(OpName(layer.op), " has no function");
    }
    if (static_cast<int>(function.kind) >= kFunctionKindCount) {
      return InvalidArgument("its function ", static_cast<int>(function.kind), " is not known");
    }
    if (!std::isfinite(function.alpha) || !std::isfinite(function.beta)) {
      return InvalidArgument("its function's alpha or beta is not finite");
    }
    return {};
  }

  // Which of the layer's values are per token, and which hold ids.
  Status CheckBatches(const Layer& layer) const {
    const bool embeds = layer.op == Op::kEmbedding;
    for (int input : layer.inputs) {
      if (ValueAt(input).ids != embeds) return InvalidArgument("only embeddings read ids, and nothing else");
      const bool per_token = IsReduction(layer.op) || OutputOf(layer).per_token;
      if (ValueAt(input).per_token != per_token) {
        return InvalidArgument("it reads value ", input, ", which is ", per_token ? "not " : "", "per token");
      }
    }
    const bool per_token = OutputOf(layer).per_token;
    if (OutputOf(layer).ids) return InvalidArgument("it cannot make ids");
    if (IsReduction(layer.op) && per_token) return InvalidArgument("it makes a value per token");
    if ((embeds || IsAttention(layer.op)) && !per_token) return InvalidArgument("it makes no tokens");
    return {};
  }

  Status CheckSequenceLayer(const Layer& layer) const {
    const NetworkValue& out = OutputOf(layer);
    if (out.height != 1 || out.width != 1) return InvalidArgument("its output ", ExtentText(out), " is no matrix");
    switch (layer.op) {
      case Op::kEmbedding:
        if (layer.lookup.offset >= 0 && layer.lookup.offset < kMaxExtent) return {};
        return InvalidArgument("its offset ", layer.lookup.offset, " is negative or too large");
      case Op::kAttention:
        return CheckAttention(layer);
      case Op::kSparseAttention:
        SWIZZLE_RETURN_IF_ERROR(CheckAttention(layer));
        return CheckPatternLayer(layer);
      case Op::kLayerNorm:
        if (layer.epsilon >= 0.0f && std::isfinite(layer.epsilon)) break;
        return InvalidArgument("its epsilon ", layer.epsilon, " is negative or not finite");
      default:
        break;
    }
    return SameExtent(InputOf(layer), out) ? Status() : ExtentError("differs from", InputOf(layer), out);
  }

  Status CheckAttention(const Layer& layer) const {
    const int64_t heads = layer.attention.heads;
    const int64_t q = InputOf(layer).channels, k = ValueAt(layer.inputs[1]).channels;
    const int64_t v = ValueAt(layer.inputs[2]).channels, out = OutputOf(layer).channels;
    if (heads < 1 || q % heads != 0 || v % heads != 0 || q != k || v != out) {
      return InvalidArgument("its ", heads, " heads do not fit queries, keys, values and output of ", q, ", ", k, ", ",
                             v, " and ", out, " channels");
    }
    if (!std::isfinite(layer.attention.scale)) return InvalidArgument("its scale is not finite");
    return {};
  }

  // A pattern goes by places, so that sequences have one length and no token is left out.
  Status CheckPatternLayer(const Layer& layer) const {
    if (!(layer.attention.scale > 0.0f)) {
      return InvalidArgument("its scale ", layer.attention.scale,
                             " is not positive, as attention with a pattern takes");
    }
    const SequenceInputs& sequences = *network_.sequences;
    if (sequences.mask != -1) return InvalidArgument("it has a pattern of keys, which goes with no mask of tokens");
    if (sequences.length != layer.attention.length) {
      return InvalidArgument("its pattern is of ", layer.attention.length, " tokens; sequences have ",
                             sequences.length == 0 ? "any length" : Concat(sequences.length));
    }
    return {};
  }

  Status CheckExtents(const Layer& layer) const {
    const NetworkValue& in = InputOf(layer);
    const NetworkValue& out = OutputOf(layer);
    if (TraitsOf(layer.op).Has(OpTraits::kSlidesWindow)) {
      SWIZZLE_RETURN_IF_ERROR(CheckWindow(layer));
    } else if (layer.op == Op::kReshape) {
      if (in.elements() != out.elements()) return ExtentError("has other elements than", in, out);
    } else if (layer.op == Op::kTranspose) {
      const bool transposed = out.channels == in.height * in.width && in.channels == out.height * out.width;
      if (!transposed) return ExtentError("is not the transpose of", in, out);
    } else if (!SameExtent(in, out)) {
      return ExtentError("differs from", in, out);
    }
    if (TraitsOf(layer.op).Has(OpTraits::kKeepsChannels) && in.channels != out.channels) {
      return ExtentError("has other channels than", in, out);
    }
    const bool second = layer.inputs.size() == 2;
    const NetworkValue expected = layer.op == Op::kScale ? NetworkValue{out.name, out.channels, 1, 1} : out;
    if (second && !SameExtent(ValueAt(layer.inputs[1]), expected)) {
      return ExtentError("differs from", ValueAt(layer.inputs[1]), out);
    }
    return {};
  }

  static Status ExtentError(const char* relation, const NetworkValue& in, const NetworkValue& out) {
    return InvalidArgument("its output ", ExtentText(out), " ", relation, " its input ", ExtentText(in));
  }

  Status CheckWindow(const Layer& layer) const {
    const NetworkValue& in = InputOf(layer);
    const NetworkValue& out = OutputOf(layer);
    const Axis vertical = VerticalAxis(layer.window, in.height);
    const Axis horizontal = HorizontalAxis(layer.window, in.width);
    if (!vertical.InRange() || !horizontal.InRange()) {
      return InvalidArgument("its window has a kernel, stride or dilation below 1, a negative pad, or one above ",
                             kMaxWindowExtent);
    }
    if (vertical.Output() != out.height || horizontal.Output() != out.width) {
      return InvalidArgument("its window over ", ExtentText(in), " gives a plane of ",
                             ShapeText({vertical.Output(), horizontal.Output()}), ", its output is ", ExtentText(out));
    }
    if (TraitsOf(layer.op).Has(OpTraits::kPools) && !(vertical.AllTouch() && horizontal.AllTouch())) {
      return InvalidArgument("one of its windows lies in the padding alone, where a pool has no value");
    }
    return {};
  }

  Status CheckWeight(const Layer& layer) {
    if (!HasWeight(layer.op)) {
      return layer.weight == -1 ? Status() : InvalidArgument(OpName(layer.op), " has no weight");
    }
    if (layer.weight < 0 || static_cast<size_t>(layer.weight) >= network_.weights.size()) {
      return InvalidArgument("it names weight ", layer.weight, ", which does not exist");
    }
    if (weight_used_[layer.weight]) return InvalidArgument("weight ", layer.weight, " belongs to another layer");
    weight_used_[layer.weight] = true;
    const Weight& weight = network_.weights[layer.weight];
    SWIZZLE_RETURN_IF_ERROR(ValidateWeight(weight));
    if (layer.op == Op::kSparseAttention) return CheckPattern(layer, weight);
    if (weight.format() == Format::kPattern) return InvalidArgument("only attention has a pattern for its weight");
    if (layer.op != Op::kConv && weight.format() != Format::kDense) {
      return InvalidArgument("weights of ", OpName(layer.op), " are always dense");
    }
    const auto [rows, cols] = WeightShape(layer, weight);
    if (weight.rows() != rows || weight.cols() != cols) {
      return InvalidArgument("its weight is ", ShapeText({weight.rows(), weight.cols()}), " instead of ",
                             ShapeText({rows, cols}));
    }
    if (rows > kMaxWeightElements / cols) {
      return InvalidArgument("its weight ", ShapeText({rows, cols}), " has more than ", kMaxWeightElements,
                             " elements");
    }
    return {};
  }

  static Status CheckPattern(const Layer& layer, const Weight& weight) {
    if (weight.format() != Format::kPattern) return InvalidArgument("its weight is no pattern of keys");
    if (!weight.bias.empty()) return InvalidArgument("its pattern has a bias");
    const Attention& attention = layer.attention;
    if (weight.rows() == attention.length && weight.nonzeros() == attention.nonzeros) return {};
    return InvalidArgument("its pattern of ", weight.rows(), " tokens has ", weight.nonzeros(),
                           " nonzeros; the layer says ", attention.length, " and ", attention.nonzeros);
  }

  // Rows and columns that its weight has to have.
  std::pair<int64_t, int64_t> WeightShape(const Layer& layer, const Weight& weight) const {
    const int64_t taps = int64_t{layer.window.kernel_h} * layer.window.kernel_w;
    const int64_t rows = OutputOf(layer).channels;
    switch (layer.op) {
      case Op::kEmbedding:
        return {std::max(weight.rows(), layer.lookup.offset + 1), rows};
      case Op::kLayerNorm:
        return {rows, 1};
      case Op::kDepthwiseConv:
        return {rows, taps};
      default:
        return {rows, InputOf(layer).channels * taps};
    }
  }

  const Network& network_;
  std::vector<bool> made_;         // by value
  std::vector<bool> weight_used_;  // by weight
};

}  // namespace

Status Network::Validate() const { return Validator(*this).Run(); }

int64_t Network::LookupLimit(int value) const {
  int64_t limit = 0;
  for (const Layer& layer : layers) {
    const bool reads = layer.inputs.empty() ? value == -1 : layer.inputs[0] == value;
    if (layer.op != Op::kEmbedding || !reads) continue;
    const int64_t rows = weights[layer.weight].rows() - layer.lookup.offset;
    limit = limit == 0 ? rows : std::min(limit, rows);
  }
  return limit;
}

int64_t Network::DenseWeightBytes() const {
  int64_t bytes = 0;
  for (const Weight& weight : weights) bytes += weight.DenseBytes();
  return bytes;
}

int64_t Network::StoredWeightBytes() const {
  size_t bytes = 0;
  for (const Weight& weight : weights) bytes += weight.StoredBytes();
  return static_cast<int64_t>(bytes);
}

void SetPatternSizes(Network& network) {
  for (Layer& layer : network.layers) {
    const bool has_weight = layer.weight >= 0 && static_cast<size_t>(layer.weight) < network.weights.size();
    if (layer.op != Op::kSparseAttention || !has_weight) continue;
    const auto* pattern = std::get_if<AttentionPattern>(&network.weights[layer.weight].matrix);
    if (pattern == nullptr) continue;
    layer.attention.length = pattern->tokens;
    layer.attention.nonzeros = pattern->nnz();
  }
}

Problem LayerProblem(const Network& network, const Layer& layer, BatchSize size, int threads, DType precision) {
  SWIZZLE_CHECK(!TraitsOf(layer.op).Has(OpTraits::kOnlyRenames));  // no kernel solves it
  Problem problem;
  problem.op = layer.op;
  problem.output = network.values[layer.output].WithBatch(size);
  problem.input =
      layer.inputs.empty() ? Extent{problem.output.batch, 1} : network.values[layer.inputs[0]].WithBatch(size);
  problem.window = layer.window;
  problem.epilogue = layer.epilogue;
  problem.threads = threads;
  problem.dtype = precision;
  problem.function = layer.function;
  problem.lookup = layer.lookup;
  problem.attention = layer.attention;
  problem.epsilon = layer.epsilon;
  problem.token = layer.token;
  return problem;
}

}  // namespace swizzle
