// What an operator is told beside its operands: one type for each kind of operator that is told something, and their
// union. Plain values.
//
// Whoever keeps, prints or compares attributes names every field of every type in a structured binding, and visits the
// union without a default: a type or field that is new does not compile until each of them knows it.
#ifndef SWIZZLE_KERNELS_OPERATOR_ATTRIBUTES_H_
#define SWIZZLE_KERNELS_OPERATOR_ATTRIBUTES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>

namespace swizzle {

// A sliding window over height and width; in elements.
struct Window {
  int32_t kernel_h = 1, kernel_w = 1;
  int32_t stride_h = 1, stride_w = 1;
  int32_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int32_t dilation_h = 1, dilation_w = 1;
  bool count_include_pad = false;  // kAveragePool: divide by the whole window, not by its part inside the plane

  int64_t taps() const { return int64_t{kernel_h} * kernel_w; }
  bool IsPointwise() const {
    return kernel_h == 1 && kernel_w == 1 && stride_h == 1 && stride_w == 1 && pad_top == 0 && pad_left == 0 &&
           pad_bottom == 0 && pad_right == 0;
  }
  bool operator==(const Window&) const = default;
};

// What kFunction computes of each element, or an epilogue.
enum class FunctionKind : uint8_t {
  kSigmoid,      // 1 / (1 + exp(-x))
  kSilu,         // x / (1 + exp(-x))
  kHardSigmoid,  // clamp(alpha * x + beta, 0, 1)
  kHardSwish,    // x * clamp(alpha * x + beta, 0, 1); alpha 1/6 and beta 1/2 are ONNX's HardSwish
  kLeakyRelu,    // x where x >= 0, else alpha * x
  kTanh,
  kGelu,      // x / 2 * (1 + erf(x / sqrt(2)))
  kGeluTanh,  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
};
inline constexpr int kFunctionKindCount = 8;
std::string_view FunctionKindName(FunctionKind kind);

struct Function {
  FunctionKind kind = FunctionKind::kSigmoid;
  float alpha = 0.0f;  // finite; 0 where the kind has none
  float beta = 0.0f;
  // Whether zeros that pad channels stay zeros.
  bool KeepsZero() const { return kind != FunctionKind::kSigmoid && kind != FunctionKind::kHardSigmoid; }
  bool operator==(const Function&) const = default;
};

// Which row of an embedding table a token takes: the id that stands in inputs[0], which is INT32, or,
// without inputs, its position in its sequence plus `offset`. All are in range: whoever takes requests checked.
struct Lookup {
  bool by_position = false;
  int64_t offset = 0;
  bool operator==(const Lookup&) const = default;
};

// Heads are equal parts of the channels, in order, of q and the output and, perhaps fewer, of k and v: head h of q
// reads head h / group_size of both (grouped-query attention, Ainslie et al., 2023). kSparseAttention: every sequence
// has as many tokens as the pattern, all in their places, and no key bias; the scale is positive. Spare tokens come
// last. kBiasedAttention: the biases go by distance, key - query, where those beyond `reach` have the farthest one's,
// or, where `length` is not 0, by pairs of places in sequences of that length (operator/pair_biases.h).
// Where `windows` is more than 1, every sequence has windows * length tokens, and each `length` of them, which are a
// window, attend to one another alone (Liu et al., "Swin Transformer", 2021).
// kDisentangledAttention: operator/place_vectors.h; no heads are shared.
struct Attention {
  int32_t heads = 1;  // of q
  float scale = 1.0f;
  int64_t length = 0;      // kSparseAttention: the pattern's tokens; kBiasedAttention: a window's, or 0
  int64_t nonzeros = 0;    // kSparseAttention: the pattern's
  bool packed = false;     // one operand holds the channels of q, k and v, in this order (plan/fuse_layers.h)
  int64_t reach = 0;       // kBiasedAttention
  int64_t windows = 1;     // kBiasedAttention: of a sequence
  int64_t places = 0;      // kDisentangledAttention: the weight's columns
  int32_t group_size = 1;  // heads of q that share one of k and v; it divides `heads`

