// Element-wise operators, by the forms of their inputs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "model_loader/semantics/affine.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/walk.h"

namespace swizzle {
namespace {

constexpr double kLeftOut = std::numeric_limits<double>::quiet_NaN();

View RepeatedView(const Wholes& shape) {
  View view;
  for (const Whole& size : shape) view.dims.push_back(AsDimension({AxisKind::kRepeat, size}));
  return view;
}

}  // namespace

StatusOr<Form> Walk::InterpretElementwise() {
  if (node().op == "Where" && HasInput(0)) {
    if (const auto condition = NumberOf(0)) return Input(*condition != 0 ? 1 : 2);
  }
  const bool known_operator = PointFunctionOf(node(), DType::kFloat32).has_value();
  if (!known_operator) return Refuse("the operator is supported on numbers known beforehand only");
  if (AnyInputIs<Scores>()) return CombineScores();
  if (AnyInputIs<Pairs>()) return CombinePairs();
  if (AnyInputIs<MaskedTokens>() || AnyInputIs<TokenCount>()) return CombinePool();
  if (AnyInputIs<Moment>()) return CombineMoments();
  if (AnyInputIs<Tokens>()) return CombineTokens();
  if (AnyInputIs<Positions>()) return CombinePositions();
  return CombineTokenNumbers();
}

// Functions of one input that holds 0 and 1: both results, and how they lie.
StatusOr<Form> Walk::CombineTokenNumbers() {
  TokenNumbers result;
  bool first = true;
  std::vector<double> at_zero, at_one;
  for (size_t i = 0; i < node().inputs.size(); ++i) {
    View view;
    if (const auto* numbers = InputAs<TokenNumbers>(i)) {
      if (result.input != kNoValue && result.input != numbers->input) return Refuse("it combines two inputs");
      result.input = numbers->input;
      at_zero.push_back(numbers->at_zero);
      at_one.push_back(numbers->at_one);
      view = numbers->view;
    } else if (HasInput(i)) {
      const auto number = NumberOf(i);
      if (!number) return Refuse("it combines a mask with a constant of many elements");
      at_zero.push_back(*number);
      at_one.push_back(*number);
      view = RepeatedView(InputAs<Known>(i)->shape);
    } else {
      at_zero.push_back(kLeftOut);
      at_one.push_back(kLeftOut);
    }
    const auto joined = first ? view : Broadcast(result.view, view);
    if (!joined) return Refuse("its inputs do not broadcast, or hold a mask of pairs of tokens");
    result.view = *joined;
    first = false;
  }
  const auto type_of = [&](size_t i) {
    const auto* numbers = InputAs<TokenNumbers>(i);
    return numbers != nullptr ? numbers->dtype : InputAs<Known>(i)->dtype;
  };
  const DType dtype = type_of(node().op == "Where" ? 1 : 0);
  const auto function = PointFunctionOf(node(), dtype);
  result.dtype = PointFunctionType(node(), dtype);
  const auto* only = InputAs<TokenNumbers>(0);
  const bool widens = node().op == "Cast" && !IsFloating(result.dtype) && result.dtype != DType::kBool;
  result.as_it_is = widens && only->as_it_is;
  result.at_zero = Rounded((*function)(at_zero), result.dtype);
  result.at_one = Rounded((*function)(at_one), result.dtype);
  return result;
}

StatusOr<Form> Walk::CombineTwoPositions(const Positions& a, const Positions& b) {
  const auto view = Broadcast(a.view, b.view);
  if (!view || a.is_pair || b.is_pair) return Refuse("its inputs do not broadcast");
  Positions result = a;
  result.view = *view;
  const auto per_sequence = Sum(a.per_sequence, b.per_sequence);
  constexpr int64_t kMost = 1 << 24;
  const auto small = [](const Positions& positions) {
    return std::abs(positions.offset) <= kMost && std::abs(positions.per_position) <= kMost;
  };
  result.has_values =
      node().op == "Add" && a.has_values && b.has_values && per_sequence.has_value() && small(a) && small(b);
  if (!result.has_values) return result;
  result.offset += b.offset;
  result.per_position += b.per_position;
  result.per_sequence = *per_sequence;
  return result;
}

StatusOr<Form> Walk::CombinePositions() {
  const std::string& op = node().op;
  const bool two = node().inputs.size() == 2;
  if (two && InputAs<Positions>(0) != nullptr && InputAs<Positions>(1) != nullptr) {
    return CombineTwoPositions(*InputAs<Positions>(0), *InputAs<Positions>(1));
  }
  const size_t at = InputAs<Positions>(0) != nullptr ? 0 : 1;
  Positions positions = *InputAs<Positions>(at);
  const DType target = PointFunctionType(node(), positions.dtype);
  if (op == "Cast" && !IsFloating(target) && target != DType::kBool) {
    positions.dtype = target;
    return positions;
  }
  const auto* known = two ? InputAs<Known>(1 - at) : nullptr;
  const bool usual = known != nullptr && known->IsUniform() && !IsFloating(known->dtype) &&
                     !IsFloating(positions.dtype) && positions.has_values && !positions.is_pair;
  const auto view = usual ? Broadcast(positions.view, RepeatedView(known->shape)) : std::nullopt;
  if (!view) return Refuse("it makes something else of positions");
  positions.view = *view;
  const Whole number = known->numbers[0].whole;
  constexpr int64_t kMaxOffset = 1 << 24;
  const bool small = number.IsNumber() && std::abs(number.factor) <= kMaxOffset;
  if (op == "GreaterOrEqual" && at == 0 && number.IsNumber() && positions.per_position >= 0 &&
      positions.per_sequence.factor >= 0 && positions.offset >= number.factor) {
    return Known{DType::kBool, view->shape(), {{0.0, {1}}}};
  }
  const auto product = Product(positions.per_sequence, number);
  if (op == "Mul" && positions.per_position == 0 && positions.offset == 0 && product) {
    positions.per_sequence = *product;
    return positions;
  }
  const bool moves = small && std::abs(positions.offset) <= kMaxOffset && (op == "Add" || (op == "Sub" && at == 0));
  if (!moves) return Refuse("it makes something else of positions");
  positions.offset += op == "Add" ? number.factor : -number.factor;
  return positions;
}

StatusOr<Form> Walk::CombineTokens() {
  if (node().op == "Cast") {
    if (IsFloating(PointFunctionType(node(), DType::kFloat32))) return Input(0);
    return Refuse("it makes an activation whole");
  }
  size_t at = 0;
  while (InputAs<Tokens>(at) == nullptr) ++at;
  Tokens result = *InputAs<Tokens>(at);
  std::vector<std::vector<double>> arguments(node().inputs.size());
  const std::span<const double> points = SamplePoints();
  for (size_t i = 0; i < node().inputs.size(); ++i) {
    if (const auto* tokens = InputAs<Tokens>(i)) {
      if (tokens->value != result.value || tokens->view != result.view) {
        if (node().inputs.size() != 2) return Refuse("it combines several activations");
        return CombineTwo(*InputAs<Tokens>(0), *InputAs<Tokens>(1));
      }
      arguments[i] = tokens->samples.empty() ? Samples(points.begin(), points.end()) : tokens->samples;
    } else if (!HasInput(i)) {
      arguments[i].assign(points.size(), kLeftOut);
    } else if (const auto number = NumberOf(i)) {
      const auto view = Expanded(result.view, InputAs<Known>(i)->shape);
      if (!view || view->shape().size() > InputAs<Tokens>(at)->view.rank() + 2)
        return Refuse("its inputs do not broadcast");
      if (view->Has(AxisKind::kRepeat) != result.view.Has(AxisKind::kRepeat)) return Refuse("it repeats an activation");
      result.view = *view;
      arguments[i].assign(points.size(), *number);
    } else if (InputAs<Known>(i) != nullptr && node().inputs.size() == 2) {
      return CombineChannels(*InputAs<Tokens>(at), i);
    } else if (InputAs<TokenNumbers>(i) != nullptr) {
      return CombinePool();
    } else {
      return Refuse("it combines an activation with what is none");
    }
  }
  const auto function = PointFunctionOf(node(), DType::kFloat32);
  Samples samples(points.size());
  std::vector<double> inputs(arguments.size());
  for (size_t p = 0; p < points.size(); ++p) {
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = arguments[i][p];
    samples[p] = (*function)(inputs);
  }
  result.samples = std::move(samples);
  return result;
}

// The constant's number for each channel; it must be the same for all tokens.
StatusOr<std::vector<float>> Walk::ChannelVector(const Tokens& tokens, size_t constant) {
  const Known& known = *InputAs<Known>(constant);
  std::vector<float> listed;
  Shape shape;
  std::span<const float> floats;
  if (known.constant != kNoValue) {
    SWIZZLE_ASSIGN_OR_RETURN(const auto tensor, FloatTensor(constant, "operand"));
    shape = tensor.first;
    floats = tensor.second;
  } else {
    for (const Whole& size : known.shape) shape.push_back(size.factor);
    for (const Number& number : known.numbers) listed.push_back(static_cast<float>(number.real));
    floats = listed;
  }
  const std::vector<Axes>& dims = tokens.view.dims;
  if (shape.size() > dims.size()) return Refuse("its operand ", ShapeText(shape), " has too many dimensions");
  struct Place {
    int64_t channel, element;
  };
  std::vector<Place> places = {{tokens.view.first_channel, 0}};
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t skipped = dims.size() - shape.size();
    const int64_t size = i < skipped ? 1 : shape[i - skipped];
    const std::vector<int64_t> channels = ChannelsOf(dims[i], 0);
    const bool per_channel = size == static_cast<int64_t>(channels.size()) && SizeOf(dims[i]) == Whole{size};
    if (size != 1 && !per_channel) return Refuse("its operand ", ShapeText(shape), " is not one number per channel");
    std::vector<Place> next;
    for (const Place& place : places) {
      for (size_t j = 0; j < channels.size(); ++j) {
        next.push_back({place.channel + channels[j], place.element * size + (size == 1 ? 0 : static_cast<int64_t>(j))});
      }
    }
    places = std::move(next);
  }
  std::vector<float> vector(static_cast<size_t>(out_.Channels(tokens.value)));
  if (places.size() != vector.size()) return Refuse("it has other channels than its operand");
  for (const Place& place : places) vector[place.channel] = floats[place.element];
  return vector;
}

