// Numbers and words in place of others, by a list: ai.onnx.ml's.
#include <cmath>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/operators/text.h"

namespace swizzle::interpreter {
namespace {

using Label = std::variant<double, int64_t, std::string>;

// A list of keys or values, of any of the types that it may have, and what stands for all else.
struct Labels {
  DType dtype = DType::kInt64;
  std::vector<Label> list;
  Label absent = int64_t{-1};
};

// The attribute's list as labels; false where it is no such list.
template <typename T>
bool ReadList(const Attribute& attribute, std::vector<Label>& to) {
  const auto* const list = std::get_if<std::vector<T>>(&attribute);
  if (list == nullptr) return false;
  for (const T& label : *list) {
    if constexpr (std::is_same_v<T, float>) {
      to.emplace_back(static_cast<double>(label));
    } else {
      to.emplace_back(label);
    }
  }
  return true;
}

// INVALID_ARGUMENT unless the node has exactly one list of this kind.
StatusOr<Labels> ReadLabels(const Node& node, const std::string& kind) {
  Labels labels;
  int lists = 0;
  const auto read = [&]<typename T>(T, const std::string& suffix, DType dtype) {
    const auto found = node.attributes.find(kind + suffix);
    if (found == node.attributes.end() || !ReadList<T>(found->second, labels.list)) return;
    ++lists;
    labels.dtype = dtype;
  };
  read(int64_t(), "_int64s", DType::kInt64);
  read(float(), "_floats", DType::kFloat32);
  read(std::string(), "_strings", DType::kString);
  if (lists != 1) return Unimplemented("it has ", lists, " lists of ", kind, " of integers, floats or strings, not 1");
  return labels;
}

// What is not a number, which has no order, as a word, of which there are none where there are numbers.
Label Ordered(const Label& label) {
  const double* const real = std::get_if<double>(&label);
  return real != nullptr && std::isnan(*real) ? Label(std::string()) : label;
}

StatusOr<std::vector<Label>> LabelsIn(Call& call, const Array& x) {
  std::vector<Label> labels;
  if (x.HasStrings()) {
    for (const std::string_view word : StringsOf(x)) labels.emplace_back(std::string(word));
  } else if (x.dtype == DType::kInt64) {
    for (const int64_t whole : x.As<int64_t>()) labels.emplace_back(whole);
  } else {
    SWIZZLE_ASSIGN_OR_RETURN(const Array reals, call.Floats(0));
    for (const float real : reals.As<float>()) labels.emplace_back(static_cast<double>(real));
  }
  return labels;
}

StatusOr<Array> ArrayOf(Call& call, const Labels& values, const std::vector<Label>& labels, const Shape& shape) {
  if (values.dtype == DType::kString) {
    std::vector<std::string> words;
    for (const Label& label : labels) words.push_back(std::get<std::string>(label));
    return ArrayOfStrings(call.memory(), shape, words);
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(values.dtype, shape));
  for (size_t i = 0; i < labels.size(); ++i) {
    if (values.dtype == DType::kInt64) {
      y.Mutable<int64_t>()[i] = std::get<int64_t>(labels[i]);
    } else {
      y.Mutable<float>()[i] = static_cast<float>(std::get<double>(labels[i]));
    }
  }
  return y;
}

}  // namespace

StatusOr<Array> LabelEncoder(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const Labels keys, ReadLabels(call.node(), "keys"));
  SWIZZLE_ASSIGN_OR_RETURN(Labels values, ReadLabels(call.node(), "values"));
  if (keys.list.size() != values.list.size()) {
    return InvalidArgument("it has ", keys.list.size(), " keys and ", values.list.size(), " values");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::string word, call.String("default_string", "_Unused"));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t whole, call.Int("default_int64", -1));
  SWIZZLE_ASSIGN_OR_RETURN(const float real, call.Float("default_float", -0.0f));
  if (values.dtype == DType::kString) values.absent = word;
  if (values.dtype == DType::kInt64) values.absent = whole;
  if (values.dtype == DType::kFloat32) values.absent = static_cast<double>(real);
  if (x.HasStrings() != (keys.dtype == DType::kString) || (x.dtype == DType::kInt64) != (keys.dtype == DType::kInt64)) {
    return InvalidArgument("input 0 is ", DTypeName(x.dtype), ", its keys are ", DTypeName(keys.dtype));
  }
  SWIZZLE_RETURN_IF_ERROR(call.New(DType::kUint8, {x.elements(), 64}));  // what the labels take here
  std::map<Label, const Label*> found;
  for (size_t i = 0; i < keys.list.size(); ++i) found.emplace(Ordered(keys.list[i]), &values.list[i]);
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<Label> labels, LabelsIn(call, x));
  for (Label& label : labels) {
    const auto place = found.find(Ordered(label));
    label = place != found.end() ? *place->second : values.absent;
  }
  return ArrayOf(call, values, labels, x.shape);
}

}  // namespace swizzle::interpreter
