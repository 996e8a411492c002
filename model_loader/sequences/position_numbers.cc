#include "model_loader/sequences/position_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/known.h"

namespace swizzle::sequences {
namespace {

using Kind = PositionColumn::Kind;

PositionNumbers Of(PositionColumns columns, View view) {
  return {std::make_shared<const PositionColumns>(std::move(columns)), std::move(view)};
}

// The elements of a constant FP32 tensor, or listed ones.
StatusOr<std::vector<float>> NumbersOf(Context& context, const Known& known) {
  std::vector<float> numbers;
  if (known.constant != kNoValue && known.dtype == DType::kFloat32) {
    const Tensor& tensor = context.Constant(known.constant);
    const auto floats = tensor.floats();
    numbers.assign(floats.begin(), floats.end());
  } else {
    for (const Number& number : known.numbers) numbers.push_back(static_cast<float>(number.real));
  }
  const auto shape = AsShape(known.shape);
  const auto count = shape ? ElementCount(*shape) : StatusOr<int64_t>(-1);
  const bool complete = count.ok() && *count > 0 && static_cast<int64_t>(numbers.size()) == *count;
  if (!complete || !IsFloating(known.dtype)) return context.Refuse("it multiplies by what is no FP32 constant");
  return numbers;
}

// Numbers by channel alone.
StatusOr<PositionNumbers> OfChannels(Context& context, const Known& known) {
  if (const auto number = NumberOf(known)) {
    return Of({{.start = static_cast<float>(*number)}}, RepeatedView(known.shape));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> numbers, NumbersOf(context, known));
  if (!context.TakeNumbers(static_cast<int64_t>(numbers.size()))) return context.Refuse("it has too many elements");
  PositionColumns columns;
  for (const float number : numbers) columns.push_back({.start = number});
  View view;
  for (const Whole& size : known.shape) view.dims.push_back(ChannelAxis(size.factor));
  return Of(std::move(columns), InOrder(view).view);
}

// Rows of a table that an activation is made of, by position alone.
StatusOr<PositionNumbers> OfEmbedding(Context& context, const Tokens& tokens) {
  const auto found = context.out().PositionTableOf(tokens.value);
  if (!found || !tokens.samples.empty()) return context.Refuse("its operand does not go by position alone");
  auto& known = context.position_tables()[found->constant];
  if (known == nullptr) {
    const Tensor& tensor = *context.out().graph().values[found->constant].constant;
    known = std::make_shared<const PositionColumn::Table>(
        PositionColumn::Table{tensor.shape[0], tensor.shape[1], {tensor.floats().begin(), tensor.floats().end()}});
  }
  const OrderedChannels ordered = InOrder(tokens.view);
  PositionColumns columns;
  for (const int64_t channel : ordered.channels) {
    columns.push_back({.kind = Kind::kTable, .table = known, .first = found->offset, .column = channel});
  }
  return Of(std::move(columns), ordered.view);
}

StatusOr<PositionNumbers> OfPositions(Context& context, const Positions& positions) {
  const bool plain =
      IsFloating(positions.dtype) && positions.has_values && !positions.is_pair && positions.per_sequence == Whole{0};
  if (!plain || std::abs(positions.offset) > kNearDistance) return context.Refuse("its positions are not its tokens'");
  const PositionColumn column{.start = static_cast<float>(positions.offset),
                              .slope = static_cast<float>(positions.per_position)};
  return Of({column}, positions.view);
}

// Of two columns, one of which does not go by position; nothing where the product is none that a column holds.
std::optional<PositionColumn> Product(const PositionColumn& a, const PositionColumn& b) {
  const auto is_number = [](const PositionColumn& column) { return column.kind == Kind::kLinear && column.slope == 0; };
  const PositionColumn& number = is_number(a) ? a : b;
  PositionColumn product = is_number(a) ? b : a;
  if (!is_number(number)) return std::nullopt;
  const double factor = number.start * number.factor;
  if (product.kind != Kind::kLinear) {
    product.factor *= factor;
    return product;
  }
  product.start = static_cast<float>(product.start * factor);
  product.slope = static_cast<float>(product.slope * factor);
  return product;
}

StatusOr<Form> ProductOf(Context& context, const PositionNumbers& a, const PositionNumbers& b) {
  const auto paired = PairInOrder(a.view, b.view);
  if (!paired) return context.Refuse("its inputs do not go together");
  PositionColumns columns;
  for (const auto& [left, right] : paired->channels) {
    const auto product = Product((*a.columns)[static_cast<size_t>(left)], (*b.columns)[static_cast<size_t>(right)]);
    if (!product) return context.Refuse("it multiplies two numbers that both go by position");
    columns.push_back(*product);
  }
  return Of(std::move(columns), paired->view);
}

// Adds numbers that go by channel alone.
StatusOr<Form> SumOf(Context& context, const PositionNumbers& a, const PositionNumbers& b) {
  const auto paired = PairInOrder(a.view, b.view);
  if (!paired) return context.Refuse("its inputs do not go together");
  PositionColumns columns;
  for (const auto& [left, right] : paired->channels) {
    const PositionColumn &x = (*a.columns)[static_cast<size_t>(left)], &y = (*b.columns)[static_cast<size_t>(right)];
    const auto goes_by_position = [](const PositionColumn& c) { return c.kind != Kind::kLinear || c.slope != 0.0f; };
    if (goes_by_position(x) || goes_by_position(y)) return context.Refuse("it adds numbers that go by position");
    columns.push_back({.start = static_cast<float>(x.start * x.factor) + static_cast<float>(y.start * y.factor)});
  }
  return Of(std::move(columns), paired->view);
}

// The cosines or sines of angles.
StatusOr<Form> WavesOf(Context& context, const PositionNumbers& angles, Kind kind) {
  PositionColumns columns = *angles.columns;
  for (PositionColumn& column : columns) {
    const bool is_angle = column.kind == Kind::kLinear && column.factor == 1.0 && column.start == 0.0f;
    if (!is_angle) return context.Refuse("it is of what is no multiple of a position");
    column.kind = kind;
  }
  return Of(std::move(columns), angles.view);
}

// For each column the first that holds the same numbers: halves of a head are turned by the same.
std::vector<int64_t> FirstAlike(const PositionColumn::Table& table) {
  std::map<std::vector<uint32_t>, int64_t> first;  // by their bits, since NaN has no order
  std::vector<int64_t> alike;
  for (int64_t column = 0; column < table.columns; ++column) {
    std::vector<uint32_t> bits;
    for (int64_t row = 0; row < table.rows; ++row) {
      bits.push_back(std::bit_cast<uint32_t>(table.numbers[static_cast<size_t>(row * table.columns + column)]));
    }
    alike.push_back(first.try_emplace(std::move(bits), column).first->second);
  }
  return alike;
}

}  // namespace

float NumberAt(const PositionColumn& column, int64_t position) {
  const auto place = static_cast<float>(position);
  double number = 0.0;
  if (position < column.from) return static_cast<float>(column.before * column.factor);
  switch (column.kind) {
    case Kind::kLinear:
      number = column.start + place * column.slope;
      break;
    case Kind::kCosine:
      number = static_cast<float>(std::cos(double{place * column.slope}));
      break;
    case Kind::kSine:
      number = static_cast<float>(std::sin(double{place * column.slope}));
      break;
    case Kind::kTable:
      number =
          column.table->numbers[static_cast<size_t>((position + column.first) * column.table->columns + column.column)];
      break;
  }
  return static_cast<float>(number * column.factor);
}

std::optional<int64_t> PositionsOf(const PositionColumn& column) {
  if (column.kind != Kind::kTable) return std::nullopt;
  return column.table->rows - column.first;
}

StatusOr<PositionNumbers> AsPositionNumbers(Context& context, const Form& form) {
  if (const auto* numbers = std::get_if<PositionNumbers>(&form)) return *numbers;
  if (const auto* positions = std::get_if<Positions>(&form)) return OfPositions(context, *positions);
  if (const auto* known = std::get_if<Known>(&form)) return OfChannels(context, *known);
  if (const auto* tokens = std::get_if<Tokens>(&form)) return OfEmbedding(context, *tokens);
  return context.Refuse("its operand goes by more than position and channel");
}

StatusOr<PositionNumbers> NumbersOfLength(Context& context, const Known& known, const View& tokens,
                                          int64_t first_place) {
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> numbers, NumbersOf(context, known));
  const size_t rank = known.shape.size();
  if (rank > tokens.rank()) return context.Refuse("its operand has too many dimensions");
  const Axes axes = tokens.AllAxes();
  const bool is_part = std::ranges::count(axes, AxisKind::kPlaces, &Axis::kind) == 1;
  PositionColumn::Table table{1, 1, {}};
  View view;
  int64_t behind = 1;  // elements of a position
  for (size_t i = 0; i < rank; ++i) {
    const Axes& dim = tokens.dims[tokens.rank() - rank + i];
    const bool of_positions =
        dim.size() == 1 && (dim[0].kind == AxisKind::kLength || (is_part && dim[0].kind == AxisKind::kPlaces));
    const bool of_length =
        table.rows == 1 && of_positions && dim[0].size == known.shape[i] && known.shape[i].factor > 1;
    view.dims.push_back(of_length ? dim : ChannelAxis(known.shape[i].factor));
    (of_length ? table.rows : table.columns) *= known.shape[i].factor;
    behind = of_length ? 1 : behind * known.shape[i].factor;
  }
  if (table.rows == 1 || !context.TakeNumbers(table.columns)) return context.Refuse("its operand has no positions");
  table.numbers.resize(numbers.size());
  for (int64_t i = 0; i < static_cast<int64_t>(numbers.size()); ++i) {
    const int64_t outer = i / (behind * table.rows), row = i / behind % table.rows;
    table.numbers[static_cast<size_t>(row * table.columns + outer * behind + i % behind)] =
        numbers[static_cast<size_t>(i)];
  }
  const auto shared = std::make_shared<const PositionColumn::Table>(std::move(table));
  PositionColumns columns;
  for (const int64_t column : FirstAlike(*shared)) {
    columns.push_back({.kind = Kind::kTable, .table = shared, .first = -first_place, .column = column});
  }
  return Of(std::move(columns), InOrder(view).view);
}

