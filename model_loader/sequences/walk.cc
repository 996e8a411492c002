#include "model_loader/sequences/walk.h"

#include <algorithm>

#include "model_loader/graph/rewriter.h"

namespace swizzle {

const Walk::Interpreter* Walk::FindInterpreter(std::string_view op) {
  static constexpr Interpreter kInterpreters[] = {
      {"Attention", &Walk::InterpretAttention},
      {"BiasGelu", &Walk::InterpretBiasGelu},
      {"Concat", &Walk::InterpretConcat},
      {"ConstantOfShape", &Walk::InterpretConstantOfShape},
      {"EmbedLayerNormalization", &Walk::InterpretEmbedLayerNorm},
      {"Expand", &Walk::InterpretExpand},
      {"FastGelu", &Walk::InterpretBiasGelu},
      {"Flatten", &Walk::InterpretFlatten},
      {"FusedMatMul", &Walk::InterpretMatMul},
      {"Gather", &Walk::InterpretGather},
      {"GatherElements", &Walk::InterpretGatherElements},
      {"GatherND", &Walk::InterpretGatherND},
      {"Gemm", &Walk::InterpretGemm},
      {"LayerNormalization", &Walk::InterpretLayerNorm},
      {"MatMul", &Walk::InterpretMatMul},
      {"Range", &Walk::InterpretRange},
      {"ReduceMean", &Walk::InterpretReduceMean},
      {"ReduceSum", &Walk::InterpretReduceSum},
      {"Reshape", &Walk::InterpretReshape},
      {"Shape", &Walk::InterpretShape},
      {"SkipLayerNormalization", &Walk::InterpretSkipLayerNorm},
      {"Slice", &Walk::InterpretSlice},
      {"Softmax", &Walk::InterpretSoftmax},
      {"Split", &Walk::InterpretSplit},
      {"Squeeze", &Walk::InterpretSqueeze},
      {"Transpose", &Walk::InterpretTranspose},
      {"Trilu", &Walk::InterpretTrilu},
      {"Unsqueeze", &Walk::InterpretUnsqueeze},
  };
  const auto found = std::find_if(std::begin(kInterpreters), std::end(kInterpreters),
                                  [&](const Interpreter& interpreter) { return interpreter.op == op; });
  return found == std::end(kInterpreters) ? nullptr : found;
}

StatusOr<Graph> Walk::Run() {
  sequences_ = *graph_.sequences;
  constexpr int64_t kOne = 1;
  if (sequences_.length == kOne) return Unimplemented("the model's sequences have length 1");
  forms_.resize(graph_.values.size());
  reads_.resize(graph_.values.size());
  for (const Node& each : graph_.nodes) {
    for (int input : each.inputs) {
      if (input != kNoValue) ++reads_[input];
    }
  }
  for (const Value& value : graph_.values) held_ += value.constant ? value.constant->elements() : 0;
  AddInputs();
  for (const Node& each : graph_.nodes) SWIZZLE_RETURN_IF_ERROR(Step(each));
  SWIZZLE_RETURN_IF_ERROR(SetOutputs());
  SWIZZLE_RETURN_IF_ERROR(CheckSequences());
  Graph& graph = out_.graph();
  graph.name = graph_.name;
  graph.producer = graph_.producer;
  graph.opset = graph_.opset;
  graph.sequences = sequences_;
  const int mask_place =
      static_cast<int>(std::find(graph.inputs.begin(), graph.inputs.end(), sequences_.mask) - graph.inputs.begin());
  Rewriter(graph).Finish();
  if (sequences_.mask != kNoValue) graph.sequences->mask = graph.inputs[mask_place];
  return std::move(graph);
}

// Inputs are [batch, length] of whole numbers, as the reader made sure.
void Walk::AddInputs() {
  for (int input : graph_.inputs) {
    const Value& value = graph_.values[input];
    TokenNumbers numbers;
    numbers.input = out_.AddInput(value.name, value.dtype);
    numbers.dtype = value.dtype;
    numbers.view.dims = {BatchAxis(), LengthAxis()};
    forms_[input] = std::move(numbers);
  }
}

Axes Walk::BatchAxis() const {
  const Whole size = sequences_.batch == kFreeBatch ? Whole{1, 1, 0} : Whole{sequences_.batch};
  return AsDimension({AxisKind::kBatch, size});
}

Axes Walk::LengthAxis() const {
  const Whole size = sequences_.length == kFreeBatch ? Whole{1, 0, 1} : Whole{sequences_.length};
  return AsDimension({AxisKind::kLength, size});
}

Axes Walk::ChannelAxis(int64_t channels) { return AsDimension({AxisKind::kChannels, Whole{channels}, 1}); }

const Form& Walk::Input(size_t i) {
  const int value = node().inputs[i];
  if (!forms_[value]) {
    forms_[value] = graph_.IsConstant(value)
                        ? KnownConstant(value)
                        : Form(Unknown{Unimplemented("'", graph_.values[value].name, "' is not known")});
  }
  return *forms_[value];
}

void Walk::SetOther(size_t output, Form form) {
  if (output < node().outputs.size() && node().outputs[output] != kNoValue) {
    forms_[node().outputs[output]] = std::move(form);
  }
}

Status Walk::Step(const Node& each) {
  node_ = &each;
  out_.SetName(each.name);
  StatusOr<Form> form = Interpret();
  // Only what a node says it cannot do is left for others to judge.
  if (!form.ok() && form.status().code() != StatusCode::kUnimplemented) return form.status();
  if (form.ok()) {
    SetOther(0, *std::move(form));
  } else {
    for (size_t i = 0; i < each.outputs.size(); ++i) SetOther(i, Unknown{form.status()});
  }
  forms_.resize(graph_.values.size());
  FreeConstants(each);
  return CheckSpent();
}

StatusOr<Form> Walk::Interpret() {
  bool all_known = true;
  for (size_t i = 0; i < node().inputs.size(); ++i) {
    if (!HasInput(i)) continue;
    const Form& input = Input(i);
    if (const auto* unknown = std::get_if<Unknown>(&input)) return unknown->why;
    all_known = all_known && std::holds_alternative<Known>(input);
  }
  if (all_known) return EvaluateKnown();
  if (const Interpreter* interpreter = FindInterpreter(node().op)) return (this->*interpreter->run)();
  return InterpretElementwise();
}

// What readers share each gets a copy of, so many times at most: as in the pass Canonicalise.
Status Walk::CheckSpent() const {
  constexpr int64_t kMaxSharing = 8, kFree = int64_t{1} << 24;
  if (out_.spent() <= kMaxSharing * held_ + kFree) return {};
  return InvalidArgument(Describe(node()), ": the graph makes ", out_.spent(), " elements of new constants out of ",
                         held_, "; the limit is ", kMaxSharing, " times that");
}

// Weights go once nobody reads them any more, so that none is held twice for long.
void Walk::FreeConstants(const Node& each) {
  for (int input : each.inputs) {
    if (input == kNoValue || static_cast<size_t>(input) >= reads_.size() || --reads_[input] > 0) continue;
    if (graph_.IsConstant(input)) graph_.values[input].constant->bytes = {};
  }
}

Status Walk::SetOutputs() {
  for (GraphOutput& output : graph_.outputs) {
    if (!forms_[output.value]) return Unimplemented("graph output '", output.name, "' is an input or a constant");
    SWIZZLE_RETURN_IF_ERROR(SetOutput(output, output.value));
  }
  return {};
}

// Outputs are [batch, length, channels] or [batch, channels]; one number a token may stand without channels.
Status Walk::SetOutput(GraphOutput& output, int read) {
  out_.SetName(output.name);
  if (const auto* unknown = std::get_if<Unknown>(&*forms_[read])) return unknown->why;
  const auto tokens = AsTokens(*forms_[read]);
  if (!tokens.ok()) return Annotate(tokens.status(), Concat("graph output '", output.name, "'"));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens whole, Contiguous(*tokens));
  SWIZZLE_ASSIGN_OR_RETURN(whole, Materialised(whole));
  const bool per_token = out_.IsPerToken(whole.value);
  const std::vector<Axes>& dims = whole.view.dims;
  const size_t leading = per_token ? 2 : 1;
  const auto only_channels = [](const Axes& dim) {
    return std::all_of(dim.begin(), dim.end(), [](const Axis& axis) { return axis.kind == AxisKind::kChannels; });
  };
  if (dims.size() < leading || dims[0] != BatchAxis() || (per_token && dims[1] != LengthAxis()) ||
      !std::all_of(dims.begin() + static_cast<std::ptrdiff_t>(leading), dims.end(), only_channels)) {
    return Unimplemented("graph output '", output.name, "' of shape ", Text(whole.view.shape()),
                         " does not begin with the batch", per_token ? " and the length" : "");
  }
  GraphOutput made{output.name, whole.value, DType::kFloat32, Shape()};
  for (const Whole& size : whole.view.shape()) made.shape->push_back(size.IsNumber() ? size.factor : -1);
  out_.graph().outputs.push_back(std::move(made));
  return {};
}

Status Walk::CheckSequences() {
  for (int input : ids_) {
    if (input == sequences_.mask) {
      return Unimplemented("input '", out_.graph().values[input].name, "' is read both as ids and as a mask");
    }
  }
  if (masks_attention_ && plain_attention_) return Unimplemented("some attention is masked and some is not");
  if (masked_mean_ && !masks_attention_) return Unimplemented("the mean of tokens is masked, attention is not");
  if (plain_mean_ && sequences_.mask != kNoValue) {
    return Unimplemented("attention is masked, but the mean of tokens is of masked ones too");
  }
  constexpr float kExcludes = -1e4f;
  sequences_.skips_masked = masks_attention_ && sequences_.masked_bias <= kExcludes;
  return {};
}

Status Walk::UseMask(int input) {
  if (sequences_.mask != kNoValue && sequences_.mask != input) {
    return Refuse("two inputs are read as masks, '", out_.graph().values[input].name, "' and '",
                  out_.graph().values[sequences_.mask].name, "'");
  }
  sequences_.mask = input;
  return {};
}

Status Walk::UseIds(int input) {
  ids_.push_back(input);
  return {};
}

}  // namespace swizzle
