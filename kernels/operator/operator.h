// The operators that layers and kernels are of, and what is true of each, in one table: predicates read it, and so do
// the loader's checks. An Operator is one of them with its attributes; layers and problems are operators somewhere.
// Plain values. Light, since the GPU's kernels include it (backend/kernel_args.h).
#ifndef SWIZZLE_KERNELS_OPERATOR_OPERATOR_H_
#define SWIZZLE_KERNELS_OPERATOR_OPERATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/operator/attributes.h"
#include "kernels/operator/epilogue.h"

namespace swizzle {

enum class Op : uint8_t {
  kConv,           // y = W * im2col(x): 1x1 convolution and linear layers included (window 1x1, plane 1)
  kDepthwiseConv,  // one filter per channel; W is [channels, window]
  kAdd,            // y = a + b, same extents
  kActivation,     // y = clamp(x), see Epilogue
  kMaxPool,
  kAveragePool,   // global average pooling is a window of the whole plane
  kSoftmax,       // over channels, per position
  kReshape,       // [batch, C, H, W] -> [batch, C*H*W, 1, 1] or any other split of the same row
  kMultiply,      // y = a * b, same extents
  kScale,         // y = a * b, b being [channels, 1, 1] of each image: squeeze-and-excite
  kFunction,      // y = f(x), see Function
  kTranspose,     // each row, a matrix [channels, plane], becomes [plane, channels]
  kConcat,        // the operands' channels one behind the other, or their planes, see ConcatParts
  kSlice,         // neighbouring channels of its input, see ChannelRange
  kResize,        // each plane made larger or smaller, see Resampling
  kDepthToSpace,  // [C * b * b, H, W] becomes [C, H * b, W * b], see SpaceBlock

  // Of token sequences. The batch of such an extent is the tokens of all sequences (see sequences.h), its plane is 1.
  kEmbedding,        // y[t] = row index(t) of W, see Lookup
  kLayerNorm,        // y = (x - mean(x)) / sqrt(variance(x) + epsilon) * W + bias over channels; W is [channels, 1]
  kAttention,        // softmax(q k^T * scale + key bias) v within each sequence and head; inputs q, k, v
  kSelectToken,      // one token of each sequence: [tokens, channels] -> [sequences, channels]
  kMeanTokens,       // the mean of each sequence's tokens with a key bias of 0 (zeros where there is none), likewise
  kSparseAttention,  // kAttention of each query to the keys that W, a pattern, gives its place; see Attention::length
  kBiasedAttention,  // kAttention whose scores, once scaled, W is added to: [heads, biases], see Attention::reach
  kDisentangledAttention,  // kAttention whose scores have products with vectors of W, see operator/place_vectors.h
  kRotary,         // y = x with pairs of each head's channels turned by W's row of the token's position, see Rotation
  kPermuteTokens,  // y[t] = x[W[t]] within each sequence, t being a place in it; W is [length, 1], of whole numbers
  kPlaneTokens,    // y[t] = W[t] + x[t - W.rows + plane], where there is one, t being a place in its row's sequence

  kConvertLayout,  // same extent, Problem::from -> Problem::to; the last, which the table's check goes by
};

// What the weight of an operator may be.
enum class WeightRule : uint8_t { kNone, kDense, kSparseOrDense, kPattern };

struct OpTraits {
  // What is true of some operators only.
  enum Flag : uint32_t {
    kPrunable = 1 << 0,       // its weight is a matrix that is multiplied with activations, which pruning is for
    kAddsResidual = 1 << 1,   // its epilogue may add a residual
    kClamps = 1 << 2,         // its epilogue may clamp
    kWorksInPlace = 1 << 3,   // its output may be its first input
    kPools = 1 << 4,          // each of its windows must touch the plane
    kKeepsChannels = 1 << 5,  // it has as many channels as its input, whatever becomes of the plane
    kOfSequences = 1 << 6,    // it knows of sequences: all its values are matrices
    kReducesTokens = 1 << 7,  // it takes values per token and makes one per row
    kMakesTokens = 1 << 8,    // it takes values per row and makes one per token
    kOnlyRenames = 1 << 9,    // no kernel solves it: plans give its output its input's place
    kOfPlansOnly = 1 << 10,   // plans put it between layers: no network has it
  };

  Op op;
  std::string_view name;  // as reports and errors print it; the graph's canonical operators are named alike
  int operands;           // without a residual; the most, where attributes say how many (InputCount)
  WeightRule weight;
  size_t attributes;  // kIndexOf of the type of its attributes
  uint32_t flags;

