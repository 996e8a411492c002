// The walk over the nodes of a sequence graph that finds out what each computes, by abstract interpretation: every
// value gets a form (forms.h), and canonical operators are emitted where forms become activations. It goes by what
// nodes do, not by how exporters arrange them. Internal to the pass RecogniseSequences (sequences/recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_WALK_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_WALK_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/sequences/emitter.h"
#include "model_loader/sequences/forms.h"

namespace swizzle {

// Methods that interpret a node return its first output's form; an error says why the value is unknown.
class Walk {
 public:
  explicit Walk(Graph& graph) : graph_(graph) {}

  // The canonical graph. The one that was read is of no use afterwards.
  StatusOr<Graph> Run();
  const std::vector<std::pair<std::string, int>>& counts() const { return out_.counts(); }

 private:
  using Result = StatusOr<Form>;
  struct Interpreter {
    std::string_view op;
    Result (Walk::*run)();
  };
  static const Interpreter* FindInterpreter(std::string_view op);

  // The frame.
  void AddInputs();
  Status Step(const Node& node);
  StatusOr<Form> Interpret();
  Status CheckSpent() const;
  void FreeConstants(const Node& node);
  Status SetOutputs();
  Status SetOutput(GraphOutput& output, int read);
  Status CheckSequences();

  // Of the node under the walk.
  const Node& node() const { return *node_; }
  bool HasInput(size_t i) const { return node().Input(i) != kNoValue; }
  const Form& Input(size_t i);
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
  void SetOther(size_t output, Form form);
  template <typename... Parts>
  Status Refuse(const Parts&... why) const {
    return Unimplemented(Describe(node()), " (opset ", graph_.opset,
                         ") is not supported in a model of token sequences: ", why...);
  }

  // Known numbers.
  Form KnownConstant(int value) const;
  Result EvaluateKnown();      // all inputs are known
  Result EvaluateConstants();  // all inputs are constants of the graph
  Result MoveKnown();          // elements go elsewhere as they are
  Result ComputeKnown();       // element-wise
  StatusOr<Number> ComputeNumber(const std::vector<Number>& inputs, DType dtype, const PointFunction& function) const;
  StatusOr<Wholes> WholesOf(size_t input, const char* what);
  StatusOr<std::vector<int64_t>> IntegersOf(size_t input, const char* what);
  StatusOr<std::optional<std::vector<int64_t>>> AxesOr(size_t input, int64_t rank);  // attribute axes or this input
  std::optional<double> NumberOf(size_t input);  // the one that all its elements are
  std::optional<double> NumberOf(const Known& known) const;
  std::optional<int64_t> IntegerOf(const Known& known) const;  // likewise, of a whole number
  StatusOr<std::vector<float>> FloatsOf(size_t input, int64_t count, const char* what);
  StatusOr<std::pair<Shape, std::span<const float>>> FloatTensor(size_t input, const char* what) const;
  bool IsCountingUp(const Known& known, int64_t& offset) const;

  // Shapes.
  Result Rearrange(const std::function<std::optional<View>(const View&)>& change);
  Result InterpretShape();
  Result InterpretReshape();
  Result InterpretTranspose();
  Result InterpretSqueeze();
  Result InterpretUnsqueeze();
  Result InterpretExpand();
  Result InterpretFlatten();
  Result InterpretSlice();
  Result InterpretSplit();
  Result InterpretGather();
  Result InterpretConcat();
  Result InterpretGatherElements();
  Result InterpretGatherND();
  Result InterpretConstantOfShape();
  Result InterpretRange();
  StatusOr<Wholes> TargetShape(const Wholes& from, Wholes target, bool allow_zero) const;
  Result SliceAxis(const Form& form, int64_t axis, const Whole& start, const Whole& end);
  Result SliceConstant(const Known& known, int64_t axis, int64_t start, const Whole& end);

  // Element by element.
  Result InterpretElementwise();
  Result CombineTokenNumbers();
  Result CombinePositions();
  Result CombineTwoPositions(const Positions& a, const Positions& b);
  Result CombineTokens();
  Result CombineChannels(const Tokens& tokens, size_t constant);
  StatusOr<std::vector<float>> ChannelVector(const Tokens& tokens, size_t constant);
  Result AddPositionsTable(const Tokens& tokens, size_t constant);
  Result CombineTwo(Tokens a, Tokens b);
  Result CombinePool();

