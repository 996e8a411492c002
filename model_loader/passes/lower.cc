#include "model_loader/passes/lower.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/format/attention_pattern.h"
#include "kernels/format/csr.h"
#include "model_loader/graph/operators.h"
#include "model_loader/network/shared_weights.h"
#include "model_loader/network/validate_layer.h"
#include "model_loader/semantics/epilogues.h"
#include "model_loader/semantics/functions.h"
#include "model_loader/semantics/integer_products.h"
#include "model_loader/semantics/windows.h"

namespace swizzle {
namespace {

// The operator of a canonical node: they are named alike, but for Clamp.
std::optional<Op> OpOf(const Node& node) {
  if (Is(node, "Clamp")) return Op::kActivation;
  const auto found = std::ranges::find_if(kOpTraits, [&](const OpTraits& traits) { return Is(node, traits.name); });
  return found == kOpTraits.end() ? std::nullopt : std::optional(found->op);
}

int64_t WholeOf(const Node& node, const char* name) { return std::get<int64_t>(node.attributes.at(name)); }
float RealOf(const Node& node, const char* name) { return std::get<float>(node.attributes.at(name)); }

// What a node tells its operator: one overload for each type of attributes.
void Read(const Node&, std::monostate&) {}
void Read(const Node& node, Window& window) { window = WindowOf(node); }
void Read(const Node& node, Function& function) { function = FunctionOf(node); }
void Read(const Node& node, Lookup& lookup) { lookup = {node.inputs[0] == kNoValue, WholeOf(node, "offset")}; }
void Read(const Node& node, Normalisation& normalisation) {
  normalisation = {RealOf(node, "epsilon"), !node.attributes.contains("centred") || WholeOf(node, "centred") != 0};
  if (node.attributes.contains("groups")) normalisation.groups = static_cast<int32_t>(WholeOf(node, "groups"));
}
void Read(const Node& node, TokenChoice& choice) { choice.token = WholeOf(node, "token"); }
void Read(const Node& node, ChannelRange& range) { range.first = WholeOf(node, "first"); }
void Read(const Node& node, ConcatParts& parts) {
  const auto& sizes = std::get<std::vector<int64_t>>(node.attributes.at("sizes"));
  parts.count = static_cast<int32_t>(sizes.size());
  parts.of_planes = WholeOf(node, "of_planes") != 0;
  std::ranges::transform(sizes, parts.sizes.begin(), [](int64_t size) { return static_cast<int32_t>(size); });
}
void Read(const Node& node, Resampling& resampling) {
  resampling = {.linear = WholeOf(node, "linear") != 0,
                .coordinates = static_cast<Coordinates>(WholeOf(node, "coordinates")),
                .nearest = static_cast<Nearest>(WholeOf(node, "nearest")),
                .scale_h = RealOf(node, "scale_h"),
                .scale_w = RealOf(node, "scale_w")};
}
void Read(const Node& node, SpaceBlock& space) {
  space = {static_cast<int32_t>(WholeOf(node, "block")), WholeOf(node, "places_first") != 0};
}
void Read(const Node& node, Rotation& rotation) {
  rotation = {static_cast<int32_t>(WholeOf(node, "heads")), static_cast<int32_t>(WholeOf(node, "size")),
              static_cast<int32_t>(WholeOf(node, "pairs"))};
}
void Read(const Node& node, Attention& attention) {
  attention.heads = static_cast<int32_t>(WholeOf(node, "heads"));
  if (node.attributes.contains("group_size")) {
    attention.group_size = static_cast<int32_t>(WholeOf(node, "group_size"));
  }
  attention.scale = RealOf(node, "scale");
  if (Is(node, "DisentangledAttention")) attention.places = WholeOf(node, "places");
  if (!Is(node, "BiasedAttention")) return;
  attention.length = WholeOf(node, "length");
  attention.reach = WholeOf(node, "reach");
  if (node.attributes.contains("windows")) attention.windows = WholeOf(node, "windows");
}

// Channels, height and width of one row. Missing dimensions are 1; those past the fourth count as width.
NetworkValue RowExtent(const std::string& name, const Shape& shape) {
  NetworkValue value{name, 1, 1, 1};
  if (shape.size() > 1) value.channels = shape[1];
  if (shape.size() == 3) value.width = shape[2];
  if (shape.size() > 3) value.height = shape[2];
  for (size_t i = 3; i < shape.size(); ++i) value.width *= shape[i];
  return value;
}

bool PaysAsCsr(const DenseMatrix& matrix) {
  constexpr int64_t kOneIn = 2;  // zeros, at least
  const int64_t elements = matrix.rows * matrix.cols;
  return (elements - matrix.nnz()) * kOneIn >= elements;
}

// The formats that weights are kept in where they pay, the more wanted first; dense where none does.
struct FormatRule {
  Format format;
  bool (*pays)(const DenseMatrix& matrix);
};
constexpr FormatRule kFormatRules[] = {
    {CsrMatrix::kFormat, PaysAsCsr},
};

class Lowering {
 public:
  explicit Lowering(Graph graph) : graph_(std::move(graph)), network_values_(graph_.values.size(), -1) {}

