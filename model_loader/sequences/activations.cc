#include "model_loader/sequences/activations.h"

#include <algorithm>
#include <limits>

#include "model_loader/semantics/affine.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/mixtures.h"
#include "model_loader/sequences/moments.h"
#include "model_loader/sequences/moved_tokens.h"
#include "model_loader/sequences/pools.h"
#include "model_loader/sequences/rotary.h"

namespace swizzle::sequences {
namespace {

constexpr double kLeftOut = std::numeric_limits<double>::quiet_NaN();

// The constant's number for each channel; it must be the same for all tokens.
StatusOr<std::vector<float>> ChannelVector(Context& context, const Tokens& tokens, size_t constant) {
  const Known& known = *context.InputAs<Known>(constant);
  std::vector<float> listed;
  Shape shape;
  std::span<const float> floats;
  if (known.constant != kNoValue) {
    SWIZZLE_ASSIGN_OR_RETURN(const auto tensor, FloatTensor(context, constant, "operand"));
    shape = tensor.first;
    floats = tensor.second;
  } else {
    for (const Whole& size : known.shape) shape.push_back(size.factor);
    for (const Number& number : known.numbers) listed.push_back(static_cast<float>(number.real));
    floats = listed;
  }
  const std::vector<Axes>& dims = tokens.view.dims;
  if (shape.size() > dims.size()) return context.Refuse("its operand ", ShapeText(shape), " has too many dimensions");
  struct Place {
    int64_t channel, element;
  };
  std::vector<Place> places = {{tokens.view.first_channel, 0}};
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t skipped = dims.size() - shape.size();
    const int64_t size = i < skipped ? 1 : shape[i - skipped];
    const std::vector<int64_t> channels = ChannelsOf(dims[i], 0);
    const bool per_channel = size == static_cast<int64_t>(channels.size()) && SizeOf(dims[i]) == Whole{size};
    if (size != 1 && !per_channel)
      return context.Refuse("its operand ", ShapeText(shape), " is not one number per channel");
    std::vector<Place> next;
    for (const Place& place : places) {
      for (size_t j = 0; j < channels.size(); ++j) {
        next.push_back({place.channel + channels[j], place.element * size + (size == 1 ? 0 : static_cast<int64_t>(j))});
      }
    }
    places = std::move(next);
  }
  std::vector<float> vector(static_cast<size_t>(context.out().Channels(tokens.value)));
  if (places.size() != vector.size()) return context.Refuse("it has other channels than its operand");
  for (const Place& place : places) vector[place.channel] = floats[place.element];
  return vector;
}

// Adds [length, channels], which a model of fixed length may hold as a constant.
StatusOr<Form> AddPositionsTable(Context& context, const Tokens& tokens, size_t constant) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto tensor, FloatTensor(context, constant, "operand"));
  const Shape& shape = tensor.first;
  const size_t rank = tokens.view.rank();
  constexpr size_t kMatrix = 2;
  const int64_t channels = context.out().Channels(tokens.value);
  const bool fits = shape.size() >= kMatrix && shape.size() <= rank &&
                    tokens.view.dims[rank - 1] == ChannelAxis(channels) &&
                    tokens.view.Is(rank - 2, AxisKind::kLength) && shape.back() == channels &&
                    Whole{shape[shape.size() - 2]} == SizeOf(context.LengthAxis()) &&
                    static_cast<int64_t>(tensor.second.size()) == channels * shape[shape.size() - 2];
  if (!fits) return context.Refuse("its operand is no table of positions");
  const int table =
      context.out().Embedding(kNoValue, Tensor::Floats({shape[shape.size() - 2], channels}, tensor.second), 0);
  Tokens result = tokens;
  result.value = context.out().Add(tokens.value, table);
  return result;
}

