// Products of whole numbers as exporters write them, operator by operator, become products of the real ones:
//
//   QuantizeLinear, DynamicQuantizeLinear or a graph input of UINT8 -> MatMulInteger or ConvInteger, its weight a
//   constant
//     -> perhaps Add of INT32, a constant -> Cast -> Mul by the scale of x times the weight's
//
// the same MatMulInteger of two activations, and com.microsoft's DynamicQuantizeMatMul and MatMulIntegerToFloat, which
// are such a chain in one node. Quantisers of ONNX Runtime and SparseML write these. Edits through the rewriter that it
// is given, which must outlive it; single-owner.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_INTEGER_PRODUCTS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_INTEGER_PRODUCTS_H_

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "model_loader/graph/rewriter.h"

namespace swizzle {

// Attribute of a MatMul, a canonical Conv or com.microsoft's Attention whose input may be quantised when it runs, each
// position by a scale of its own (kernels/whole_numbers/position_weight.h).
inline constexpr char kByPosition[] = "swizzle_by_position";

class IntegerProducts {
 public:
  explicit IntegerProducts(Rewriter& rewriter) : rewriter_(rewriter), graph_(rewriter.graph()) {}

  // What makes an activation whole: what a real operator is to read in its place, and its scale.
  struct Rounding {
    int read;   // of DynamicQuantizeLinear its input, else the whole numbers
    int scale;  // kNoValue: nothing says, and 1 will do
    int zero_point;
    bool by_position;  // DynamicQuantizeLinear
  };

  // Of whole numbers; nothing where neither of the two makes them, or several scales do.
  std::optional<Rounding> RoundingOf(int wholes) const;
  // Whether two values are one, or equal constants; kNoValue is only itself.
  bool AreSame(int a, int b) const;
  // The constant at input `i`, or null.
  const Tensor* ConstantAt(const Node& node, size_t i) const;
  // Likewise; false if there is something else.
  bool OptionalConstant(const Node& node, size_t i, const Tensor*& constant) const;
  // A constant of these whole numbers in real ones, which remembers them (Value::wholes).
  StatusOr<int> AddReal(int given, const Tensor& scales, const Tensor* zero_points, int64_t axis);

  // Where node `index` is such a product and all that follows is as it should be: it becomes a MatMul or Conv of real
  // numbers, and what made these of its sums is gone. Its weight comes to stand behind a DequantizeLinear, and so does
  // an input of a scale that is known beforehand; what DynamicQuantizeLinear rounds is not rounded at all, and the
  // MatMul marked kByPosition. Whether it was one.
  bool Unround(int index);

 private:
  // The chain behind a node MatMulInteger or ConvInteger.
  struct Chain {
    int factor = kNoValue;              // what Mul multiplies by
    int add = -1, cast = -1, mul = -1;  // nodes; add may be -1
  };
  // What a product reads in place of whole numbers.
  struct Weight {
    int wholes = kNoValue, zero_points = kNoValue;
    std::vector<float> scales;  // one, or one a channel of dimension `axis`
    int64_t axis = 0;
  };

  bool UnroundChain(int index);
  bool UnroundActivations(int index, const Chain& chain);
  bool UnfuseProduct(int index);
  bool UnfuseDynamicProduct(int index);

  // The only reader of the value; -1 if there is none such, or it is another operator.
  int SoleReader(int value, const char* op) const;
  std::optional<Chain> ChainBehind(int index) const;
  std::optional<Rounding> RoundingBefore(const Node& product) const;
  bool IsByteInput(int value) const;
  bool IsNumber(int value) const;
  bool MultipliesBy(int factor, int a, int b) const;
  std::optional<std::vector<float>> WeightScales(int by, const Rounding& rounding, int64_t channels,
                                                 int64_t from_end) const;
  // The weight, if it is a constant that these scales and zero points fit.
  std::optional<Weight> WeightOf(int wholes, int zero_points, std::vector<float> scales, int64_t axis) const;
  bool HasBias(const Node& add, int product, size_t scales, int64_t from_end) const;
  void MakeBiasReal(int add, int product, int scale);
  void BecomeReal(int index, const Chain& chain, const char* op, std::vector<int> inputs);
  // The node, of com.microsoft, becomes a product, and perhaps a bias behind it.
  void BecomeLinear(int index, int x, const Weight& weight, int bias, bool by_position);

  // New DequantizeLinear nodes before node `index`: what they make.
  int RealInput(int index, const Rounding& rounding);
  int RealWeight(int index, const Weight& weight);
  int Dequantise(int index, int wholes, int scale, int zero_point, std::optional<int64_t> axis);

  Rewriter& rewriter_;
  Graph& graph_;
  // Weights in real numbers, by what they are made of: products that share one read one.
  std::map<std::tuple<int, int, std::vector<float>, int64_t>, int> real_weights_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_INTEGER_PRODUCTS_H_