  constexpr bool Has(Flag flag) const { return (flags & flag) != 0; }
};

inline constexpr auto kOpTraits = [] {
  using enum OpTraits::Flag;
  constexpr size_t kNothing = kIndexOf<std::monostate>;
  return std::array{
      OpTraits{Op::kConv, "Conv", 1, WeightRule::kSparseOrDense, kIndexOf<Window>, kPrunable | kAddsResidual | kClamps},
      OpTraits{Op::kDepthwiseConv, "DepthwiseConv", 1, WeightRule::kDense, kIndexOf<Window>,
               kPrunable | kAddsResidual | kClamps | kKeepsChannels},
      OpTraits{Op::kAdd, "Add", 2, WeightRule::kNone, kNothing, kClamps | kWorksInPlace},
      OpTraits{Op::kActivation, "Activation", 1, WeightRule::kNone, kNothing, kClamps | kWorksInPlace},
      OpTraits{Op::kMaxPool, "MaxPool", 1, WeightRule::kNone, kIndexOf<Window>, kClamps | kPools | kKeepsChannels},
      OpTraits{Op::kAveragePool, "AveragePool", 1, WeightRule::kNone, kIndexOf<Window>,
               kClamps | kPools | kKeepsChannels},
      OpTraits{Op::kSoftmax, "Softmax", 1, WeightRule::kNone, kNothing, 0},
      OpTraits{Op::kReshape, "Reshape", 1, WeightRule::kNone, kNothing, kOnlyRenames},
      OpTraits{Op::kMultiply, "Multiply", 2, WeightRule::kNone, kNothing, kClamps | kWorksInPlace},
      OpTraits{Op::kScale, "Scale", 2, WeightRule::kNone, kNothing, kClamps},
      OpTraits{Op::kFunction, "Function", 1, WeightRule::kNone, kIndexOf<Function>, kClamps | kWorksInPlace},
      OpTraits{Op::kTranspose, "Transpose", 1, WeightRule::kNone, kNothing, 0},
      OpTraits{Op::kConcat, "Concat", kMaxParts, WeightRule::kNone, kIndexOf<ConcatParts>, 0},
      OpTraits{Op::kSlice, "Slice", 1, WeightRule::kNone, kIndexOf<ChannelRange>, 0},
      OpTraits{Op::kResize, "Resize", 1, WeightRule::kNone, kIndexOf<Resampling>, kKeepsChannels},
      OpTraits{Op::kDepthToSpace, "DepthToSpace", 1, WeightRule::kNone, kIndexOf<SpaceBlock>, 0},
      OpTraits{Op::kEmbedding, "Embedding", 1, WeightRule::kDense, kIndexOf<Lookup>, kOfSequences},
      OpTraits{Op::kLayerNorm, "LayerNorm", 1, WeightRule::kDense, kIndexOf<Normalisation>, kOfSequences},
      OpTraits{Op::kAttention, "Attention", 3, WeightRule::kNone, kIndexOf<Attention>, kOfSequences},
      OpTraits{Op::kSelectToken, "SelectToken", 1, WeightRule::kNone, kIndexOf<TokenChoice>,
               kOfSequences | kReducesTokens},
      OpTraits{Op::kMeanTokens, "MeanTokens", 1, WeightRule::kNone, kNothing, kOfSequences | kReducesTokens},
      OpTraits{Op::kSparseAttention, "SparseAttention", 3, WeightRule::kPattern, kIndexOf<Attention>, kOfSequences},
      OpTraits{Op::kBiasedAttention, "BiasedAttention", 3, WeightRule::kDense, kIndexOf<Attention>, kOfSequences},
      OpTraits{Op::kDisentangledAttention, "DisentangledAttention", 3, WeightRule::kDense, kIndexOf<Attention>,
               kOfSequences},
      OpTraits{Op::kRotary, "Rotary", 1, WeightRule::kDense, kIndexOf<Rotation>, kOfSequences | kWorksInPlace},
      OpTraits{Op::kPermuteTokens, "PermuteTokens", 1, WeightRule::kDense, kNothing, kOfSequences},
      OpTraits{Op::kPlaneTokens, "PlaneTokens", 1, WeightRule::kDense, kNothing, kMakesTokens},
      OpTraits{Op::kConvertLayout, "ConvertLayout", 1, WeightRule::kNone, kNothing, kOfPlansOnly},
  };
}();
inline constexpr size_t kOpCount = kOpTraits.size();

static_assert(
    [] {
      for (size_t i = 0; i < kOpCount; ++i) {
        if (kOpTraits[i].op != static_cast<Op>(i)) return false;
      }
      return kOpTraits[kOpCount - 1].op == Op::kConvertLayout;
    }(),
    "one row for each operator, in their order");

// Whether it is one of the enumeration: one that was cast from a number may be none.
constexpr bool IsKnown(Op op) { return static_cast<size_t>(op) < kOpCount; }

// REQUIRES: IsKnown(op).
constexpr const OpTraits& TraitsOf(Op op) { return kOpTraits[static_cast<size_t>(op)]; }

constexpr std::string_view OpName(Op op) { return IsKnown(op) ? TraitsOf(op).name : "unknown"; }

// Whether the op has two operands, both stored as Problem::from.
constexpr bool IsBinary(Op op) { return TraitsOf(op).operands == 2; }
constexpr bool IsAttention(Op op) { return TraitsOf(op).attributes == kIndexOf<Attention>; }
// Whether its output's plane follows from a window over its input's.
constexpr bool IsWindowed(Op op) { return TraitsOf(op).attributes == kIndexOf<Window>; }
constexpr bool WorksInPlace(Op op) { return TraitsOf(op).Has(OpTraits::kWorksInPlace); }
constexpr bool IsOfSequences(Op op) { return TraitsOf(op).Has(OpTraits::kOfSequences); }
constexpr bool IsPrunable(Op op) { return TraitsOf(op).Has(OpTraits::kPrunable); }
// Whether a token reads one row of its weight, whatever the others hold.
constexpr bool ReadsRowsOfTokens(Op op) {
  return op == Op::kEmbedding || op == Op::kRotary || op == Op::kPermuteTokens || op == Op::kPlaneTokens;
}
constexpr bool HasWeight(Op op) { return TraitsOf(op).weight != WeightRule::kNone; }

namespace internal {
[[noreturn]] void WrongAttributes(Op op);
}  // namespace internal

// As made, of the type that the operator has. REQUIRES: IsKnown(op).
Attributes AttributesOf(Op op);

// An operator with what it is told. The accessors of attributes end the program where the operator has others, which
// the loader has checked.
struct Operator {
  Op op = Op::kConv;
  Attributes attributes = Window();  // of the type that the table says
  Epilogue epilogue = {};