  StatusOr<Network> Run() {
    network_.producer = graph_.producer;
    const int64_t batch = graph_.sequences ? graph_.sequences->batch : graph_.ShapeOf(graph_.inputs[0])[0];
    network_.batch_size = batch == kFreeBatch ? 0 : batch;
    SWIZZLE_RETURN_IF_ERROR(CheckOutputs());
    CountReads();
    if (graph_.sequences) {
      LowerSequenceInputs();
    } else {
      for (int input : graph_.inputs) {
        const Value& value = graph_.values[input];
        network_.inputs.push_back(PortOf(value.name, input, AddNetworkValue(input)));
        if (value.arrives_whole) network_.inputs.back().dtype = value.wholes->quantisation.dtype;
      }
    }
    for (const Node& node : graph_.nodes) SWIZZLE_RETURN_IF_ERROR(LowerNode(node));
    SetPatternSizes(network_);
    for (const GraphOutput& output : graph_.outputs) LowerOutput(output);
    SWIZZLE_RETURN_IF_ERROR(network_.Validate());
    return std::move(network_);
  }

 private:
  Status CheckOutputs() const {
    for (const GraphOutput& output : graph_.outputs) {
      const Value& value = graph_.values[output.value];
      if (value.constant || value.dtype != DType::kFloat32) {
        return Unimplemented("graph output '", output.name,
                             "' is a constant or a shape; only activations are supported");
      }
    }
    return {};
  }

  void CountReads() {
    reads_.assign(graph_.values.size(), 0);
    for (const Node& node : graph_.nodes) {
      for (int input : node.inputs) {
        if (input != kNoValue) ++reads_[input];
      }
    }
  }

  int AddNetworkValue(int value) {
    network_.values.push_back(RowExtent(graph_.values[value].name, graph_.ShapeOf(value)));
    network_.values.back().per_token = graph_.values[value].per_token;
    network_.values.back().zeros = graph_.values[value].zeros;
    if (const auto& wholes = graph_.values[value].wholes; wholes && wholes->quantisation.per_tensor()) {
      network_.values.back().quantisation = wholes->quantisation;
    }
    return network_values_[value] = static_cast<int>(network_.values.size()) - 1;
  }

  // Activations and inputs that an embedding reads become values; the mask, and what nothing reads, only ports.
  void LowerSequenceInputs() {
    const GraphSequences& sequences = *graph_.sequences;
    SequenceInputs& inputs = network_.sequences.emplace();
    inputs.length = sequences.length == kFreeBatch ? 0 : sequences.length;
    inputs.masked_bias = sequences.masked_bias;
    inputs.skips_masked = sequences.skips_masked;
    inputs.padding = sequences.padding;
    inputs.longest = sequences.longest;
    for (int input : graph_.inputs) {
      const Value& value = graph_.values[input];
      if (input == sequences.mask) inputs.mask = static_cast<int>(network_.inputs.size());
      if (input == sequences.counted) inputs.counted = static_cast<int>(network_.inputs.size());
      if (input == sequences.ends) {
        inputs.end = {static_cast<int>(network_.inputs.size()), sequences.ends_at_largest, sequences.end_id};
      }
      NetworkPort port{value.name, value.dtype, TokenDims(), -1};
      const bool is_activation = value.dtype == DType::kFloat32;
      if (is_activation) port.dims.push_back(graph_.ShapeOf(input)[1]);
      if (is_activation || reads_[input] > 0) {
        port.value = AddNetworkValue(input);
        network_.values.back().ids = !is_activation;
      }
      network_.inputs.push_back(std::move(port));
    }
  }

