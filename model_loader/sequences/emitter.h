// Builds the canonical graph of a model of token sequences, operator by operator.
//
// Values are matrices [kFreeBatch, channels], per token or per row; methods return the value that a new node makes.
// Single-owner.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_EMITTER_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_EMITTER_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/format/attention_pattern.h"
#include "model_loader/graph/graph.h"
#include "model_loader/semantics/point_function.h"

namespace swizzle {

class Emitter {
 public:
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  // How many nodes of each kind stand for operators of the model, by the names that reports use.
  const std::vector<std::pair<std::string, int>>& counts() const { return counts_; }
  void Count(const std::string& what);

  // Elements of all constants made so far.
  int64_t spent() const { return spent_; }
  void Spend(size_t elements) { spent_ += static_cast<int64_t>(elements); }

  // New nodes and values are called after this one until the next call.
  void SetName(const std::string& name) { name_ = name; }

  // Whole numbers, one a token.
  int AddInput(const std::string& name, DType dtype);
  // An activation that is made elsewhere, per token.
  int AddTokens(const std::string& name, int64_t channels);

  int64_t Channels(int value) const { return graph_.ShapeOf(value)[1]; }
  bool IsPerToken(int value) const { return graph_.values[value].per_token; }

  // `table` is [V, C]; ids may be kNoValue: by position, from `offset`.
  int Embedding(int ids, Tensor table, int64_t offset);
  // The table that an activation's rows are taken from by position, and the first of them; nothing for any other.
  struct PositionTable {
    int constant = kNoValue;
    int64_t offset = 0;
  };
  std::optional<PositionTable> PositionTableOf(int x) const;
  // weight [M, K], row-major; `wholes`: by rows, what stands for it.
  int Linear(int x, int64_t rows, std::vector<float> weight, std::optional<Quantisation> wholes = std::nullopt);
  // The same, held to these whole numbers.
  int Quantise(int x, const Quantisation& as);
  int Affine(int x, std::vector<float> scale, std::vector<float> shift);
  // x times factors by channel; a norm that makes x gets them for its own.
  int Scale(int x, std::vector<float> factors);
  int LayerNorm(int x, std::vector<float> scale, std::vector<float> shift, const Normalisation& norm);
  // What every attention is told; heads as in kernels/operator/attributes.h.
  struct AttentionInputs {
    int q, k, v;
    int64_t heads, group_size;
    float scale;
  };
  int Attention(const AttentionInputs& inputs);
  // The pattern, as constants of the graph: INT32 row offsets and column indices (kernels/format/attention_pattern.h).
  int SparseAttention(const AttentionInputs& inputs, std::pair<int, int> pattern);
  std::pair<int, int> Pattern(const AttentionPattern& pattern);
  // Biases [heads, N], as Op::kBiasedAttention has them.
  struct BiasTable {
    std::vector<float> biases;
    int64_t length = 0, reach = 0;
    int64_t windows = 1;
  };
  int BiasedAttention(const AttentionInputs& inputs, const BiasTable& table);
  // Vectors [2 * channels of q + 1, places], as Op::kDisentangledAttention has them. REQUIRES: heads share nothing.
  int DisentangledAttention(const AttentionInputs& inputs, int64_t places, const std::vector<float>& vectors);
  // `table`: a constant [positions, 2 * pairs], as Op::kRotary has it.
  int Rotary(int x, int table, const Rotation& rotation);
  int Table(const Tensor& table);
  // places[i]: whose place in its sequence the i-th token is. Behind attention tokens are permuted before its last
  // linear layers, so that what is added to these is still their residual.
  int PermuteTokens(int x, std::span<const int32_t> places);
  int SelectToken(int x, int64_t token);
  int MeanTokens(int x);
  int Add(int a, int b);
  int Multiply(int a, int b);
  int Softmax(int x);
  int Apply(int x, const KnownFunction& function);

  // The value whose channels are these of `x`; only where what makes them can be made to leave out and reorder
  // channels.
  StatusOr<int> SelectChannels(int x, const std::vector<int64_t>& channels) { return SelectChannels(x, channels, 0); }

 private:
  int AddAttention(const char* op, const AttentionInputs& inputs, const std::vector<int>& constants,
                   std::map<std::string, Attribute> attributes = {});
  int AddPerToken(const std::string& name, DType dtype, int64_t channels);
  int AddNode(const char* op, std::vector<int> inputs, int64_t channels, bool per_token,
              std::map<std::string, Attribute> attributes = {});
  StatusOr<int> SelectChannels(int x, const std::vector<int64_t>& channels, int depth);
  // Whether only linear layers lie between it and attention.
  bool IsLinearInAttended(int x) const;
  // The node that makes a value; -1 where none does.
  int ProducerOf(int x) const { return static_cast<size_t>(x) < producers_.size() ? producers_[x] : -1; }
  int AddFloats(const char* suffix, Shape shape, std::span<const float> values);
  // A constant of these numbers: one that was made before, where there is such a one.
  int Weight(const Shape& shape, std::span<const float> numbers, std::optional<Quantisation> wholes);
  std::string FreshName(const std::string& suffix);
  static std::optional<WholeNumbers> SelectedWholes(const std::optional<WholeNumbers>& wholes,
                                                    const std::vector<int64_t>& rows);
  // The elements, a row of `row` each, that belong to these channels.
  int SelectRows(int constant, size_t row, const std::vector<int64_t>& channels);

  Graph graph_;
  int64_t spent_ = 0;
  std::string name_;
  std::map<std::string, int> names_taken_;
  std::vector<int> producers_;                            // by value: a node, or -1
  std::unordered_map<size_t, std::vector<int>> weights_;  // made by Weight, by a hash of their numbers
  std::map<std::pair<int, std::vector<int64_t>>, int> selected_;
  std::vector<std::pair<int, int>> quantised_;  // values, and what they are quantised
  std::vector<std::pair<std::string, int>> counts_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_EMITTER_H_
