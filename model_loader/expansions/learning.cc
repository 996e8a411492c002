// Operators of ai.onnx.ml on numbers: what comes before and after models of other libraries than networks'.
#include <cmath>

#include "model_loader/expansions/operators.h"

namespace swizzle::expansions {
namespace {

// The attribute's list; empty where there is none.
template <typename T>
std::vector<T> ListOf(const Site& site, const char* name) {
  const auto found = site.node().attributes.find(name);
  const auto* const list =
      found != site.node().attributes.end() ? std::get_if<std::vector<T>>(&found->second) : nullptr;
  return list != nullptr ? *list : std::vector<T>();
}

// One number, or one for each feature of the last dimension.
int Features(Site& site, const std::vector<float>& numbers) {
  const Shape shape = numbers.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(numbers.size())};
  return site.Constant(Tensor::Floats(shape, numbers));
}

int AsFloats(Site& site, int x) {
  return site.facts().Of(x).dtype == DType::kFloat32 ? x : site.Cast(x, DType::kFloat32);
}

// Over the last dimension, which stays.
int ReducedLast(Site& site, const char* op, int x) {
  const std::vector<int64_t> last = {-1};
  if (site.opset() < 18) return site.Make(op, {x}, {{"axes", last}, {"keepdims", int64_t{1}}});
  return site.Make(op, {x, site.Wholes(last)}, {{"keepdims", int64_t{1}}});
}

// The inputs by `coefficients`, a row for each of what is scored, and `intercepts`.
StatusOr<int> LinearScores(Site& site, int64_t scored, const char* what) {
  const std::vector<float> coefficients = ListOf<float>(site, "coefficients");
  const std::vector<float> intercepts = ListOf<float>(site, "intercepts");
  const auto count = static_cast<int64_t>(coefficients.size());
  if (scored < 1 || count == 0 || count % scored != 0) {
    return InvalidArgument("it has ", count, " coefficients for ", scored, " ", what);
  }
  const int weight = site.Constant(Tensor::Floats({scored, count / scored}, coefficients));
  std::vector<int> inputs = {AsFloats(site, site.In(0)), weight};
  if (!intercepts.empty()) inputs.push_back(Features(site, intercepts));
  return site.Make("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
}

}  // namespace

Status ArrayFeatureExtractor(Site& site) {
  const int places = site.Reshape(site.In(1), {-1});
  site.Result(0, site.Make("Gather", {site.In(0), places}, {{"axis", int64_t{-1}}}));
  return {};
}

Status Binarizer(Site& site) {
  SWIZZLE_ASSIGN_OR_RETURN(const float threshold, site.Float("threshold", 0.0f));
  const int above = site.Make("Greater", {site.In(0), site.Number(threshold, site.In(0))});
  site.Result(0, site.Cast(above, site.TypeOf(site.In(0))));
  return {};
}

Status FeatureVectorizer(Site& site) {
  std::vector<int> parts;
  for (const int input : site.node().inputs) parts.push_back(AsFloats(site, input));
  site.Result(0, site.Make("Concat", std::move(parts), {{"axis", int64_t{-1}}}));
  return {};
}

Status Imputer(Site& site) {
  const std::vector<float> values = ListOf<float>(site, "imputed_value_floats");
  if (values.empty()) return Unimplemented("only imputed_value_floats are supported");
  SWIZZLE_ASSIGN_OR_RETURN(const float replaced, site.Float("replaced_value_float", 0.0f));
  const int x = site.In(0);
  const bool is_nan = std::isnan(replaced);
  const int missing = is_nan ? site.Make("IsNaN", {x}) : site.Make("Equal", {x, site.Number(replaced, x)});
  site.Result(0, site.Make("Where", {missing, Features(site, values), x}));
  return {};
}

// The class of the greatest score, and the scores of all.
Status LinearClassifier(Site& site) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string after, site.Text("post_transform", "NONE"));
  const std::vector<int64_t> classes = ListOf<int64_t>(site, "classlabels_ints");
  if (classes.empty()) return Unimplemented("only classlabels_ints are supported");
  SWIZZLE_ASSIGN_OR_RETURN(const int scores, LinearScores(site, static_cast<int64_t>(classes.size()), "classes"));
  const int greatest = site.Make("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  site.Result(0, site.Make("Gather", {site.Wholes(classes), greatest}, {{"axis", int64_t{0}}}));
  if (after == "NONE") {
    site.Result(1, scores);
  } else if (after == "SOFTMAX") {
    site.Result(1, site.Make("Softmax", {scores}, {{"axis", int64_t{1}}}));
  } else if (after == "LOGISTIC") {
    site.Result(1, site.Make("Sigmoid", {scores}));
  } else {
    return Unimplemented("its post_transform ", after, " is not supported");
  }
  return {};
}

Status LinearRegressor(Site& site) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t targets, site.Int("targets", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string after, site.Text("post_transform", "NONE"));
  if (after != "NONE") return Unimplemented("its post_transform ", after, " is not supported");
  SWIZZLE_ASSIGN_OR_RETURN(const int scores, LinearScores(site, targets, "targets"));
  site.Result(0, scores);
  return {};
}

Status Normalizer(Site& site) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string norm, site.Text("norm", "MAX"));
  const int x = AsFloats(site, site.In(0));
  int by = kNoValue;
  if (norm == "MAX") {
    by = ReducedLast(site, "ReduceMax", x);
  } else if (norm == "L1" || norm == "L2") {
    by = ReducedLast(site, norm == "L1" ? "ReduceL1" : "ReduceL2", x);
  } else {
    return InvalidArgument("its norm is '", norm, "'; it may be MAX, L1 or L2");
  }
  // A row of zeros stays as it is.
  const int is_zero = site.Make("Equal", {by, site.Number(0.0, x)});
  site.Result(0, site.Make("Div", {x, site.Make("Where", {is_zero, site.Number(1.0, x), by})}));
  return {};
}

Status Scaler(Site& site) {
  const std::vector<float> offset = ListOf<float>(site, "offset"), scale = ListOf<float>(site, "scale");
  int x = AsFloats(site, site.In(0));
  if (!offset.empty()) x = site.Make("Sub", {x, Features(site, offset)});
  if (!scale.empty()) x = site.Make("Mul", {x, Features(site, scale)});
  site.Result(0, x);
  return {};
}

}  // namespace swizzle::expansions
