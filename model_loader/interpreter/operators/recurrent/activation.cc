// The functions that gates of recurrent networks go through.
#include <cmath>
#include <limits>
#include <string_view>

#include "kernels/cpu/elementwise/function.h"
#include "model_loader/interpreter/operators/recurrent/recurrent.h"

namespace swizzle::interpreter {
namespace {

struct Known {
  std::string_view name;
  Activation::Kind kind;
  bool has_alpha;
  bool has_beta;
  float alpha;  // where the node gives none
  float beta;
};

constexpr Known kKnown[] = {
    {"Relu", Activation::kRelu, false, false, 0.0f, 0.0f},
    {"Tanh", Activation::kTanh, false, false, 0.0f, 0.0f},
    {"Sigmoid", Activation::kSigmoid, false, false, 0.0f, 0.0f},
    {"Affine", Activation::kAffine, true, true, 1.0f, 0.0f},
    {"LeakyRelu", Activation::kLeakyRelu, true, false, 0.01f, 0.0f},
    {"ThresholdedRelu", Activation::kThresholdedRelu, true, false, 1.0f, 0.0f},
    {"ScaledTanh", Activation::kScaledTanh, true, true, 1.0f, 1.0f},
    {"HardSigmoid", Activation::kHardSigmoid, true, true, 0.2f, 0.5f},
    {"Elu", Activation::kElu, true, false, 1.0f, 0.0f},
    {"Softsign", Activation::kSoftsign, false, false, 0.0f, 0.0f},
    {"Softplus", Activation::kSoftplus, false, false, 0.0f, 0.0f},
};

StatusOr<const Known*> FindActivation(std::string_view name) {
  for (const Known& known : kKnown) {
    if (known.name == name) return &known;
  }
  return InvalidArgument("activation '", name, "' is not known");
}

template <typename Function>
void Map(float* values, int64_t count, const Function& function) {
  for (int64_t i = 0; i < count; ++i) values[i] = function(values[i]);
}

}  // namespace

void Activation::Apply(float* values, int64_t count) const {
  switch (kind) {
    case kRelu:
      return Map(values, count, [](float x) { return x < 0.0f ? 0.0f : x; });
    case kTanh:
      return cpu::ApplyFunction({FunctionKind::kTanh}, values, count);
    case kSigmoid:
      return cpu::ApplyFunction({FunctionKind::kSigmoid}, values, count);
    case kAffine:
      return Map(values, count, [this](float x) { return alpha * x + beta; });
    case kLeakyRelu:
      return cpu::ApplyFunction({FunctionKind::kLeakyRelu, alpha}, values, count);
    case kThresholdedRelu:
      return Map(values, count, [this](float x) { return x >= alpha ? x : 0.0f; });
    case kScaledTanh:
      return Map(values, count, [this](float x) { return alpha * std::tanh(beta * x); });
    case kHardSigmoid:
      return cpu::ApplyFunction({FunctionKind::kHardSigmoid, alpha, beta}, values, count);
    case kElu:
      return Map(values, count, [this](float x) { return x < 0.0f ? alpha * std::expm1(x) : x; });
    case kSoftsign:
      return Map(values, count, [](float x) { return x / (1.0f + std::fabs(x)); });
    case kSoftplus:
      return Map(values, count, [](float x) { return std::fmax(x, 0.0f) + std::log1p(std::exp(-std::fabs(x))); });
  }
}

StatusOr<std::vector<Activation>> ReadActivations(const Node& node, int64_t directions,
                                                  const std::vector<Activation::Kind>& absent) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, StringsAttribute(node, "activations"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> alphas, FloatsAttribute(node, "activation_alpha"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> betas, FloatsAttribute(node, "activation_beta"));
  const size_t count = absent.size() * static_cast<size_t>(directions);
  if (!names.empty() && names.size() != count) {
    return InvalidArgument("it has ", names.size(), " activations instead of ", count);
  }
  std::vector<Activation> activations;
  size_t alpha = 0, beta = 0;  // how many are used up: functions that have none take none
  for (size_t i = 0; i < count; ++i) {
    if (names.empty()) {
      activations.push_back({absent[i % absent.size()]});
      continue;
    }
    SWIZZLE_ASSIGN_OR_RETURN(const Known* known, FindActivation(names[i]));
    Activation& added = activations.emplace_back(Activation{known->kind, known->alpha, known->beta});
    if (known->has_alpha && alpha < alphas.size()) added.alpha = alphas[alpha++];
    if (known->has_beta && beta < betas.size()) added.beta = betas[beta++];
    if (!std::isfinite(added.alpha) || !std::isfinite(added.beta)) {
      return InvalidArgument("activation '", names[i], "' has numbers that are not finite");
    }
  }
  return activations;
}

}  // namespace swizzle::interpreter
