// Operators on whole numbers, where plans and the interpreter do not have them: their weights become real numbers.
#include <algorithm>

#include "model_loader/expansions/attention_core.h"
#include "model_loader/expansions/constant_weights.h"
#include "model_loader/expansions/operators.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::expansions {
namespace {

// Constants of a DequantizeLinear; null where they are left out.
struct Constants {
  const Tensor *x = nullptr, *scales = nullptr, *zeros = nullptr;
  bool AreKnown(const Site& site) const {
    return x != nullptr && scales != nullptr && (zeros != nullptr || !site.Has(2));
  }
};

Constants ConstantsOf(const Site& site) {
  return {site.facts().ConstantOf(site.In(0)), site.facts().ConstantOf(site.In(1)),
          site.Has(2) ? site.facts().ConstantOf(site.In(2)) : nullptr};
}

StatusOr<const Tensor*> Known(Site& site, size_t input, const char* what) {
  const Tensor* const tensor = site.facts().ConstantOf(site.In(input));
  if (tensor == nullptr) return Unimplemented("its ", what, " is no constant of the same graph");
  return tensor;
}

// Input `x`, [directions, inputs, gates], as a constant [directions, gates, inputs].
StatusOr<int> GatesFirst(Site& site, size_t x, size_t scale, size_t zero) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* const weight, Known(site, x, "weight"));
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* const scales, Known(site, scale, "scale"));
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* const zeros, Known(site, zero, "zero point"));
  if (weight->shape.size() != 3) return InvalidArgument("its weight is ", ShapeText(weight->shape));
  const int64_t directions = weight->shape[0], inputs = weight->shape[1], gates = weight->shape[2];
  const bool by_gate = scales->shape == Shape{directions, gates};
  if (!by_gate && scales->shape != Shape{directions})
    return InvalidArgument("its scales are ", ShapeText(scales->shape));
  if (zeros->shape != scales->shape) return InvalidArgument("its zero points are ", ShapeText(zeros->shape));
  const std::vector<float> wholes = RealsOf(*weight), by = RealsOf(*scales), less = RealsOf(*zeros);
  std::vector<float> reals(wholes.size());
  for (int64_t d = 0; d < directions; ++d) {
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t g = 0; g < gates; ++g) {
        const auto s = static_cast<size_t>(by_gate ? d * gates + g : d);
        const float whole = wholes[static_cast<size_t>((d * inputs + i) * gates + g)];
        reals[static_cast<size_t>((d * gates + g) * inputs + i)] = (whole - less[s]) * by[s];
      }
    }
  }
  return site.Constant(Tensor::Floats({directions, gates, inputs}, reals));
}

// How MatMulNBits packs its weight.
struct PackedWeight {
  int64_t rows = 0, columns = 0, bits = 4, block = 0, blocks = 0;
  const Tensor *codes = nullptr, *scales = nullptr, *zeros = nullptr, *groups = nullptr;
};

Status CheckCounts(const PackedWeight& weight) {
  const int64_t row_bytes = weight.blocks * (weight.block * weight.bits / 8);
  const int64_t zero_bytes = (weight.blocks * weight.bits + 7) / 8;
  if (weight.codes->elements() != weight.rows * row_bytes) {
    return InvalidArgument("its weight has ", weight.codes->elements(), " bytes, not ", weight.rows * row_bytes);
  }
  if (weight.scales->elements() != weight.rows * weight.blocks) {
    return InvalidArgument("it has ", weight.scales->elements(), " scales, not ", weight.rows * weight.blocks);
  }
  const bool is_packed = weight.zeros != nullptr && weight.zeros->dtype == DType::kUint8;
  if (weight.zeros != nullptr && weight.zeros->elements() != weight.rows * (is_packed ? zero_bytes : weight.blocks)) {
    return InvalidArgument("it has ", weight.zeros->elements(), " zero points");
  }
  if (weight.groups != nullptr && weight.groups->elements() < weight.columns) {
    return InvalidArgument("its g_idx has ", weight.groups->elements(), " elements, not ", weight.columns);
  }
  return {};
}

