#include "model_loader/semantics/epilogues.h"

#include "model_loader/graph/operators.h"

namespace swizzle {

Epilogue EpilogueOf(const Node& node) {
  Epilogue epilogue;
  const auto bound = [&](const char* name, float absent) {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? absent : std::get<float>(found->second);
  };
  epilogue.low = bound("low", epilogue.low);
  epilogue.high = bound("high", epilogue.high);
  const bool convolution = Is(node, "Conv") || Is(node, "DepthwiseConv");
  epilogue.residual = convolution && node.Input(kResidualInput) != kNoValue;
  return epilogue;
}

void SetBounds(Node& node, float low, float high) {
  node.attributes["low"] = low;
  node.attributes["high"] = high;
}

}  // namespace swizzle
