// Activations: functions applied to them, linear layers, sums and products.
#include <algorithm>

#include "model_loader/semantics/affine.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/walk.h"

namespace swizzle {
namespace {

bool IsOfChannels(const Axes& dim) {
  return std::all_of(dim.begin(), dim.end(), [](const Axis& axis) { return axis.kind == AxisKind::kChannels; });
}

}  // namespace

StatusOr<Tokens> Walk::AsTokens(const Form& form) {
  if (const auto* unknown = std::get_if<Unknown>(&form)) return unknown->why;
  if (const auto* tokens = std::get_if<Tokens>(&form)) return *tokens;
  if (const auto* moment = std::get_if<Moment>(&form)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Form finished, FinishMoment(*moment, {}));
    return std::get<Tokens>(finished);
  }
  return Unimplemented("it is no activation");
}

StatusOr<Tokens> Walk::Materialised(const Tokens& tokens) {
  if (tokens.samples.empty()) return tokens;
  Tokens applied{tokens.value, {}, tokens.view};
  auto& known = applied_[tokens.value];
  for (const auto& [samples, value] : known) {
    if (samples != tokens.samples) continue;
    applied.value = value;
    return applied;
  }
  const auto function = Recognised(tokens.samples);
  if (!function) return Unimplemented("an element-wise function is none of those that kernels compute");
  applied.value = out_.Apply(tokens.value, *function);
  known.emplace_back(tokens.samples, applied.value);
  return applied;
}

// The same activation, of all channels that the view goes through and in its order.
StatusOr<Tokens> Walk::Contiguous(const Tokens& tokens) {
  Tokens contiguous = tokens;
  SWIZZLE_ASSIGN_OR_RETURN(contiguous, Materialised(contiguous));
  const std::vector<int64_t> channels = ChannelsOf(tokens.view.AllAxes(), tokens.view.first_channel);
  SWIZZLE_ASSIGN_OR_RETURN(contiguous.value, out_.SelectChannels(contiguous.value, channels));
  contiguous.view.first_channel = 0;
  int64_t stride = 1;
  for (size_t i = contiguous.view.rank(); i-- > 0;) {
    Axes& dim = contiguous.view.dims[i];
    const int64_t inner = stride;
    for (size_t k = dim.size(); k-- > 0;) {
      if (dim[k].kind != AxisKind::kChannels) continue;
      dim[k].stride = stride;
      stride *= dim[k].size.factor;
    }
    if (dim.size() > 1 && IsOfChannels(dim)) dim = {{AxisKind::kChannels, SizeOf(dim), inner}};
  }
  return contiguous;
}

StatusOr<Tokens> Walk::AsMatrix(const Form& form) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsTokens(form));
  const auto& dims = tokens.view.dims;
  const auto has_channels = [](const Axes& dim) {
    return std::any_of(dim.begin(), dim.end(), [](const Axis& axis) { return axis.kind == AxisKind::kChannels; });
  };
  if (dims.empty() || !IsOfChannels(dims.back()) || std::any_of(dims.begin(), dims.end() - 1, has_channels)) {
    return Refuse("its input of shape ", Text(tokens.view.shape()),
                  " does not have all channels in the last dimension");
  }
  return Contiguous(tokens);
}

// The same leading dimensions, the last one being all channels of `value`.
Tokens Walk::WithChannels(const Tokens& like, int value) const {
  Tokens tokens{value, {}, like.view};
  tokens.view.dims.back() = ChannelAxis(out_.Channels(value));
  tokens.view.first_channel = 0;
  return tokens;
}

// The input `weight` is [K, M] or, if `transposed`, [M, K].
StatusOr<Tokens> Walk::LinearOf(const Tokens& x, size_t weight, bool transposed, float alpha) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto given, FloatTensor(weight, "weight"));
  const Shape& shape = given.first;
  const int64_t depth = out_.Channels(x.value);
  if (shape.size() != 2 || shape[transposed ? 1 : 0] != depth || given.second.empty()) {
    return Refuse("its weight ", ShapeText(shape), " does not fit ", depth, " channels");
  }
  const int64_t rows = shape[transposed ? 0 : 1];
  std::vector<float> matrix(given.second.size());
  MakeLinearWeight(given.second, rows, depth, transposed, alpha, matrix);
  return WithChannels(x, out_.Linear(x.value, rows, std::move(matrix)));
}