StatusOr<Form> Walk::CombineChannels(const Tokens& tokens, size_t constant) {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens result, Contiguous(tokens));
  const std::string& op = node().op;
  if (op != "Add" && op != "Sub" && op != "Mul" && op != "Div") return Refuse("its operand is not one number");
  auto vector = ChannelVector(result, constant);
  if (!vector.ok() && op == "Add") {
    const auto table = AddPositionsTable(result, constant);
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
  if (op == "Div" && !tokens_first) return Refuse("it divides by an activation");
  result.value = out_.Affine(result.value, std::move(scale), std::move(shift));
  return result;
}

// Adds [length, channels], which a model of fixed length may hold as a constant.
StatusOr<Form> Walk::AddPositionsTable(const Tokens& tokens, size_t constant) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto tensor, FloatTensor(constant, "operand"));
  const Shape& shape = tensor.first;
  const size_t rank = tokens.view.rank();
  constexpr size_t kMatrix = 2;
  const int64_t channels = out_.Channels(tokens.value);
  const bool fits = shape.size() >= kMatrix && shape.size() <= rank &&
                    tokens.view.dims[rank - 1] == ChannelAxis(channels) &&
                    tokens.view.Is(rank - 2, AxisKind::kLength) && shape.back() == channels &&
                    Whole{shape[shape.size() - 2]} == SizeOf(LengthAxis()) &&
                    static_cast<int64_t>(tensor.second.size()) == channels * shape[shape.size() - 2];
  if (!fits) return Refuse("its operand is no table of positions");
  const int table = out_.Embedding(kNoValue, Tensor::Floats({shape[shape.size() - 2], channels}, tensor.second), 0);
  Tokens result = tokens;
  result.value = out_.Add(tokens.value, table);
  return result;
}

}  // namespace swizzle
