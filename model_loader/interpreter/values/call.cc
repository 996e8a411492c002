#include "model_loader/interpreter/values/call.h"

#include <cstring>

#include "model_loader/semantics/given_axes.h"

namespace swizzle::interpreter {

StatusOr<Array> Call::New(DType dtype, Shape shape) {
  StatusOr<Array> made = memory_.Allocate(dtype, std::move(shape));
  if (!wants_elements_ && made.ok() && made->bytes() > 0) std::memset(made->data.get(), 0, made->bytes());
  return made;
}

StatusOr<std::vector<int64_t>> Call::List(size_t i) const {
  const Array& array = In(i);
  if (array.IsSequence()) return InvalidArgument("input ", i, " is a sequence; it must be a list of integers");
  if (array.rank() > 1 || array.elements() > kMaxListLength) {
    return InvalidArgument("input ", i, " has shape ", ShapeText(array.shape), "; it must be a list of at most ",
                           kMaxListLength, " integers");
  }
  if (array.dtype == DType::kInt64) {
    const auto values = array.As<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  if (array.dtype == DType::kInt32) {
    const auto values = array.As<int32_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  return InvalidArgument("input ", i, " is ", DTypeName(array.dtype), "; it must be INT64 or INT32");
}

StatusOr<int64_t> Call::IntScalar(size_t i, int64_t absent) const {
  if (!Has(i)) return absent;
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> list, List(i));
  if (list.size() != 1) return InvalidArgument("input ", i, " has ", list.size(), " elements instead of 1");
  return list[0];
}

StatusOr<double> Call::RealScalar(size_t i, double absent) {
  if (!Has(i)) return absent;
  if (In(i).elements() != 1)
    return InvalidArgument("input ", i, " has shape ", ShapeText(In(i).shape), "; it must have one element");
  SWIZZLE_ASSIGN_OR_RETURN(const Array real, Convert(host_memory(), In(i), DType::kFloat64));
  return real.As<double>()[0];
}

StatusOr<std::optional<std::vector<int64_t>>> Call::Axes(size_t i, int64_t rank) const {
  SWIZZLE_ASSIGN_OR_RETURN(auto axes, GivenAxes(node_, Has(i), [&] { return List(i); }));
  if (axes) {
    SWIZZLE_ASSIGN_OR_RETURN(axes, NormalAxes(*std::move(axes), rank));
  }
  return axes;
}

StatusOr<int64_t> Call::AxisAttribute(int64_t absent, int64_t rank) const {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, Int("axis", absent));
  return NormalAxis(axis, rank);
}

StatusOr<std::shared_ptr<const Body>> Call::BodyAttribute(const std::string& name) const {
  const auto found = node_.attributes.find(name);
  if (found != node_.attributes.end()) {
    if (const auto* body = std::get_if<std::shared_ptr<const Body>>(&found->second)) return *body;
  }
  return InvalidArgument("attribute '", name, "' is not a graph");
}

StatusOr<std::vector<Array>> Call::Run(const Body& body, std::span<const Array> inputs) {
  const size_t wanted = body.graph.inputs.size() - body.captured.size();
  if (inputs.size() != wanted) {
    return InvalidArgument("its graph takes ", wanted, " inputs, but is given ", inputs.size());
  }
  std::vector<const Array*> all;
  all.reserve(body.graph.inputs.size());
  for (const Array& input : inputs) all.push_back(&input);
  for (const size_t input : body.captured) all.push_back(&inputs_[input]);
  SWIZZLE_RETURN_IF_ERROR(memory_.CountBodyRun());
  return (*run_body_)(body, std::span<const Array* const>(all));
}

StatusOr<std::vector<float>> FloatsAttribute(const Node& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return std::vector<float>();
  if (const auto* floats = std::get_if<std::vector<float>>(&found->second)) return *floats;
  return InvalidArgument("attribute '", name, "' is not a list of numbers");
}

StatusOr<std::vector<std::string>> StringsAttribute(const Node& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return std::vector<std::string>();
  if (const auto* strings = std::get_if<std::vector<std::string>>(&found->second)) return *strings;
  return InvalidArgument("attribute '", name, "' is not a list of strings");
}

Status CheckSameType(const Array& a, const Array& b) {
  if (a.dtype == b.dtype) return {};
  return InvalidArgument("inputs have types ", DTypeName(a.dtype), " and ", DTypeName(b.dtype),
                         "; they must have the same");
}

Status CheckRank(const Array& array, int64_t rank) {
  if (array.rank() >= rank) return {};
  return InvalidArgument("an input has shape ", ShapeText(array.shape), "; it must have at least ", rank,
                         " dimensions");
}

}  // namespace swizzle::interpreter
