// Products of whole numbers as exporters write them, operator by operator, become products of the real ones:
//
//   QuantizeLinear, DynamicQuantizeLinear or a graph input of UINT8 -> MatMulInteger or ConvInteger, its weight a
//   constant
//     -> perhaps Add of INT32, a constant -> Cast -> Mul by the scale of x times the weight's
//
// Quantisers of ONNX Runtime and SparseML write these. Edits through the rewriter that it is given, which must outlive
// it; single-owner.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_INTEGER_PRODUCTS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_INTEGER_PRODUCTS_H_

#include <optional>

#include "model_loader/graph/rewriter.h"

namespace swizzle {

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

  // The chain behind a node MatMulInteger or ConvInteger.
  struct Product {
    Rounding rounding;
    Tensor weight_scales;               // one, or one a channel of the output: a vector
    int factor;                         // what Mul multiplies by
    int add = -1, cast = -1, mul = -1;  // nodes; add may be -1
  };

  // Of whole numbers; nothing where neither of the two makes them.
  std::optional<Rounding> RoundingOf(int wholes) const;
  // Whether two values are one, or equal constants; kNoValue is only itself.
  bool AreSame(int a, int b) const;
  // The constant at input `i`, or null.
  const Tensor* ConstantAt(const Node& node, size_t i) const;
  // Likewise; false if there is something else.
  bool OptionalConstant(const Node& node, size_t i, const Tensor*& constant) const;
  // A constant of these whole numbers in real ones, which remembers them (Value::wholes).
  StatusOr<int> AddReal(int given, const Tensor& scales, const Tensor* zero_points, int64_t axis);

  // The only reader of the value; -1 if there is none such, or it is another operator.
  int SoleReader(int value, const char* op) const;

  // Of node `index`, where it is such a product and all that follows is as it should be.
  std::optional<Product> Find(int index) const;
  // The node becomes `op`, which reads `read` and the weight in real numbers, whose channels are dimension `axis`; an
  // Add of INT32 becomes one of real numbers, Cast and Mul are gone. INVALID_ARGUMENT where numbers and scales
  // contradict each other.
  Status BecomeReal(int index, const Product& product, const char* op, int read, int64_t axis);

 private:
  bool IsByteInput(int value) const;
  std::optional<Tensor> WeightScales(int by, const Rounding& rounding) const;
  bool HasBias(const Node& add, int product, int64_t scales) const;
  Status MakeBiasReal(int add, int product, int scale);

  Rewriter& rewriter_;
  Graph& graph_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_INTEGER_PRODUCTS_H_