StatusOr<Form> CombineChannels(Context& context, const Tokens& tokens, size_t constant) {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens result, Contiguous(context, tokens));
  const std::string& op = context.node().op;
  if (op != "Add" && op != "Sub" && op != "Mul" && op != "Div") return context.Refuse("its operand is not one number");
  auto vector = ChannelVector(context, result, constant);
  if (!vector.ok() && op == "Add") {
    auto table = AddPositionsTable(context, result, constant);
    if (table.ok()) return table;
  }
  if (!vector.ok()) return vector.status();
  const bool tokens_first = constant == 1;
  std::vector<float> scale(vector->size(), 1.0f), shift(vector->size(), 0.0f);
  for (size_t c = 0; c < vector->size(); ++c) {
    const ScaleAndShift channel = AsScaleAndShift(op, !tokens_first, (*vector)[c]);
    scale[c] = channel.scale;
    shift[c] = channel.shift;
  }
  if (op == "Div" && !tokens_first) return context.Refuse("it divides by an activation");
  result.value = context.out().Affine(result.value, std::move(scale), std::move(shift));
  return result;
}

// Add, Sub or Mul of two activations.
StatusOr<Form> CombineTwo(Context& context, Tokens a, Tokens b) {
  for (const size_t i : {0, 1}) {
    const bool by_position = context.out().PositionTableOf((i == 0 ? a : b).value).has_value();
    if (context.node().op != "Mul" || !by_position) continue;
    auto turned = TimesPositions(context, i == 0 ? b : a, i);
    if (turned.ok()) return turned;
  }
  if (a.view.first_channel != b.view.first_channel || !Broadcast(a.view, b.view) ||
      context.out().Channels(a.value) != context.out().Channels(b.value)) {
    SWIZZLE_ASSIGN_OR_RETURN(a, Contiguous(context, a));
    SWIZZLE_ASSIGN_OR_RETURN(b, Contiguous(context, b));
  }
  if (context.node().op == "Sub") {
    if (b.samples.empty()) b.samples.assign(SamplePoints().begin(), SamplePoints().end());
    for (double& sample : b.samples) sample = -sample;
  }
  if (context.node().op == "Add" || context.node().op == "Sub") {
    SWIZZLE_ASSIGN_OR_RETURN(Tokens sum, AddTokens(context, a, b));
    return sum;
  }
  if (context.node().op != "Mul") return context.Refuse("it takes two activations");
  SWIZZLE_ASSIGN_OR_RETURN(a, Materialised(context, a));
  SWIZZLE_ASSIGN_OR_RETURN(b, Materialised(context, b));
  const auto view = Broadcast(a.view, b.view);
  const bool same_channels = context.out().Channels(a.value) == context.out().Channels(b.value) &&
                             context.out().IsPerToken(a.value) == context.out().IsPerToken(b.value);
  if (!view || !same_channels) return context.Refuse("its inputs differ in shape");
  return Tokens{context.out().Multiply(a.value, b.value), {}, *view};
}

// Applies what is linear in an activation before it is squared, so that a norm by the mean of squares knows it again.
Status ApplyBeforeSquare(Context& context) {
  const Node& node = context.node();
  const bool squares = (node.op == "Pow" && NumberOf(context, 1) == 2.0) ||
                       (node.op == "Mul" && node.inputs.size() == 2 && node.inputs[0] == node.inputs[1]);
  const auto* tokens = squares ? context.InputAs<Tokens>(0) : nullptr;
  if (tokens == nullptr || tokens->samples.empty()) return {};
  const auto function = Recognised(tokens->samples);
  if (!function || !std::holds_alternative<LinearFunction>(*function)) return {};
  SWIZZLE_ASSIGN_OR_RETURN(Tokens applied, Materialised(context, *tokens));
  context.ReplaceInput(0, std::move(applied));
  return {};
}

}  // namespace

