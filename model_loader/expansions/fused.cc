// Operators that ONNX Runtime's optimiser makes of a product or a convolution and what follows it.
#include <limits>
#include <numeric>

#include "model_loader/expansions/operators.h"

namespace swizzle::expansions {
namespace {

int Gelu(Site& site, int x, const char* approximate = "none") {
  return site.Make("Gelu", {x}, {{"approximate", std::string(approximate)}});
}

int WithBias(Site& site, int x, size_t bias) { return site.Has(bias) ? site.Make("Add", {x, site.In(bias)}) : x; }

int TimesSigmoid(Site& site, int x, double alpha) {
  return site.Make("Mul", {x, site.Make("Sigmoid", {site.Scaled(x, alpha)})});
}

// An activation by ONNX Runtime's names, with up to two parameters.
struct NamedActivation {
  std::string name;
  std::optional<float> alpha, beta;
};

StatusOr<int> Activated(Site& site, int x, const NamedActivation& activation) {
  const std::string& name = activation.name;
  if (name.empty()) return x;
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh" || name == "Softplus" || name == "Softsign") {
    return site.Make(name, {x});
  }
  if (name == "Gelu") return Gelu(site, x);
  if (name == "Clip") return site.Clip(x, activation.alpha, activation.beta);
  Attributes attributes;
  if (activation.alpha) attributes["alpha"] = *activation.alpha;
  if (name == "LeakyRelu" || name == "Elu" || name == "ThresholdedRelu") {
    return site.Make(name, {x}, std::move(attributes));
  }
  if (activation.beta) attributes["beta"] = *activation.beta;
  if (name == "HardSigmoid") return site.Make(name, {x}, std::move(attributes));
  return Unimplemented("its activation '", name, "' is not supported");
}

// The node's attributes but for those of its activation.
Attributes PlainAttributes(const Node& node) {
  Attributes attributes = node.attributes;
  std::erase_if(attributes, [](const auto& attribute) { return attribute.first.starts_with("activation"); });
  return attributes;
}

std::optional<float> FloatOf(const Node& node, const char* name) {
  const auto found = node.attributes.find(name);
  const float* const value = found != node.attributes.end() ? std::get_if<float>(&found->second) : nullptr;
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

StatusOr<NamedActivation> ActivationOf(Site& site) {
  NamedActivation activation;
  SWIZZLE_ASSIGN_OR_RETURN(activation.name, site.Text("activation", ""));
  activation.alpha = FloatOf(site.node(), "activation_alpha");
  activation.beta = FloatOf(site.node(), "activation_beta");
  const auto found = site.node().attributes.find("activation_params");
  const auto* const list =
      found != site.node().attributes.end() ? std::get_if<std::vector<float>>(&found->second) : nullptr;
  if (list != nullptr && !list->empty()) activation.alpha = (*list)[0];
  if (list != nullptr && list->size() > 1) activation.beta = (*list)[1];
  return activation;
}

// One operand of a FusedMatMul, with its matrices turned, and its batches, where they come behind the rows.
StatusOr<int> Turned(Site& site, int x, int64_t turns, int64_t turns_batches) {
  if (turns == 0 && turns_batches == 0) return x;
  const std::optional<size_t> rank = site.RankOf(x);
  if (!rank) {
    return Unimplemented("the rank of its operand is not known: run onnx.shape_inference.infer_shapes on the model");
  }
  if (*rank < 2) return turns_batches == 0 ? StatusOr<int>(x) : InvalidArgument("it turns batches of a vector");
  std::vector<int64_t> order(*rank);
  std::iota(order.begin(), order.end(), 0);
  if (turns_batches != 0) {  // [rows, batches, columns]
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  }
  if (turns != 0) std::swap(order[*rank - 2], order[*rank - 1]);
  return site.Transpose(x, std::move(order));
}

}  // namespace

Status BiasAdd(Site& site) {
  site.Result(0, WithBias(site, WithBias(site, site.In(0), 1), 2));
  return {};
}

Status BiasGelu(Site& site) {
  site.Result(0, Gelu(site, WithBias(site, site.In(0), 1)));
  return {};
}

Status FastGelu(Site& site) {
  site.Result(0, Gelu(site, WithBias(site, site.In(0), 1), "tanh"));
  return {};
}

// The optimiser makes it where the bias broadcasts; is_inner_broadcast says how where its rank is less, which it is in
// none of these.
Status BiasSoftmax(Site& site) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, site.Int("axis", 1));
  const std::optional<size_t> rank = site.RankOf(site.In(0));
  if (axis != -1 && (!rank || axis != static_cast<int64_t>(*rank) - 1)) {
    return Unimplemented("its axis is ", axis, ", and only the last, of a known rank, is supported");
  }
  const int sum = site.Make("Add", {site.In(0), site.In(1)});
  site.Result(0, site.Make("Softmax", {sum}, {{"axis", axis}}));
  return {};
}

Status BiasSplitGelu(Site& site) {
  const std::vector<int> halves = site.Split(WithBias(site, site.In(0), 1), -1, 2);
  site.Result(0, site.Make("Mul", {halves[0], Gelu(site, halves[1])}));
  return {};
}

Status QuickGelu(Site& site) {
  const float absent = site.node().op == "QuickGelu" ? 1.702f : 1.0f;
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, site.Float("alpha", absent));
  site.Result(0, TimesSigmoid(site, site.In(0), alpha));
  return {};
}

Status FusedConv(Site& site) {
  constexpr size_t kBias = 2, kSum = 3;
  std::vector<int> inputs = {site.In(0), site.In(1)};
  if (site.Has(kBias)) inputs.push_back(site.In(kBias));
  const int conv = site.Make("Conv", std::move(inputs), PlainAttributes(site.node()));
  SWIZZLE_ASSIGN_OR_RETURN(const NamedActivation activation, ActivationOf(site));
  SWIZZLE_ASSIGN_OR_RETURN(const int result, Activated(site, WithBias(site, conv, kSum), activation));
  site.Result(0, result);
  return {};
}

Status FusedGemm(Site& site) {
  std::vector<int> inputs = {site.In(0), site.In(1)};
  if (site.Has(2)) inputs.push_back(site.In(2));
  const int product = site.Make("Gemm", std::move(inputs), PlainAttributes(site.node()));
  SWIZZLE_ASSIGN_OR_RETURN(const NamedActivation activation, ActivationOf(site));
  SWIZZLE_ASSIGN_OR_RETURN(const int result, Activated(site, product, activation));
  site.Result(0, result);
  return {};
}

Status FusedMatMul(Site& site) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, site.Float("alpha", 1.0f));
  std::vector<int> operands;
  for (size_t i = 0; i < 2; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t turns, site.Int(i == 0 ? "transA" : "transB", 0));
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t batches, site.Int(i == 0 ? "transBatchA" : "transBatchB", 0));
    SWIZZLE_ASSIGN_OR_RETURN(operands.emplace_back(), Turned(site, site.In(i), turns, batches));
  }
  const int product = site.Scaled(site.Make("MatMul", std::move(operands)), alpha);
  SWIZZLE_ASSIGN_OR_RETURN(const NamedActivation activation, ActivationOf(site));
  SWIZZLE_ASSIGN_OR_RETURN(const int result, Activated(site, product, activation));
  site.Result(0, result);
  return {};
}

}  // namespace swizzle::expansions
