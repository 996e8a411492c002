// What a device computes of dense tensors that no kernel row is for: what stands between the layers of a model that no
// plan takes whole (model_loader/offload). A view, a sum, a reduction, a product of two activations.
//
// Arguments are plain values; all memory is the device's, but for what a function says. Functions check nothing: the
// caller did. They queue work on a stream of the device, as Kernel::run does, and allocate nothing. Thread-safe.
#ifndef SWIZZLE_KERNELS_BACKEND_DEVICE_FUNCTIONS_H_
#define SWIZZLE_KERNELS_BACKEND_DEVICE_FUNCTIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/dtype.h"

namespace swizzle {

class Stream;

inline constexpr int kMaxStridedRank = 8;
using StridedDims = std::array<int64_t, kMaxStridedRank>;

// to[index . to_strides] = from[index . from_strides] for every index below `dims`. In elements of 1, 2, 4, 8 or 16
// bytes, on multiples of which both lie.
struct StridedCopy {
  size_t element_bytes = 4;
  int rank = 0;
  StridedDims dims = {}, from_strides = {}, to_strides = {};
  const void* from = nullptr;
  void* to = nullptr;
};

// What is made of one element of each input (point_functions.h says what exactly).
enum class PointOp : uint8_t {
  // Of one. kCopy converts types.
  kCopy,
  kAbs,
  kNeg,
  kRelu,
  kNot,
  kFloor,
  kCeil,
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kErf,
  kSin,
  kCos,
  kTanh,
  kSigmoid,
  kSoftplus,
  kGelu,
  kGeluTanh,
  kLeakyRelu,    // alpha * x below 0
  kElu,          // alpha * (e^x - 1) below 0
  kHardSigmoid,  // alpha * x + beta, between 0 and 1
  kClip,         // between alpha and beta
  // Of two.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMax,
  kMin,
  kPRelu,
  kEqual,
  kGreater,
  kGreaterOrEqual,
  kLess,
  kLessOrEqual,
  kAnd,
  kOr,
  // Of three: the second where the first is true, else the third.
  kWhere,
};
constexpr int InputsOf(PointOp op) { return op == PointOp::kWhere ? 3 : op >= PointOp::kAdd ? 2 : 1; }
constexpr bool IsTest(PointOp op) { return op == PointOp::kNot || (op >= PointOp::kEqual && op <= PointOp::kOr); }

// A dense result, row-major over `dims`, of inputs that are read with strides of their own. Computed in FP32 or INT64.
// Types: FP32, INT64, INT32, BOOL, UINT8. FP32 becomes an integer as C++ converts it, BOOL by what is not 0.
struct Pointwise {
  struct Input {
    const void* data = nullptr;
    DType dtype = DType::kFloat32;
    StridedDims strides = {};
  };
  PointOp op = PointOp::kCopy;
  bool integers = false;  // whether it is computed in INT64
  float alpha = 0.0f, beta = 0.0f;
  int rank = 0;
  StridedDims dims = {};
  std::array<Input, 3> inputs = {};  // InputsOf(op) of them; the condition of kWhere is BOOL
  void* output = nullptr;
  DType output_dtype = DType::kFloat32;
};

enum class RowReduction : uint8_t { kSum, kMean, kMax, kMin, kSumSquare };

// Of `rows` rows of `length` >= 1 numbers each.
struct RowsReduced {
  RowReduction reduction = RowReduction::kSum;
  int64_t rows = 0, length = 0;
  const float* from = nullptr;
  float* to = nullptr;  // [rows]
};

// Running sums along rows, of FP32 or INT64.
struct RowsSummed {
  DType dtype = DType::kFloat32;
  int64_t rows = 0, length = 0;
  bool exclusive = false, reverse = false;
  const void* from = nullptr;
  void* to = nullptr;
};

// to = softmax(scale * from + bias) along rows, which [outer][middle][inner] count; `bias`, if any, has strides along
// these, in elements, and is dense along rows. `from` may be `to`. A row that is -infinity everywhere becomes zeros.
struct RowsSoftmax {
  int64_t outer = 1, middle = 1, inner = 1, length = 0;
  float scale = 1.0f;
  const float* from = nullptr;
  const float* bias = nullptr;
  int64_t bias_strides[3] = {};
  float* to = nullptr;
};

// Rows of `length` numbers, made mean 0 and variance 1, times `scale` plus `shift`, each [length] or null.
struct RowsNormalised {
  int64_t rows = 0, length = 0;
  float epsilon = 0.0f;
  const float* from = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float* to = nullptr;
};

// A matrix of FP32 for each sequence and head, a line a token, whose elements are neighbours.
struct HeadView {
  const float* data = nullptr;
  int64_t sequence_stride = 0, head_stride = 0, token_stride = 0;
};

// to = softmax(scale * queries keys^T + bias) values in each sequence and head, without the scores in memory. Factors
// are rounded to `factors`, FP16 or BF16; sums are FP32. `bias`, if it has data, has a line a query; a query of which
// all keys' bias is -infinity gets zeros.
struct HeadsAttended {
  DType factors = DType::kFloat16;
  int64_t sequences = 1, heads = 1, queries = 0, keys = 0;  // all positive, the latter two of a sequence
  int64_t channels = 0, value_channels = 0;                 // of a head: of queries and keys; of values and the result
  float scale = 1.0f;
  HeadView query, key, value, bias;
  int64_t bias_turns = 0;  // so many sequences have biases, which those behind them have again, in turn; 0: all
  float* to = nullptr;
  int64_t to_sequence_stride = 0, to_head_stride = 0, to_token_stride = 0;
};

// to[i][j][...] = from[i][index[j]][...]: `outer` times `count` pieces of so many bytes. Indices below 0 count from the
// end; where one is not of `size`, index 0 is read, and *bad becomes `mark` (INT32).
struct Picks {
  int64_t outer = 0, size = 0, count = 0, piece_bytes = 0;
  DType index_dtype = DType::kInt64;  // or INT32
  const void* from = nullptr;
  const void* indices = nullptr;
  void* to = nullptr;
  int32_t* bad = nullptr;
  int32_t mark = 0;
};

// A matrix of FP32 in each of a stack of `batch`; one of row_stride and column_stride is 1.
struct StackedMatrix {
  const float* data = nullptr;
  int64_t row_stride = 0, column_stride = 0, batch_stride = 0;
};

// to[batch] [m, n] = a [m, k] * b [k, n], sums in FP32. Rows of `to` are dense, `to_row_stride` apart.
struct StackedProduct {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  StackedMatrix a, b;
  float* to = nullptr;
  int64_t to_row_stride = 0, to_batch_stride = 0;
};

// to [planes][taps][positions] = from [planes][plane] at sources [taps][positions], 0 where these are below 0.
struct ColumnsGathered {
  int64_t planes = 0, plane = 0, taps = 0, positions = 0;
  const int32_t* sources = nullptr;
  const float* from = nullptr;
  float* to = nullptr;
};

// to [planes][plane], each element the sum of from [planes][columns] at entries [offsets[i], offsets[i + 1]), in order.
struct ColumnsSummed {
  int64_t planes = 0, plane = 0, columns = 0;
  const int32_t* offsets = nullptr;  // [plane + 1]
  const int32_t* entries = nullptr;
  const float* from = nullptr;
  float* to = nullptr;
};

// One dimension of [outer][from_size][inner] becomes `to_size`: each position a weighted sum of at most four.
struct WeightedTaps {
  int32_t at[4] = {};
  float weights[4] = {};
  int32_t count = 0;
  float start = 0.0f;  // what they are added to
};
struct Resized {
  int64_t outer = 0, from_size = 0, to_size = 0, inner = 0;
  const WeightedTaps* taps = nullptr;  // [to_size]
  const float* from = nullptr;
  float* to = nullptr;
};

// to [planes][positions]: the largest, or the mean with these divisors, of from [planes][plane] at sources
// [taps][positions] that are not below 0.
struct Pooled {
  int64_t planes = 0, plane = 0, taps = 0, positions = 0;
  const int32_t* sources = nullptr;
  const float* divisors = nullptr;  // [positions]; null: the largest
  const float* from = nullptr;
  float* to = nullptr;
};

class DeviceFunctions {
 public:
  virtual ~DeviceFunctions() = default;
  virtual void Copy(const StridedCopy& call, Stream& stream) const = 0;
  // All of these, of elements of one size, in any order: none reads or writes what another writes.
  virtual void CopyAll(std::span<const StridedCopy> calls, Stream& stream) const {
    for (const StridedCopy& call : calls) Copy(call, stream);
  }
  virtual void Map(const Pointwise& call, Stream& stream) const = 0;
  virtual void Reduce(const RowsReduced& call, Stream& stream) const = 0;
  virtual void Sum(const RowsSummed& call, Stream& stream) const = 0;
  virtual void Softmax(const RowsSoftmax& call, Stream& stream) const = 0;
  virtual void Normalise(const RowsNormalised& call, Stream& stream) const = 0;
  // Whether Attend takes it.
  virtual bool Attends(const HeadsAttended& call) const = 0;
  virtual void Attend(const HeadsAttended& call, Stream& stream) const = 0;
  virtual void Pick(const Picks& call, Stream& stream) const = 0;
  virtual void Multiply(const StackedProduct& call, Stream& stream) const = 0;
  virtual void Gather(const ColumnsGathered& call, Stream& stream) const = 0;
  virtual void Sum(const ColumnsSummed& call, Stream& stream) const = 0;
  virtual void Resize(const Resized& call, Stream& stream) const = 0;
  virtual void Pool(const Pooled& call, Stream& stream) const = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_DEVICE_FUNCTIONS_H_
