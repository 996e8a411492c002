#include "model_loader/semantics/equation.h"

#include <algorithm>
#include <string>

namespace swizzle {
namespace {

constexpr int kDots = -1;  // in place of all labels of "..."

// As it is written, kDots for "...".
StatusOr<Labels> Symbols(std::string_view text) {
  Labels symbols;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= 'A' && c <= 'Z') {
      symbols.push_back(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      symbols.push_back(26 + c - 'a');
    } else if (text.substr(i).starts_with("...") && std::ranges::count(symbols, kDots) == 0) {
      symbols.push_back(kDots);
      i += 2;
    } else {
      return InvalidArgument("the equation has '", std::string(1, c), "' where a letter, or \"...\" once, may stand");
    }
  }
  return symbols;
}

// The symbols, kDots replaced by the labels of `dots` dimensions.
Labels WithDots(const Labels& symbols, int64_t dots) {
  Labels labels;
  for (const int symbol : symbols) {
    if (symbol != kDots) labels.push_back(symbol);
    for (int64_t dot = dots; symbol == kDots && dot > 0; --dot) labels.push_back(kFirstDot + static_cast<int>(dot) - 1);
  }
  return labels;
}

StatusOr<int64_t> DotsOf(const Labels& symbols, int64_t rank) {
  const int64_t letters = std::ranges::count_if(symbols, [](int symbol) { return symbol != kDots; });
  const bool fits = std::ranges::count(symbols, kDots) > 0 ? rank >= letters : rank == letters;
  if (fits) return rank - letters;
  return InvalidArgument("the equation gives an operand of ", rank, " dimensions ", letters, " letters");
}

Labels ImpliedResult(const std::vector<Labels>& operands, int64_t dots) {
  Labels result = WithDots({kDots}, dots);
  for (int letter = 0; letter < kFirstDot; ++letter) {
    int64_t count = 0;
    for (const Labels& operand : operands) count += std::ranges::count(operand, letter);
    if (count == 1) result.push_back(letter);
  }
  return result;
}

Status CheckResult(const Equation& equation) {
  for (const int label : equation.result) {
    const bool known = std::ranges::any_of(
        equation.operands, [&](const Labels& operand) { return std::ranges::count(operand, label) > 0; });
    if (!known || std::ranges::count(equation.result, label) > 1) {
      return InvalidArgument("the equation's result has a letter twice, or one that no operand has");
    }
  }
  return {};
}

}  // namespace

StatusOr<Equation> ReadEquation(std::string_view text, std::span<const int64_t> ranks) {
  std::string squeezed(text);
  std::erase(squeezed, ' ');
  const size_t arrow = squeezed.find("->");
  std::string_view left = std::string_view(squeezed).substr(0, arrow);
  Equation equation;
  int64_t dots = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const size_t comma = left.find(',');
    const bool last = comma == std::string_view::npos;
    if (last != (i + 1 == ranks.size())) {
      return InvalidArgument("the equation '", std::string(text), "' is not one of ", ranks.size(), " operands");
    }
    SWIZZLE_ASSIGN_OR_RETURN(const Labels symbols, Symbols(left.substr(0, comma)));
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t its, DotsOf(symbols, ranks[i]));
    equation.operands.push_back(WithDots(symbols, its));
    dots = std::max(dots, its);
    if (!last) left.remove_prefix(comma + 1);
  }
  if (arrow == std::string::npos) {
    equation.result = ImpliedResult(equation.operands, dots);
    return equation;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Labels symbols, Symbols(std::string_view(squeezed).substr(arrow + 2)));
  equation.result = WithDots(symbols, dots);
  SWIZZLE_RETURN_IF_ERROR(CheckResult(equation));
  return equation;
}

}  // namespace swizzle