StatusOr<Tokens> Walk::WithBias(const Tokens& x, size_t bias, float beta) {
  const int64_t channels = out_.Channels(x.value);
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> shift, FloatsOf(bias, channels, "bias"));
  for (float& number : shift) number *= beta;
  Tokens tokens = x;
  tokens.value = out_.Affine(x.value, std::vector<float>(static_cast<size_t>(channels), 1.0f), std::move(shift));
  return tokens;
}

StatusOr<Form> Walk::InterpretGemm() {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_a, IntAttribute(node(), "transA", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_b, IntAttribute(node(), "transB", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, FloatAttribute(node(), "alpha", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float beta, FloatAttribute(node(), "beta", 1.0f));
  if (trans_a != 0) return Refuse("transA would transpose tokens");
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, AsMatrix(Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens y, LinearOf(x, 1, trans_b != 0, alpha));
  if (HasInput(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(y, WithBias(y, 2, beta));
  }
  return y;
}

StatusOr<Form> Walk::InterpretMatMul() {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, FloatAttribute(node(), "alpha", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_a, IntAttribute(node(), "transA", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_b, IntAttribute(node(), "transB", 0));
  for (const char* batch : {"transBatchA", "transBatchB"}) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t transposed, IntAttribute(node(), batch, 0));
    if (transposed != 0) return Refuse(batch, " is set");
  }
  if (trans_a != 0) return Refuse("transA is set");
  if (const auto* scores = InputAs<Scores>(0)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens values, AsTokens(Input(1)));
    if (trans_b != 0 || alpha != 1.0f) return Refuse("it scales or transposes values");
    return ContextOf(*scores, values);
  }
  if (InputAs<Known>(1) != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, AsMatrix(Input(0)));
    SWIZZLE_ASSIGN_OR_RETURN(Tokens y, LinearOf(x, 1, trans_b != 0, alpha));
    return y;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens a, AsTokens(Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens b, AsTokens(Input(1)));
  if (trans_b != 0 && b.view.rank() >= 2) std::swap(b.view.dims[b.view.rank() - 1], b.view.dims[b.view.rank() - 2]);
  return ScoresOf(a, b, alpha);
}

StatusOr<Tokens> Walk::AddTokens(const Tokens& a, const Tokens& b) {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens left, Materialised(a));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens right, Materialised(b));
  if (out_.Channels(left.value) != out_.Channels(right.value) ||
      out_.IsPerToken(left.value) != out_.IsPerToken(right.value)) {
    return Refuse("its inputs differ in shape");
  }
  const auto view = Broadcast(left.view, right.view);
  if (!view)
    return Refuse("its inputs ", Text(left.view.shape()), " and ", Text(right.view.shape()), " do not go together");
  return Tokens{out_.Add(left.value, right.value), {}, *view};
}

// Add, Sub or Mul of two activations.
StatusOr<Form> Walk::CombineTwo(Tokens a, Tokens b) {
  if (a.view.first_channel != b.view.first_channel || !Broadcast(a.view, b.view) ||
      out_.Channels(a.value) != out_.Channels(b.value)) {
    SWIZZLE_ASSIGN_OR_RETURN(a, Contiguous(a));
    SWIZZLE_ASSIGN_OR_RETURN(b, Contiguous(b));
  }
  if (node().op == "Sub") {
    if (b.samples.empty()) b.samples.assign(SamplePoints().begin(), SamplePoints().end());
    for (double& sample : b.samples) sample = -sample;
  }
  if (node().op == "Add" || node().op == "Sub") {
    SWIZZLE_ASSIGN_OR_RETURN(Tokens sum, AddTokens(a, b));
    return sum;
  }
  if (node().op != "Mul") return Refuse("it takes two activations");
  SWIZZLE_ASSIGN_OR_RETURN(a, Materialised(a));
  SWIZZLE_ASSIGN_OR_RETURN(b, Materialised(b));
  const auto view = Broadcast(a.view, b.view);
  const bool same_channels =
      out_.Channels(a.value) == out_.Channels(b.value) && out_.IsPerToken(a.value) == out_.IsPerToken(b.value);
  if (!view || !same_channels) return Refuse("its inputs differ in shape");
  return Tokens{out_.Multiply(a.value, b.value), {}, *view};
}

}  // namespace swizzle