StatusOr<PackedWeight> ReadPacked(Site& site) {
  PackedWeight weight;
  SWIZZLE_ASSIGN_OR_RETURN(weight.columns, site.Int("K", 0));
  SWIZZLE_ASSIGN_OR_RETURN(weight.rows, site.Int("N", 0));
  SWIZZLE_ASSIGN_OR_RETURN(weight.bits, site.Int("bits", 4));
  SWIZZLE_ASSIGN_OR_RETURN(weight.block, site.Int("block_size", 0));
  if (weight.bits != 2 && weight.bits != 4 && weight.bits != 8) {
    return Unimplemented("its weight has ", weight.bits, " bits; 2, 4 and 8 are supported");
  }
  constexpr int64_t kMostSide = int64_t{1} << 24;
  const auto is_side = [](int64_t side) { return side >= 1 && side <= kMostSide; };
  if (!is_side(weight.columns) || !is_side(weight.rows) || weight.block < 16 || weight.block > kMostSide) {
    return InvalidArgument("its K is ", weight.columns, ", its N ", weight.rows, ", its block_size ", weight.block);
  }
  if (weight.rows * weight.columns > kMostWeightBytes / static_cast<int64_t>(sizeof(float))) {
    return MakeError(StatusCode::kResourceExhausted, "its weight has ", weight.rows * weight.columns, " elements");
  }
  weight.blocks = (weight.columns + weight.block - 1) / weight.block;
  SWIZZLE_ASSIGN_OR_RETURN(weight.codes, Known(site, 1, "weight"));
  SWIZZLE_ASSIGN_OR_RETURN(weight.scales, Known(site, 2, "scale"));
  if (site.Has(3)) {
    SWIZZLE_ASSIGN_OR_RETURN(weight.zeros, Known(site, 3, "zero point"));
  }
  if (site.Has(4)) {
    SWIZZLE_ASSIGN_OR_RETURN(weight.groups, Known(site, 4, "g_idx"));
  }
  if (weight.groups != nullptr && weight.groups->dtype != DType::kInt32)
    return InvalidArgument("its g_idx is no INT32");
  if (weight.codes->dtype != DType::kUint8) return InvalidArgument("its weight is ", DTypeName(weight.codes->dtype));
  SWIZZLE_RETURN_IF_ERROR(CheckCounts(weight));
  return weight;
}

// [columns, rows], as MatMul multiplies with.
StatusOr<std::vector<float>> Unpacked(const PackedWeight& weight) {
  const std::vector<float> scales = RealsOf(*weight.scales);
  const bool is_packed = weight.zeros != nullptr && weight.zeros->dtype == DType::kUint8;
  const std::vector<float> given =
      weight.zeros != nullptr && !is_packed ? RealsOf(*weight.zeros) : std::vector<float>();
  const std::vector<float> groups = weight.groups != nullptr ? RealsOf(*weight.groups) : std::vector<float>();
  const int64_t row_bytes = weight.blocks * (weight.block * weight.bits / 8);
  const int64_t zero_bytes = (weight.blocks * weight.bits + 7) / 8;
  std::vector<float> reals(static_cast<size_t>(weight.rows * weight.columns));
  for (int64_t n = 0; n < weight.rows; ++n) {
    for (int64_t k = 0; k < weight.columns; ++k) {
      const int64_t group = groups.empty() ? k / weight.block : static_cast<int64_t>(groups[static_cast<size_t>(k)]);
      if (group < 0 || group >= weight.blocks) return InvalidArgument("its g_idx names block ", group);
      const auto at = static_cast<size_t>(n * weight.blocks + group);
      auto zero = static_cast<float>(int64_t{1} << (weight.bits - 1));
      if (is_packed) {
        zero = static_cast<float>(PackedAt(*weight.zeros, n * zero_bytes * 8 / weight.bits + group, weight.bits));
      } else if (!given.empty()) {
        zero = given[at];
      }
      const int64_t code = PackedAt(*weight.codes, n * row_bytes * 8 / weight.bits + k, weight.bits);
      reals[static_cast<size_t>(k * weight.rows + n)] = (static_cast<float>(code) - zero) * scales[at];
    }
  }
  return reals;
}

// Plans know constants of eight bits by channels.
bool IsRealConstant(const Site& site, const Constants& constants) {
  if (!constants.AreKnown(site)) return false;
  const DType dtype = constants.x->dtype;
  const auto block = site.Int("block_size", 0);
  const bool is_plain = dtype == DType::kInt8 || dtype == DType::kUint8 || dtype == DType::kInt32;
  return !is_plain || !block.ok() || *block != 0;
}

