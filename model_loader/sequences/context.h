// What the function that interprets an operator sees: one node, the forms of its inputs, and where results go. Internal
// to the recogniser of token sequences (recognise.h). Single-owner.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_CONTEXT_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_CONTEXT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/sequences/emitter.h"
#include "model_loader/sequences/facts.h"
#include "model_loader/sequences/forms.h"
#include "model_loader/sequences/pairs.h"

namespace swizzle::sequences {

class Context {
 public:
  // `graph` is the one that is read; it outlives the context.
  explicit Context(Graph& graph);

  // The node under the walk, from Enter to Enter.
  void Enter(const Node& node);
  const Node& node() const { return *node_; }
  int64_t opset() const { return graph_.opset; }
  template <typename... Parts>
  Status Refuse(const Parts&... why) const {
    return Unimplemented(Describe(node()), " (opset ", graph_.opset,
                         ") is not supported in a model of token sequences: ", why...);
  }

  // Its inputs' forms. REQUIRES of Input: HasInput(i).
  bool HasInput(size_t i) const { return node().Input(i) != kNoValue; }
  const Form& Input(size_t i) { return FormOf(node().inputs[i]); }
  template <typename T>
  const T* InputAs(size_t i) {
    return HasInput(i) ? std::get_if<T>(&Input(i)) : nullptr;
  }
  template <typename T>
  bool AnyInputIs() {
    for (size_t i = 0; i < node().inputs.size(); ++i) {
      if (InputAs<T>(i) != nullptr) return true;
    }
    return false;
  }
  // Whether each input is of one of these.
  template <typename... Forms>
  bool AllInputsAre() {
    for (size_t i = 0; i < node().inputs.size(); ++i) {
      if (((InputAs<Forms>(i) == nullptr) && ...)) return false;
    }
    return true;
  }
  // What is known of an input from now on, for all who read it.
  void ReplaceInput(size_t i, Form form) { forms_[node().inputs[i]] = std::move(form); }

  // An output but the first, whose form is the function's result.
  void SetOther(size_t output, Form form);

  // The form of a value of the graph that is read; constants get theirs when first asked for.
  const Form& FormOf(int value);
  bool HasForm(int value) const { return forms_[value].has_value(); }
  void SetForm(int value, Form form) { forms_[value] = std::move(form); }

  // Constants of the graph that is read.
  const Tensor& Constant(int value) const { return *graph_.values[value].constant; }
  const std::optional<WholeNumbers>& WholesOf(int value) const { return graph_.values[value].wholes; }
  int AddConstant(const std::string& name, Tensor tensor);

  // The canonical graph under construction.
  Emitter& out() { return out_; }
  const Emitter& out() const { return out_; }

  // The batch and the length of the sequences as dimensions of views.
  Axes BatchAxis() const;
  Axes LengthAxis() const;
  // The length of all sequences; 0 where it is free or too great for masks of pairs.
  int64_t FixedLength() const;
  SequenceFacts& facts() { return facts_; }
  // Whether the graph that is read may look for the ends of sequences (ends.h).
  bool HasArgMax() const { return has_arg_max_; }

  // Whether so many numbers may still be listed; takes them from what is left.
  bool TakeNumbers(int64_t count) { return (numbers_left_ -= count) >= 0; }

  // Likewise for numbers by distance, which are many at once.
  bool TakeDistances(const SharedDistances& distances) {
    return distances != nullptr && (distances_left_ -= static_cast<int64_t>(distances->numbers.size())) >= 0;
  }

  // Activations with functions applied, by value of the new graph, so that each is computed once.
  std::vector<std::pair<Samples, int>>& AppliedTo(int value) { return applied_[value]; }
  // Activations with their tokens in another order, by value and rows, of the new graph, likewise.
  std::map<std::pair<int, std::vector<int32_t>>, int>& permuted() { return permuted_; }
  PairMaskCache& pair_masks() { return pair_masks_; }
  // Tables of the new graph that rows are taken from by position, and what tables of rotary embeddings are made of.
  std::map<int, std::shared_ptr<const PositionColumn::Table>>& position_tables() { return position_tables_; }
  std::vector<std::pair<PositionColumns, int>>& rotary_tables() { return rotary_tables_; }

 private:
  Graph& graph_;
  Emitter out_;
  const Node* node_ = nullptr;
  std::vector<std::optional<Form>> forms_;  // by value of the graph that is read
  std::map<int, std::vector<std::pair<Samples, int>>> applied_;
  std::map<std::pair<int, std::vector<int32_t>>, int> permuted_;
  PairMaskCache pair_masks_;
  std::map<int, std::shared_ptr<const PositionColumn::Table>> position_tables_;
  std::vector<std::pair<PositionColumns, int>> rotary_tables_;
  int64_t numbers_left_ = int64_t{1} << 21;
  int64_t distances_left_ = int64_t{1} << 26;
  SequenceFacts facts_;
  const bool has_arg_max_;
};

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_CONTEXT_H_
