#include "model_loader/semantics/dropout.h"

namespace swizzle {

Status CheckInference(const Graph& graph, const Node& dropout) {
  constexpr int64_t kIsTestDropped = 7;  // the opset from which on Dropout alone does nothing
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t is_test, IntAttribute(dropout, "is_test", 0));
  if (graph.opset < kIsTestDropped && is_test == 0) {
    return Unimplemented(Describe(dropout), " is in training mode (is_test 0); export the model for inference");
  }
  const int training = dropout.Input(2);
  if (training == kNoValue) return {};
  const auto& constant = graph.values[static_cast<size_t>(training)].constant;
  const bool off = constant && constant->bytes.size() == 1 && constant->bytes[0] == std::byte{0};
  return off ? Status() : Unimplemented(Describe(dropout), " is in training mode; export the model for inference");
}

}  // namespace swizzle