StatusOr<Form> MultiplyPositionNumbers(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const PositionNumbers a, AsPositionNumbers(context, context.Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(const PositionNumbers b, AsPositionNumbers(context, context.Input(1)));
  if (context.node().op == "MatMul") {
    const size_t rank = a.view.rank();
    const bool outer = rank >= 2 && b.view.rank() >= 2 && SizeOf(a.view.dims[rank - 1]).IsOne() &&
                       SizeOf(b.view.dims[b.view.rank() - 2]).IsOne();
    if (!outer) return context.Refuse("it sums numbers that go by position");
  }
  return ProductOf(context, a, b);
}

StatusOr<Form> CombinePositionNumbers(Context& context) {
  const std::string& op = context.node().op;
  const size_t inputs = context.node().inputs.size();
  if (inputs == 2 && op == "Mul") return MultiplyPositionNumbers(context);
  if (inputs == 2 && op == "Add") {
    SWIZZLE_ASSIGN_OR_RETURN(const PositionNumbers a, AsPositionNumbers(context, context.Input(0)));
    SWIZZLE_ASSIGN_OR_RETURN(const PositionNumbers b, AsPositionNumbers(context, context.Input(1)));
    return SumOf(context, a, b);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const PositionNumbers numbers, AsPositionNumbers(context, context.Input(0)));
  if (op == "Cos") return WavesOf(context, numbers, Kind::kCosine);
  if (op == "Sin") return WavesOf(context, numbers, Kind::kSine);
  if (op == "Cast" && IsFloating(PointFunctionType(context.node(), DType::kFloat32))) return numbers;
  double factor = 0.0;
  if (op == "Neg") factor = -1.0;
  if (op == "Div" && inputs == 2) factor = 1.0 / NumberOf(context, 1).value_or(0.0);
  if (!std::isfinite(factor) || factor == 0.0) return context.Refuse("it makes something else of such numbers");
  const View view = op == "Div" ? RepeatedView(context.InputAs<Known>(1)->shape) : View();
  return ProductOf(context, numbers, Of({{.factor = factor, .start = 1.0f}}, view));
}

StatusOr<Form> ConcatPositionNumbers(Context& context, size_t axis) {
  std::vector<PositionNumbers> parts;
  std::vector<View> views;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(PositionNumbers part, AsPositionNumbers(context, context.Input(i)));
    const OrderedChannels ordered = InOrder(part.view);
    PositionColumns columns;
    for (const int64_t channel : ordered.channels) columns.push_back((*part.columns)[static_cast<size_t>(channel)]);
    parts.push_back(Of(std::move(columns), ordered.view));
    views.push_back(ordered.view);
  }
  const auto joined = JoinInOrder(views, axis);
  if (!joined) return context.Refuse("it does not join channels");
  PositionColumns columns;
  for (const auto& [part, place] : joined->sources) {
    columns.push_back((*parts[part].columns)[static_cast<size_t>(place)]);
  }
  return Of(std::move(columns), joined->view);
}

}  // namespace swizzle::sequences
