#include "model_loader/semantics/functions.h"

namespace swizzle {

Function FunctionOf(const Node& node) {
  const auto number = [&](const char* name) { return std::get<float>(node.attributes.at(name)); };
  Function function{FunctionKind::kSigmoid, number("alpha"), number("beta")};
  int kind = 0;
  while (FunctionKindName(static_cast<FunctionKind>(kind)) != std::get<std::string>(node.attributes.at("function"))) {
    SWIZZLE_CHECK(++kind < kFunctionKindCount);
  }
  function.kind = static_cast<FunctionKind>(kind);
  return function;
}

std::map<std::string, Attribute> FunctionAttributes(const Function& function) {
  return {
      {"function", std::string(FunctionKindName(function.kind))}, {"alpha", function.alpha}, {"beta", function.beta}};
}

StatusOr<FunctionKind> GeluKindOf(const Node& node) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string approximate, StringAttribute(node, "approximate", "none"));
  if (approximate == "none") return FunctionKind::kGelu;
  if (approximate == "tanh") return FunctionKind::kGeluTanh;
  return InvalidArgument("approximate is neither 'none' nor 'tanh'");
}

}  // namespace swizzle