  int32_t key_heads() const { return heads / group_size; }
  bool operator==(const Attention&) const = default;
};

// Of kLayerNorm. Without centring it is RMS normalisation: y = x / sqrt(mean(x^2) + epsilon) * W + bias (Zhang and
// Sennrich, 2019). Groups are equal parts of the channels, in order, each of which has its own mean and variance: heads
// whose queries and keys are normalised (Dehghani et al., 2023).
struct Normalisation {
  float epsilon = 0.0f;
  bool centred = true;
  int32_t groups = 1;
  bool operator==(const Normalisation&) const = default;
};

// Of kSelectToken: from 0, or from -1 backwards; sequences that are shorter give their last.
struct TokenChoice {
  int64_t token = 0;
  bool operator==(const TokenChoice&) const = default;
};

inline constexpr int kMaxParts = 8;

// Of kConcat: what each operand has of the output's channels, or, of each channel, of its plane's positions; the other
// extents are alike.
struct ConcatParts {
  int32_t count = 0;  // of operands, 1 to kMaxParts
  bool of_planes = false;
  std::array<int32_t, kMaxParts> sizes = {};  // those behind `count` are 0
  bool operator==(const ConcatParts&) const = default;
};

// Of kSlice: the first of the channels that it takes, which are as many as its output has.
struct ChannelRange {
  int64_t first = 0;
  bool operator==(const ChannelRange&) const = default;
};

// Where a position of kResize's output lies in its input: ONNX's coordinate_transformation_mode (resampling.h).
enum class Coordinates : uint8_t { kHalfPixel, kPytorchHalfPixel, kAlignCorners, kAsymmetric };
inline constexpr int kCoordinatesCount = 4;
// Which neighbour is the nearest: ONNX's nearest_mode.
enum class Nearest : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };
inline constexpr int kNearestCount = 4;
// As ONNX spells them.
std::string_view CoordinatesName(Coordinates coordinates);
std::string_view NearestName(Nearest nearest);

// Of kResize. A scale is how many positions of the output one of the input becomes, as the model gives it: the output's
// size is rounded down. 0: the model gives the size, and the scale is the quotient of the two.
struct Resampling {
  bool linear = false;  // between the neighbours of each axis, else the nearest is taken
  Coordinates coordinates = Coordinates::kHalfPixel;
  Nearest nearest = Nearest::kRoundPreferFloor;  // as made where linear
  float scale_h = 0.0f, scale_w = 0.0f;
  bool operator==(const Resampling&) const = default;
};

// Of kDepthToSpace: channels become blocks of positions, `block` high and wide. The input's channel of an output
// channel c and a place (y, x) in a block is c * block^2 + y * block + x, or, where `places_first`, (y * block + x) *
// channels + c: ONNX's modes CRD and DCR.
struct SpaceBlock {
  int32_t block = 1;
  bool places_first = false;
  bool operator==(const SpaceBlock&) const = default;
};

// kRotary (Su et al., "RoFormer", 2021) turns heads, the first heads * size channels in order; channels behind them
// stay as they are, and so do those of a head behind its pairs, which are channels j and pairs + j. A row of the weight
// has what both are multiplied by, then what turns them into each other:
//   y[j] = x[j] * W[p, j] - x[pairs + j] * W[p, pairs + j]
//   y[pairs + j] = x[pairs + j] * W[p, j] + x[j] * W[p, pairs + j]
struct Rotation {
  int32_t heads = 1;
  int32_t size = 2;
  int32_t pairs = 1;
  bool operator==(const Rotation&) const = default;
};

using Attributes = std::variant<std::monostate, Window, Function, Lookup, Attention, Normalisation, TokenChoice,
                                ConcatParts, ChannelRange, Resampling, SpaceBlock, Rotation>;

// The place of one of Attributes' types.
template <typename T, typename Variant = Attributes>
inline constexpr size_t kIndexOf = std::variant_npos;
template <typename T, typename First, typename... Rest>
inline constexpr size_t kIndexOf<T, std::variant<First, Rest...>> =
    std::is_same_v<T, First> ? 0 : 1 + kIndexOf<T, std::variant<Rest...>>;

// The overloads of all, for std::visit.
template <typename... Visitors>
struct Overloads : Visitors... {
  using Visitors::operator()...;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_ATTRIBUTES_H_