StatusOr<Tokens> AsTokens(Context& context, const Form& form) {
  if (const auto* unknown = std::get_if<Unknown>(&form)) return unknown->why;
  if (const auto* tokens = std::get_if<Tokens>(&form)) return *tokens;
  if (const auto* moved = std::get_if<MovedTokens>(&form)) return Settled(context, *moved);
  if (const auto* moment = std::get_if<Moment>(&form)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Form finished, FinishMoment(context, *moment, {}));
    return std::get<Tokens>(finished);
  }
  if (const auto* mixture = std::get_if<Mixture>(&form)) return RotatedOf(context, *mixture);
  if (const auto* numbers = std::get_if<PositionNumbers>(&form)) return EmbeddedOf(context, *numbers);
  if (const auto* masked = std::get_if<MaskedTokens>(&form); masked != nullptr && !masked->summed) {
    SWIZZLE_RETURN_IF_ERROR(context.facts().ReadMaskedTokens(context.out().graph(), masked->mask));
    return Tokens{masked->value, {}, masked->view};
  }
  return Unimplemented("it is no activation");  // outputs are asked for, too, where there may be no node
}

StatusOr<Tokens> Materialised(Context& context, const Tokens& tokens) {
  if (tokens.samples.empty()) return tokens;
  Tokens applied{tokens.value, {}, tokens.view};
  auto& known = context.AppliedTo(tokens.value);
  for (const auto& [samples, value] : known) {
    if (samples != tokens.samples) continue;
    applied.value = value;
    return applied;
  }
  const auto function = Recognised(tokens.samples);
  if (!function) return Unimplemented("an element-wise function is none of those that kernels compute");
  applied.value = context.out().Apply(tokens.value, *function);
  known.emplace_back(tokens.samples, applied.value);
  return applied;
}

StatusOr<std::pair<Tokens, double>> WithoutFactor(Context& context, const Tokens& tokens) {
  const auto function = tokens.samples.empty() ? std::nullopt : Recognised(tokens.samples);
  const auto* linear = function ? std::get_if<LinearFunction>(&*function) : nullptr;
  if (linear != nullptr && linear->shift == 0.0f && linear->scale != 0.0f) {
    return std::pair{Tokens{tokens.value, {}, tokens.view}, double{linear->scale}};
  }
  SWIZZLE_ASSIGN_OR_RETURN(Tokens applied, Materialised(context, tokens));
  return std::pair{std::move(applied), 1.0};
}

View ViewOfActivation(Context& context, const Shape& places, int64_t channels) {
  View view;
  view.dims = {context.BatchAxis(), context.LengthAxis(), ChannelAxis(channels)};
  if (places.empty()) return view;
  Wholes shape = {SizeOf(view.dims[0])};
  for (const int64_t size : places) shape.push_back(Whole{size});
  shape.push_back(Whole{channels});
  return Reshaped(view, shape).value_or(view);
}

StatusOr<Tokens> Contiguous(Context& context, const Tokens& tokens) {
  Tokens contiguous = tokens;
  SWIZZLE_ASSIGN_OR_RETURN(contiguous, Materialised(context, contiguous));
  OrderedChannels ordered = InOrder(tokens.view);
  SWIZZLE_ASSIGN_OR_RETURN(contiguous.value, context.out().SelectChannels(contiguous.value, ordered.channels));
  contiguous.view = std::move(ordered.view);
  return contiguous;
}

StatusOr<Tokens> AsMatrix(Context& context, const Form& form) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsTokens(context, form));
  const auto& dims = tokens.view.dims;
  const auto has_channels = [](const Axes& dim) {
    return std::any_of(dim.begin(), dim.end(), [](const Axis& axis) { return axis.kind == AxisKind::kChannels; });
  };
  if (dims.empty() || !IsOfChannels(dims.back()) || std::any_of(dims.begin(), dims.end() - 1, has_channels)) {
    return context.Refuse("its input of shape ", Text(tokens.view.shape()),
                          " does not have all channels in the last dimension");
  }
  return Contiguous(context, tokens);
}

StatusOr<Tokens> AsGroups(Context& context, const Form& form, int64_t& groups) {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens tokens, AsTokens(context, form));
  if (tokens.view.dims.empty() || !IsOfChannels(tokens.view.dims.back())) {
    return context.Refuse("its input of shape ", Text(tokens.view.shape()),
                          " does not have channels alone in the last dimension");
  }
  SWIZZLE_ASSIGN_OR_RETURN(tokens, Contiguous(context, tokens));
  groups = context.out().Channels(tokens.value) / SizeOf(tokens.view.dims.back()).factor;
  if (groups > 1 && !context.out().IsPerToken(tokens.value))
    return context.Refuse("it normalises parts of what is pooled");
  return tokens;
}

