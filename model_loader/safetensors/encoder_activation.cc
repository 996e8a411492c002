#include "model_loader/safetensors/encoder_activation.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace swizzle {
namespace {

// By the names that transformers knows, all of them but those that have weights of their own.
constexpr auto kActivations = std::to_array<std::pair<std::string_view, EncoderActivation>>({
    {"gelu", EncoderActivation::kGelu},
    {"gelu_python", EncoderActivation::kGelu},
    {"gelu_new", EncoderActivation::kGeluTanh},
    {"gelu_fast", EncoderActivation::kGeluTanh},
    {"gelu_accurate", EncoderActivation::kGeluTanh},
    {"gelu_pytorch_tanh", EncoderActivation::kGeluTanh},
    {"gelu_python_tanh", EncoderActivation::kGeluTanh},
    {"gelu_10", EncoderActivation::kGelu10},
    {"quick_gelu", EncoderActivation::kQuickGelu},
    {"silu", EncoderActivation::kSilu},
    {"swish", EncoderActivation::kSilu},
    {"mish", EncoderActivation::kMish},
    {"relu", EncoderActivation::kRelu},
    {"relu2", EncoderActivation::kRelu2},
    {"relu6", EncoderActivation::kRelu6},
    {"leaky_relu", EncoderActivation::kLeakyRelu},
    {"tanh", EncoderActivation::kTanh},
    {"sigmoid", EncoderActivation::kSigmoid},
    {"linear", EncoderActivation::kLinear},
});

}  // namespace

StatusOr<EncoderActivation> ReadActivation(const ConfigFields& fields, const char* name, const char* absent) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string activation, fields.Text(name, absent));
  std::string known;
  for (const auto& [its, value] : kActivations) {
    if (its == activation) return value;
    known += Concat(known.empty() ? "" : ", ", its);
  }
  return Unimplemented("its ", name, " is ", ConfigFields::Shown(activation), "; supported are ", known);
}

}  // namespace swizzle