  // [batch where it is fixed, length]
  Shape TokenDims() const {
    Shape dims;
    if (network_.batch_size > 0) dims.push_back(network_.batch_size);
    dims.push_back(network_.sequences->length == 0 ? -1 : network_.sequences->length);
    return dims;
  }

  // As the graph's output is shaped, where that is known: one number a token may stand without a dimension of its own.
  NetworkPort SequencePortOf(const GraphOutput& output, int network_value) const {
    const NetworkValue& value = network_.values[network_value];
    Shape dims = TokenDims();
    if (!value.per_token) dims.pop_back();
    if (output.shape) {
      const size_t leading = value.per_token ? 2 : 1;
      dims.insert(dims.end(), output.shape->begin() + static_cast<std::ptrdiff_t>(leading), output.shape->end());
    } else {
      dims.push_back(value.channels);
    }
    return {output.name, DType::kFloat32, std::move(dims), network_value};
  }

  NetworkPort PortOf(const std::string& name, int value, int network_value) const {
    const Shape& shape = graph_.ShapeOf(value);
    const bool free = network_.batch_size == 0;
    return {name, DType::kFloat32, Shape(shape.begin() + (free ? 1 : 0), shape.end()), network_value};
  }

  Status LowerNode(const Node& node) {
    const std::optional<Op> op = OpOf(node);
    if (!op) return Unimplemented(Describe(node), " cannot run: no layer does what it does");
    const int output = node.outputs[0];
    if (op == Op::kReshape && IsSameRow(node)) {
      const int same = network_values_[output] = network_values_[node.inputs[0]];
      if (graph_.values[output].zeros) {  // they were counted by this name
        network_.values[same].name = graph_.values[output].name;
        network_.values[same].zeros = graph_.values[output].zeros;
      }
      return {};
    }
    if (op == Op::kTranspose) {
      LowerTranspose(node);
      return {};
    }
    Layer layer;
    layer.SetOp(*op);
    layer.name = node.name;
    std::visit([&](auto& attributes) { Read(node, attributes); }, layer.attributes);
    layer.epilogue = EpilogueOf(node);
    for (int i = 0; i < InputCount(layer); ++i) layer.inputs.push_back(network_values_[node.inputs[i]]);
    if (layer.epilogue.residual) layer.inputs.push_back(network_values_[node.inputs[kResidualInput]]);
    if (HasWeight(layer.op)) layer.weight = LowerWeight(node, TraitsOf(layer.op));
    layer.output = AddNetworkValue(output);
    network_.layers.push_back(std::move(layer));
    return {};
  }

  int AddLayer(Op op, const std::string& name, int input, int output) {
    Layer layer;
    layer.SetOp(op);
    layer.name = name;
    layer.inputs = {input};
    layer.output = output;
    network_.layers.push_back(std::move(layer));
    return output;
  }

  int AddNetworkValue(NetworkValue value) {
    network_.values.push_back(std::move(value));
    return static_cast<int>(network_.values.size()) - 1;
  }

  // The layer takes a row that is [rows, columns] by its channels and gives one that is [columns, rows]; where the
  // graph splits these otherwise, reshapes stand around it.
  void LowerTranspose(const Node& node) {
    const int64_t rows = WholeOf(node, "rows");
    int input = network_values_[node.inputs[0]];
    const int64_t columns = network_.values[input].elements() / rows;
    if (network_.values[input].channels != rows) {
      input =
          AddLayer(Op::kReshape, node.name + ".rows", input, AddNetworkValue({node.name + ".rows", rows, 1, columns}));
    }
    const int output = AddNetworkValue(node.outputs[0]);
    if (network_.values[output].channels == columns) {
      AddLayer(Op::kTranspose, node.name, input, output);
      return;
    }
    const int transposed =
        AddLayer(Op::kTranspose, node.name, input, AddNetworkValue({node.name + ".columns", columns, 1, rows}));
    AddLayer(Op::kReshape, node.name + ".columns", transposed, output);
  }