Tokens WithChannels(Context& context, const Tokens& like, int value) {
  Tokens tokens{value, {}, like.view};
  tokens.view.dims.back() = ChannelAxis(context.out().Channels(value));
  tokens.view.first_channel = 0;
  return tokens;
}

StatusOr<Tokens> AddTokens(Context& context, const Tokens& a, const Tokens& b) {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens left, Materialised(context, a));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens right, Materialised(context, b));
  if (context.out().Channels(left.value) != context.out().Channels(right.value) ||
      context.out().IsPerToken(left.value) != context.out().IsPerToken(right.value)) {
    return context.Refuse("its inputs differ in shape");
  }
  const auto view = Broadcast(left.view, right.view);
  if (!view)
    return context.Refuse("its inputs ", Text(left.view.shape()), " and ", Text(right.view.shape()),
                          " do not go together");
  return Tokens{context.out().Add(left.value, right.value), {}, *view};
}

StatusOr<Form> CombineTokens(Context& context) {
  if (context.node().op == "Cast") {
    if (IsFloating(PointFunctionType(context.node(), DType::kFloat32))) return context.Input(0);
    return context.Refuse("it makes an activation whole");
  }
  constexpr std::string_view kSteps[] = {"Ceil", "Floor", "Sign"};  // samples do not tell them from what they resemble
  if (std::ranges::find(kSteps, context.node().op) != std::end(kSteps)) {
    return context.Refuse("it makes steps of an activation");
  }
  SWIZZLE_RETURN_IF_ERROR(ApplyBeforeSquare(context));
  size_t at = 0;
  while (context.InputAs<Tokens>(at) == nullptr) ++at;
  Tokens result = *context.InputAs<Tokens>(at);
  std::vector<std::vector<double>> arguments(context.node().inputs.size());
  const std::span<const double> points = SamplePoints();
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (const auto* tokens = context.InputAs<Tokens>(i)) {
      if (tokens->value != result.value || tokens->view != result.view) {
        if (context.node().inputs.size() != 2) return context.Refuse("it combines several activations");
        return CombineTwo(context, *context.InputAs<Tokens>(0), *context.InputAs<Tokens>(1));
      }
      arguments[i] = tokens->samples.empty() ? Samples(points.begin(), points.end()) : tokens->samples;
    } else if (!context.HasInput(i)) {
      arguments[i].assign(points.size(), kLeftOut);
    } else if (const auto number = NumberOf(context, i)) {
      const auto view = Expanded(result.view, context.InputAs<Known>(i)->shape);
      if (!view || view->shape().size() > context.InputAs<Tokens>(at)->view.rank() + 2)
        return context.Refuse("its inputs do not broadcast");
      if (view->Has(AxisKind::kRepeat) != result.view.Has(AxisKind::kRepeat))
        return context.Refuse("it repeats an activation");
      result.view = *view;
      arguments[i].assign(points.size(), *number);
    } else if (context.InputAs<Known>(i) != nullptr && context.node().inputs.size() == 2) {
      auto by_channel = CombineChannels(context, *context.InputAs<Tokens>(at), i);
      if (by_channel.ok() || context.node().op != "Mul") return by_channel;
      auto turned = TimesPositions(context, context.Input(at), i);
      return turned.ok() ? turned : by_channel;
    } else if (context.InputAs<TokenNumbers>(i) != nullptr) {
      return CombinePool(context);
    } else {
      return context.Refuse("it combines an activation with what is none");
    }
  }
  const auto function = PointFunctionOf(context.node(), DType::kFloat32);
  Samples samples(points.size());
  std::vector<double> inputs(arguments.size());
  for (size_t p = 0; p < points.size(); ++p) {
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = arguments[i][p];
    samples[p] = (*function)(inputs);
  }
  result.samples = std::move(samples);
  return result;
}

}  // namespace swizzle::sequences