  // Activations.
  Axes LengthAxis() const;
  Axes BatchAxis() const;
  static Axes ChannelAxis(int64_t channels);
  StatusOr<Tokens> Materialised(const Tokens& tokens);
  StatusOr<Tokens> Contiguous(const Tokens& tokens);
  StatusOr<Tokens> AsMatrix(const Form& form);  // the last dimension is the channels, all in order
  StatusOr<Tokens> AsTokens(const Form& form);
  Tokens WithChannels(const Tokens& like, int value) const;

  // Layer normalisation.
  Result CombineMoments();
  Result FinishMoment(const Moment& moment, std::vector<float> shift);
  Result InterpretReduceMean();
  Result InterpretReduceSum();
  Result InterpretLayerNorm();
  Result LayerNormOf(const Tokens& tokens, size_t scale, size_t shift, float usual_epsilon);

  // Linear layers.
  Result InterpretMatMul();
  Result InterpretGemm();
  StatusOr<Tokens> LinearOf(const Tokens& x, size_t weight, bool transposed, float alpha);
  StatusOr<Tokens> WithBias(const Tokens& x, size_t bias, float beta);

  // Attention.
  Result ScoresOf(const Tokens& queries, const Tokens& keys, double scale);
  Result ContextOf(const Scores& scores, const Tokens& values);
  StatusOr<std::pair<int, double>> HeadMatrix(const Tokens& tokens, const Axes& channels);
  Result CombineScores();
  Result SelectScores(Scores scores, size_t at);
  Result MaskScores(Scores scores, const TokenNumbers& mask, double bias);
  Result InterpretSoftmax();
  Result InterpretAttention();        // of the standard
  Result InterpretPackedAttention();  // com.microsoft
  StatusOr<Tokens> SplitHeads(const Tokens& tokens, int64_t heads) const;
  Status UseMask(int input);
  Status UseIds(int input);

  // Masks of pairs of places.
  int64_t FixedLength() const;
  StatusOr<Pairs> PairsOf(const Known& known) const;
  StatusOr<Pairs> AsPairs(size_t input);
  Result CombinePairs();
  Result MovePairs();
  Result InterpretTrilu();
  StatusOr<Scores> WithPairs(Scores scores, const Pairs& pairs, MaskUse use);
  StatusOr<Scores> WithCausalMask(Scores scores);
  StatusOr<int> SparseAttentionOf(const Scores& scores, int values);

  // Embeddings and pools.
  Result EmbeddingOf(size_t table, const Form& ids);
  Result SelectTokenOf(const Tokens& tokens, size_t axis, int64_t token, bool keep);
  Result MeanOf(const Tokens& tokens, size_t axis, bool keep);

  // com.microsoft.
  Result InterpretSkipLayerNorm();
  Result InterpretEmbedLayerNorm();
  Result InterpretBiasGelu();
  StatusOr<Tokens> AddTokens(const Tokens& a, const Tokens& b);

  Graph& graph_;
  Emitter out_;
  const Node* node_ = nullptr;
  std::vector<std::optional<Form>> forms_;                       // by value of the graph that was read
  std::vector<int> reads_;                                       // by value, still to come
  std::map<int, std::vector<std::pair<Samples, int>>> applied_;  // functions applied, by value of the new graph
  int64_t held_ = 0;                                             // elements of the constants that were read
  int64_t numbers_left_ = int64_t{1} << 21;                      // that may be listed
  int64_t pair_work_left_ = int64_t{1} << 33;                    // calls of element-wise functions on pairs of places
  std::map<std::pair<SharedPairs, MaskUse>, std::shared_ptr<const MaskPattern>> masks_;  // read so far
  std::map<std::shared_ptr<const MaskPattern>, std::pair<int, int>> patterns_;           // of the new graph
  SharedPairs causal_;
  GraphSequences sequences_;
  std::vector<int> ids_;                                    // inputs read as ids
  bool masks_attention_ = false, plain_attention_ = false;  // seen so far
  bool masked_mean_ = false, plain_mean_ = false;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_WALK_H_