  bool IsSameRow(const Node& reshape) const {
    return SameExtent(network_.values[network_values_[reshape.inputs[0]]],
                      RowExtent("", graph_.ShapeOf(reshape.outputs[0])));
  }

  int LowerWeight(const Node& node, const OpTraits& traits) {
    const WeightRule rule = traits.weight;
    if (rule == WeightRule::kPattern) return LowerPattern(node);
    const auto at = static_cast<size_t>(traits.operands);  // behind the operands
    const int constant = node.inputs[at];
    DenseMatrix matrix;
    matrix.rows = graph_.ShapeOf(constant)[0];
    matrix.values = TakeFloats(constant);
    matrix.cols = static_cast<int64_t>(matrix.values.size()) / matrix.rows;
    Weight weight;
    const auto& wholes = graph_.values[constant].wholes;
    // Beside real activations whole numbers mean that these are quantised when they are read: those over tokens are,
    // and those of which the node says so.
    const bool reads_wholes =
        graph_.sequences || graph_.values[node.inputs[0]].wholes || node.attributes.contains(kByPosition);
    if (wholes && reads_wholes && (wholes->quantisation.per_tensor() || wholes->axis == 0)) {
      weight.quantisation = wholes->quantisation;
    }
    if (node.Input(at + 1) != kNoValue) weight.bias = TakeFloats(node.inputs[at + 1]);
    if (rule == WeightRule::kSparseOrDense) {
      weight.matrix = ChooseFormat(std::move(matrix));
    } else {
      weight.matrix = std::move(matrix);
    }
    return weights_.Add(std::move(weight));
  }

  // Of inputs 3 and 4: row offsets and column indices, INT32.
  int LowerPattern(const Node& node) {
    constexpr size_t kOffsets = 3, kIndices = 4;
    AttentionPattern pattern;
    pattern.tokens = graph_.ShapeOf(node.inputs[kOffsets])[0] - 1;
    pattern.row_offsets = Take<uint32_t>(node.inputs[kOffsets]);
    pattern.col_indices = Take<uint32_t>(node.inputs[kIndices]);
    return weights_.Add({std::move(pattern), {}});
  }

  std::vector<float> TakeFloats(int value) { return Take<float>(value); }

  // A constant's elements; the constant goes with its last reader, so that weights are not held twice for long.
  template <typename T>
  std::vector<T> Take(int value) {
    Tensor& tensor = *graph_.values[value].constant;
    std::vector<T> taken(tensor.bytes.size() / sizeof(T));
    if (!taken.empty()) std::memcpy(taken.data(), tensor.bytes.data(), tensor.bytes.size());
    if (--reads_[value] == 0) tensor = Tensor();
    return taken;
  }

  void LowerOutput(const GraphOutput& output) {
    int network_value = network_values_[output.value];
    const auto is_input = [&](const NetworkPort& port) { return port.value == network_value; };
    if (std::any_of(network_.inputs.begin(), network_.inputs.end(), is_input)) {
      network_value = AddCopy(output.name, network_value);
    }
    network_.outputs.push_back(graph_.sequences ? SequencePortOf(output, network_value)
                                                : PortOf(output.name, output.value, network_value));
  }

  int AddCopy(const std::string& name, int input) {
    NetworkValue copied = network_.values[input];
    copied.name = name;
    return AddLayer(Op::kActivation, name + ".copy", input, AddNetworkValue(std::move(copied)));
  }

  Graph graph_;
  Network network_;
  WeightCollection weights_{network_.weights};
  std::vector<int> network_values_;  // by graph value; -1: none
  std::vector<int> reads_;           // by graph value, still to come
};

}  // namespace

bool IsChosen(Format format) {
  return format == DenseMatrix::kFormat ||
         std::ranges::find(kFormatRules, format, &FormatRule::format) != std::end(kFormatRules);
}

WeightMatrix ChooseFormat(DenseMatrix matrix) {
  for (const FormatRule& rule : kFormatRules) {
    if (!rule.pays(matrix)) continue;
    StatusOr<WeightMatrix> held = WeightMatrix::FromDense(rule.format, matrix);
    if (held.ok()) return *std::move(held);
  }
  return matrix;
}

StatusOr<Network> Lower(Graph graph) { return Lowering(std::move(graph)).Run(); }

}  // namespace swizzle
