#include "model_loader/semantics/written_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "kernels/operator/element_functions.h"
#include "model_loader/semantics/point_function.h"

namespace swizzle {
namespace {

constexpr std::array<std::string_view, 7> kOfGelu = {"Add", "Div", "Erf", "Mul", "Pow", "Sub", "Tanh"};
// Where functions that are written out are compared with those that plans know, and how near they have to be.
constexpr std::array<double, 10> kSamples = {-6.0, -2.5, -1.0, -0.3, -0.01, 0.0, 0.2, 0.9, 2.0, 5.0};
constexpr double kNear = 2e-6;
constexpr int kMostSteps = 4;  // from the error function to the function's input, and to its result

bool IsOfGelu(const Node& node) { return node.domain.empty() && std::ranges::find(kOfGelu, node.op) != kOfGelu.end(); }

}  // namespace

// The function of x that makes `value`, at `at`; its nodes. Nothing where it reads anything else.
std::optional<double> WrittenFunctions::Evaluate(int value, int x, double at, std::set<int>& nodes) {
  if (value == x) return at;
  if (value == kNoValue) return std::nullopt;
  if (const auto number = uses_.Number(value)) return *number;
  const int maker = uses_.MakerOf(value);
  constexpr size_t kMostNodes = 12;
  if (maker == ValueUses::kOutside || nodes.size() > kMostNodes || --steps_ < 0) return std::nullopt;
  const Node& node = NodeAt(maker);
  if (!IsOfGelu(node)) return std::nullopt;
  nodes.insert(maker);
  std::vector<double> operands;
  for (const int input : node.inputs) {
    const auto operand = Evaluate(input, x, at, nodes);
    if (!operand) return std::nullopt;
    operands.push_back(*operand);
  }
  const auto function = PointFunctionOf(node, DType::kFloat32);
  return function ? std::optional((*function)(operands)) : std::nullopt;
}

template <typename Computed>
bool WrittenFunctions::Computes(int value, int x, const Computed& function, std::set<int>& nodes) {
  return std::ranges::all_of(kSamples, [&](double at) {
    const auto is = Evaluate(value, x, at, nodes);
    return is && std::abs(*is - function(at)) <= kNear * std::max(1.0, std::abs(function(at)));
  });
}

// The values that the node's may be a function of: those before it.
std::vector<int> WrittenFunctions::ValuesBefore(int index) const {
  std::vector<int> values;
  std::vector<int> open = {index};
  for (int step = 0; step < kMostSteps; ++step) {
    std::vector<int> next;
    for (const int node : open) {
      for (const int input : NodeAt(node).inputs) {
        if (input == kNoValue || uses_.IsKnown(input)) continue;
        values.push_back(input);
        const int maker = uses_.MakerOf(input);
        if (maker != ValueUses::kOutside && IsOfGelu(NodeAt(maker))) next.push_back(maker);
      }
    }
    open = std::move(next);
  }
  return values;
}

std::optional<WrittenFunction> WrittenFunctions::Around(int index) {
  const bool exact = NodeAt(index).op == "Erf";
  for (const int x : ValuesBefore(index)) {
    std::vector<int> open = {index};
    for (int step = 0; step < kMostSteps && !open.empty(); ++step) {
      std::vector<int> next;
      for (const int node : open) {
        const int value = NodeAt(node).outputs[0];
        std::set<int> nodes;
        if (exact ? Computes(value, x, elementwise::kGelu, nodes) : Computes(value, x, elementwise::kGeluTanh, nodes)) {
          const FunctionKind kind = exact ? FunctionKind::kGelu : FunctionKind::kGeluTanh;
          return WrittenFunction{{nodes.begin(), nodes.end()}, x, value, {kind, 0.0f, 0.0f}};
        }
        const std::span<const int> readers = uses_.ReadersOf(value);
        if (readers.size() > 2) continue;
        std::ranges::copy_if(readers, std::back_inserter(next),
                             [&](int reader) { return reader != ValueUses::kOutside && IsOfGelu(NodeAt(reader)); });
      }
      open = std::move(next);
    }
  }
  return std::nullopt;
}

}  // namespace swizzle
