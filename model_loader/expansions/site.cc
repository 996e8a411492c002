#include "model_loader/expansions/site.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/half.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::expansions {
namespace {

// The number that onnx.TensorProto.DataType gives the type.
int64_t NumberOf(DType dtype) {
  for (int64_t number = 1; number <= 16; ++number) {
    const auto type = ElementTypeOf(number);
    if (type.ok() && *type == dtype) return number;
  }
  return 0;
}

}  // namespace

std::optional<size_t> Site::RankOf(int value) const {
  const std::optional<Shape> shape = facts_.Of(value).shape;
  return shape ? std::optional(shape->size()) : std::nullopt;
}

int64_t Site::SizeOf(int value, int64_t dimension) const {
  const std::optional<Shape> shape = facts_.Of(value).shape;
  if (!shape) return kUnknown;
  if (dimension < 0) dimension += static_cast<int64_t>(shape->size());
  const bool exists = dimension >= 0 && dimension < static_cast<int64_t>(shape->size());
  return exists ? (*shape)[static_cast<size_t>(dimension)] : kUnknown;
}

std::vector<int> Site::Renamed(std::vector<int> inputs) const {
  for (int& input : inputs) {
    if (const auto found = results_.find(input); found != results_.end()) input = found->second;
  }
  return inputs;
}

int Site::Make(std::string_view op, std::vector<int> inputs, Attributes attributes, std::string_view domain) {
  Node node{
      std::string(op),      std::string(domain), Concat(node_.name, ".", made_.size()), Renamed(std::move(inputs)), {},
      std::move(attributes)};
  node.outputs.push_back(graph_.AddValue({node.name, DType::kFloat32, std::nullopt, std::nullopt}));
  facts_.Note(node);
  made_.push_back(std::move(node));
  return made_.back().outputs[0];
}

std::vector<int> Site::MakeSeveral(std::string_view op, std::vector<int> inputs, Attributes attributes,
                                   size_t results) {
  Node node{std::string(op),      "", Concat(node_.name, ".", made_.size()), Renamed(std::move(inputs)), {},
            std::move(attributes)};
  for (size_t i = 0; i < results; ++i) {
    node.outputs.push_back(graph_.AddValue({Concat(node.name, "_", i), DType::kFloat32, std::nullopt, std::nullopt}));
  }
  facts_.Note(node);
  made_.push_back(std::move(node));
  return made_.back().outputs;
}

int Site::Constant(Tensor tensor) {
  return graph_.AddConstant(Concat(node_.name, ".constant", constants_++), std::move(tensor));
}

int Site::Number(double number, int like) {
  const DType dtype = TypeOf(like);
  constexpr double kMostHalf = 65504.0;
  if (dtype == DType::kFloat16) number = std::clamp(number, -kMostHalf, kMostHalf);
  Tensor tensor{dtype, {}, std::vector<std::byte>(ElementBytes(dtype))};
  VisitElementType(dtype, [&]<typename T>(T) {
    const T element = Narrowed<T>(number);
    std::memcpy(tensor.bytes.data(), &element, sizeof(element));
  });
  return Constant(std::move(tensor));
}

int Site::Wholes(const std::vector<int64_t>& wholes) {
  return Constant(Tensor::Int64s({static_cast<int64_t>(wholes.size())}, wholes));
}

int Site::Unsqueeze(int x, const std::vector<int64_t>& axes) {
  if (opset() < 13) return Make("Unsqueeze", {x}, {{"axes", axes}});
  return Make("Unsqueeze", {x, Wholes(axes)});
}

int Site::Slice(int x, int64_t axis, int64_t begin, int64_t end) {
  const std::vector<int64_t> begins = {begin}, ends = {end}, axes = {axis};
  if (opset() < 10) return Make("Slice", {x}, {{"starts", begins}, {"ends", ends}, {"axes", axes}});
  return Make("Slice", {x, Wholes(begins), Wholes(ends), Wholes(axes)});
}

std::vector<int> Site::Split(int x, int64_t axis, size_t parts, const std::vector<int64_t>& sizes) {
  Attributes attributes = {{"axis", axis}};
  std::vector<int> inputs = {x};
  if (sizes.empty()) {
    if (opset() >= 18) attributes["num_outputs"] = static_cast<int64_t>(parts);
  } else if (opset() < 13) {
    attributes["split"] = sizes;
  } else {
    inputs.push_back(Wholes(sizes));
  }
  return MakeSeveral("Split", std::move(inputs), std::move(attributes), parts);
}

int Site::ReduceSum(int x, int64_t axis, bool keeps) {
  const std::vector<int64_t> axes = {axis};
  if (opset() < 13) return Make("ReduceSum", {x}, {{"axes", axes}, {"keepdims", int64_t{keeps}}});
  return Make("ReduceSum", {x, Wholes(axes)}, {{"keepdims", int64_t{keeps}}});
}

int Site::Clip(int x, std::optional<float> low, std::optional<float> high) {
  if (opset() < 11) {
    Attributes attributes;
    if (low) attributes["min"] = *low;
    if (high) attributes["max"] = *high;
    return Make("Clip", {x}, std::move(attributes));
  }
  std::vector<int> inputs = {x, low ? Number(*low, x) : kNoValue};
  if (high) inputs.push_back(Number(*high, x));
  if (!high && !low) inputs.pop_back();
  return Make("Clip", std::move(inputs));
}

int Site::Cast(int x, DType dtype) { return Make("Cast", {x}, {{"to", NumberOf(dtype)}}); }

int Site::Dimension(int x, int64_t dimension) {
  return Make("Gather", {Make("Shape", {x}), Whole(dimension)}, {{"axis", int64_t{0}}});
}

int Site::Scaled(int x, double factor) { return factor == 1.0 ? x : Make("Mul", {x, Number(factor, x)}); }

void Site::Result(size_t output, int value) {
  if (!Wants(output)) return;
  const int wanted = node_.outputs[output];
  const auto makes = [value](const Node& node) { return std::ranges::find(node.outputs, value) != node.outputs.end(); };
  const auto maker = std::ranges::find_if(made_, makes);
  if (maker == made_.end()) {
    made_.push_back({"Identity", "", Concat(node_.name, ".", made_.size()), Renamed({value}), {wanted}, {}});
    facts_.Note(made_.back());
    return;
  }
  results_[value] = wanted;
  if (output == 0) maker->name = node_.name;
  for (Node& node : made_) {
    std::ranges::replace(node.inputs, value, wanted);
    std::ranges::replace(node.outputs, value, wanted);
  }
  facts_.Note(*maker);
}

void Site::ConstantResult(Tensor tensor) {
  Value& value = graph_.values[static_cast<size_t>(node_.outputs[0])];
  value.dtype = tensor.dtype;
  value.shape = tensor.shape;
  value.constant = std::move(tensor);
  facts_.NoteConstant(node_.outputs[0]);
}

}  // namespace swizzle::expansions
