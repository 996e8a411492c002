// A network: the typed, fused form of a model that plans are made from and that .swz files hold.
//
// Layers stand in execution order and refer to values by index; every layer makes exactly one value. Value 0 .. n-1 are
// described by `values`. The batch dimension is free (batch_size 0) or fixed.
//
// A network of token sequences computes its values per token, for the tokens of all sequences packed with no padding,
// or per row, one sequence being one row of the batch. Such values are matrices: their plane is 1.
//
// A Network is a value type; Validate() is run after lowering and after opening a packed file, and everything later
// trusts it.
#ifndef SWIZZLE_MODEL_LOADER_NETWORK_NETWORK_H_
#define SWIZZLE_MODEL_LOADER_NETWORK_NETWORK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/quantisation.h"
#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "kernels/operator/operator.h"

namespace swizzle {

// How much a plan computes at once. A network without token sequences has no use for `tokens`.
struct BatchSize {
  constexpr BatchSize(int64_t both) : rows(both), tokens(both) {}  // NOLINT: implicit, for a number of rows
  constexpr BatchSize(int64_t batch_rows, int64_t batch_tokens) : rows(batch_rows), tokens(batch_tokens) {}

  int64_t rows;
  int64_t tokens;
};

// One activation, without its batch dimension. channels, height and width are at least 1.
struct NetworkValue {
  std::string name;
  int64_t channels = 0;
  int64_t height = 1;
  int64_t width = 1;
  bool per_token = false;                         // else per row
  bool ids = false;                               // INT32 rows of embedding tables, in place of FP32
  std::optional<Quantisation> quantisation = {};  // whole numbers that plans may store it as, beside real ones
  std::optional<InputZeros> zeros = {};           // on calibration data

  Extent WithBatch(BatchSize size) const {
    return Extent{per_token ? size.tokens : size.rows, channels, height, width};
  }
  int64_t elements() const { return channels * height * width; }
  // What kernels may store it as beside real numbers: they know of one scale for all channels, and of UINT8, which
  // stands for what INT8 does with a zero point of 128 more.
  std::optional<Quantised> AsWholeNumbers() const;
};

// What it computes (Operator) and where it stands.
struct Layer : Operator {
  std::string name;         // of the ONNX node it came from (or the first of those fused)
  std::vector<int> inputs;  // values, as KernelArgs::inputs
  int output = -1;          // value
  int weight = -1;          // index into Network::weights, which several layers may name; -1: none
};

// How one input or output looks to a client.
struct NetworkPort {
  std::string name;
  // Ids and masks: INT64 or INT32; UINT8: the whole numbers that the value may be, of outputs in regions alone. Inputs
  // of token sequences are FP32 in regions alone.
  DType dtype = DType::kFloat32;
  Shape dims;      // without the batch dimension where that is free; with it where it is fixed. -1: the
                   // length of the sequences, where that is free
  int value = -1;  // -1: an input that is the mask, or that nothing reads

  // How requests bring it, or results take it away: ids as INT32.
  Storage storage() const {
    if (dtype == DType::kFloat32 || dtype == DType::kUint8) return {Layout::kNchw, dtype};
    return kIdStorage;
  }
};

// A sequence ends behind the first token of which an input holds a number, or, if at_largest, its largest one; behind
// its first token where none does.
struct SequenceEnd {
  int input = -1;  // -1: sequences end with their rows
  bool at_largest = false;
  int64_t id = 0;
  bool operator==(const SequenceEnd&) const = default;
};

// What a network of token sequences asks of its requests: inputs are [batch, length].
struct SequenceInputs {
  int64_t length = 0;         // 0: free
  int mask = -1;              // input that holds 1 where a token is to be attended to, else 0; -1: none, all are
  float masked_bias = 0.0f;   // what is added to the scores of a key whose mask is 0
  bool skips_masked = false;  // nothing else reads what is computed of masked tokens, so it need not be
  // Positions (Lookup) count, from 1, the tokens of which this input holds another number than `padding`, and are 0
  // where it holds that, as RoBERTa's; -1: all tokens, from 0.
  int counted = -1;
  int64_t padding = 0;
  int64_t longest = 0;   // tokens that a sequence may have, whatever its tables hold; 0: any number
  SequenceEnd end = {};  // nothing reads what would be computed of tokens behind it
  bool operator==(const SequenceInputs&) const = default;
};

struct Network {
  std::string producer;    // "pytorch 2.11.0"; informative
  int64_t batch_size = 0;  // 0: free
  std::vector<NetworkValue> values;
  std::vector<Layer> layers;
  std::vector<Weight> weights;
  std::vector<NetworkPort> inputs;
  std::vector<NetworkPort> outputs;
  std::optional<SequenceInputs> sequences;  // absent where no value is per token

  // INVALID_ARGUMENT, naming the layer, if an index is out of range, a value is used before it is made or made twice,
  // an extent does not follow from the layer's window and inputs, a weight's shape does not fit its layer, a sparse
  // weight is malformed, or a port names no value or has other elements than its value.
  Status Validate() const;
  // Validate, and that ports have no types that regions alone have (NetworkPort::dtype): the network is a whole model.
  Status ValidateModel() const;

  // The rows of the smallest table that is read by the ids in value `value`, or by positions (value -1): of these as
  // many as the longest sequence has, tables' offsets and the row for padding being taken off, or fewer where
  // `sequences` says so. 0: there is none.
  int64_t LookupLimit(int value) const;

  int64_t DenseWeightBytes() const;   // of all weights and biases, had they been stored dense
  int64_t StoredWeightBytes() const;  // as their formats store them
};

// Sets Attention::length and nonzeros of layers with a pattern to what the pattern says, where there is one.
void SetPatternSizes(Network& network);

// The layer at this batch size, stored in no way yet (AsRowSolves). REQUIRES: a validated layer.
Problem LayerProblem(const Network& network, const Layer& layer, BatchSize size, int threads);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_NETWORK_NETWORK_H_