  // With attributes as made. REQUIRES: IsKnown(new_op).
  void SetOp(Op new_op) {
    op = new_op;
    attributes = AttributesOf(new_op);
  }
  void SetOp(Op new_op, const Attributes& its_attributes) {
    op = new_op;
    attributes = its_attributes;
  }

  template <typename T>
  const T& As() const {
    const T* const held = std::get_if<T>(&attributes);
    if (held == nullptr) internal::WrongAttributes(op);
    return *held;
  }
  template <typename T>
  T& As() {
    return const_cast<T&>(static_cast<const Operator*>(this)->As<T>());
  }

  const Window& window() const { return As<Window>(); }
  const Function& function() const { return As<Function>(); }
  const Lookup& lookup() const { return As<Lookup>(); }
  const Attention& attention() const { return As<Attention>(); }
  const Normalisation& normalisation() const { return As<Normalisation>(); }
  const TokenChoice& token_choice() const { return As<TokenChoice>(); }
  const ConcatParts& parts() const { return As<ConcatParts>(); }
  const ChannelRange& channel_range() const { return As<ChannelRange>(); }
  const Resampling& resampling() const { return As<Resampling>(); }
  const SpaceBlock& space_block() const { return As<SpaceBlock>(); }
  const Rotation& rotation() const { return As<Rotation>(); }
  Window& window() { return As<Window>(); }
  Function& function() { return As<Function>(); }
  Lookup& lookup() { return As<Lookup>(); }
  Attention& attention() { return As<Attention>(); }
  Normalisation& normalisation() { return As<Normalisation>(); }
  TokenChoice& token_choice() { return As<TokenChoice>(); }
  ConcatParts& parts() { return As<ConcatParts>(); }
  ChannelRange& channel_range() { return As<ChannelRange>(); }
  Resampling& resampling() { return As<Resampling>(); }
  SpaceBlock& space_block() { return As<SpaceBlock>(); }
  Rotation& rotation() { return As<Rotation>(); }

  bool operator==(const Operator&) const = default;
};

// Operands, all stored as Problem::from; without a residual.
inline int InputCount(const Operator& layer) {
  const auto* const lookup = std::get_if<Lookup>(&layer.attributes);
  if (lookup != nullptr && lookup->by_position) return 0;
  const auto* const attention = std::get_if<Attention>(&layer.attributes);
  if (attention != nullptr && attention->packed) return 1;
  const auto* const parts = std::get_if<ConcatParts>(&layer.attributes);
  if (parts != nullptr) return parts->count;
  return TraitsOf(layer.op).operands;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_OPERATOR_H_