// The attributes that both ways have had from the first.
Attributes FirstAttributes(const Node& node) {
  Attributes attributes = node.attributes;
  for (const char* name : {"output_dtype", "precision"}) attributes.erase(name);
  return attributes;
}

// The type that the node names, `absent` where it names none.
StatusOr<DType> OutputType(const Site& site, DType absent) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t type, site.Int("output_dtype", 0));
  return type == 0 ? StatusOr<DType>(absent) : ElementTypeOf(type);
}

bool NamesType(const Node& node) {
  return node.attributes.contains("output_dtype") || node.attributes.contains("precision");
}

}  // namespace

bool WantsRealConstant(const Site& site) { return IsRealConstant(site, ConstantsOf(site)) || NamesType(site.node()); }

Status DequantizeLinear(Site& site) {
  const Constants constants = ConstantsOf(site);
  const DType scale_type = site.TypeOf(site.In(1));
  SWIZZLE_ASSIGN_OR_RETURN(const DType dtype, OutputType(site, scale_type));
  if (!IsRealConstant(site, constants)) {
    const int real = site.Make("DequantizeLinear", site.node().inputs, FirstAttributes(site.node()));
    site.Result(0, dtype == scale_type ? real : site.Cast(real, dtype));
    return {};
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, site.Int("axis", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t block, site.Int("block_size", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> reals,
                           Dequantised(*constants.x, *constants.scales, constants.zeros, axis, block));
  site.ConstantResult(TensorOf(dtype, constants.x->shape, reals));
  return {};
}

bool WantsZeroPoint(const Site& site) { return NamesType(site.node()); }

Status QuantizeLinear(Site& site) {
  std::vector<int> inputs = site.node().inputs;
  if (!site.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(const DType dtype, OutputType(site, DType::kUint8));
    const std::optional<Shape> shape = site.facts().Of(site.In(1)).shape;
    if (!shape || std::ranges::any_of(*shape, [](int64_t size) { return size < 0; })) {
      return Unimplemented("the shape of its scale is not known");
    }
    constexpr int64_t kMostScales = int64_t{1} << 26;
    const auto zeros = ElementCount(*shape);
    if (!zeros.ok() || *zeros > kMostScales) return InvalidArgument("its scale has shape ", ShapeText(*shape));
    inputs.resize(2);
    inputs.push_back(site.Constant(TensorOf(dtype, *shape, std::vector<float>(static_cast<size_t>(*zeros)))));
  }
  site.Result(0, site.Make("QuantizeLinear", std::move(inputs), FirstAttributes(site.node())));
  return {};
}

Status MatMulNBits(Site& site) {
  constexpr size_t kBias = 5;
  SWIZZLE_ASSIGN_OR_RETURN(const PackedWeight weight, ReadPacked(site));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> reals, Unpacked(weight));
  const DType dtype = weight.scales->dtype;
  const int constant = site.Constant(TensorOf(dtype, {weight.columns, weight.rows}, reals));
  int product = site.Make("MatMul", {site.In(0), constant});
  if (site.Has(kBias)) product = site.Make("Add", {product, site.In(kBias)});
  site.Result(0, product);
  return {};
}

// Real numbers in place of what ONNX Runtime rounds while it runs: nearer to the network that was quantised.
Status DynamicQuantizeLstm(Site& site) {
  constexpr size_t kW = 1, kR = 2, kWScale = 8, kWZero = 9, kRScale = 10, kRZero = 11, kGiven = 8;
  std::vector<int> inputs(site.node().inputs.begin(),
                          site.node().inputs.begin() + std::min<ptrdiff_t>(kGiven, std::ssize(site.node().inputs)));
  SWIZZLE_ASSIGN_OR_RETURN(inputs[kW], GatesFirst(site, kW, kWScale, kWZero));
  SWIZZLE_ASSIGN_OR_RETURN(inputs[kR], GatesFirst(site, kR, kRScale, kRZero));
  while (inputs.back() == kNoValue) inputs.pop_back();
  const std::vector<int> results = site.MakeSeveral("LSTM", std::move(inputs), site.node().attributes, 3);
  for (size_t i = 0; i < results.size(); ++i) site.Result(i, results[i]);
  return {};
}

}  // namespace swizzle::expansions
