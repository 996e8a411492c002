#include "model_loader/semantics/symbolic_int.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "kernels/base/status.h"

namespace swizzle {
namespace {

constexpr size_t kMostTerms = 8, kMostPowers = 8;

}  // namespace

std::optional<int64_t> SymbolicInt::Number() const {
  if (terms_.empty()) return 0;
  return terms_.size() == 1 && terms_.front().symbols.empty() ? std::optional(terms_.front().factor) : std::nullopt;
}

int64_t SymbolicInt::LargestFactor() const {
  int64_t largest = 0;
  for (const Term& term : terms_) {
    if (!term.symbols.empty()) largest = std::max(largest, std::abs(std::max(term.factor, -INT64_MAX)));
  }
  return largest;
}

std::string SymbolicInt::Text() const {
  if (terms_.empty()) return "0";
  std::string text;
  for (const Term& term : terms_) {
    text += Concat(text.empty() ? "" : "+", term.factor);
    for (const int32_t symbol : term.symbols) text += Concat("*s", symbol);
  }
  return text;
}

SymbolicInt Symbols::NewSymbol(bool not_negative) {
  SymbolicInt made;
  made.terms_.push_back({{static_cast<int32_t>(not_negative_.size())}, 1});
  not_negative_.push_back(not_negative);
  return made;
}

SymbolicInt Symbols::New() { return NewSymbol(true); }

std::vector<SymbolicInt> Symbols::OfRank(size_t rank) {
  std::vector<SymbolicInt> sizes(rank);
  std::ranges::generate(sizes, [this] { return New(); });
  return sizes;
}

SymbolicInt Symbols::Named(const std::string& description, bool not_negative) {
  const auto found = named_.find(description);
  if (found != named_.end()) return found->second;
  return named_[description] = NewSymbol(not_negative);
}

bool Symbols::IsNotNegative(const SymbolicInt& number) const {
  return std::ranges::all_of(number.terms_, [this](const SymbolicInt::Term& term) {
    const auto is_not = [this](int32_t symbol) { return not_negative_[static_cast<size_t>(symbol)]; };
    return term.factor >= 0 && std::ranges::all_of(term.symbols, is_not);
  });
}

SymbolicInt Symbols::Sum(const SymbolicInt& a, const SymbolicInt& b) {
  SymbolicInt sum;
  bool possible = true;
  auto left = a.terms_.begin(), right = b.terms_.begin();
  while (left != a.terms_.end() || right != b.terms_.end()) {
    const bool from_left = right == b.terms_.end() || (left != a.terms_.end() && left->symbols <= right->symbols);
    const bool from_right = left == a.terms_.end() || (right != b.terms_.end() && right->symbols <= left->symbols);
    SymbolicInt::Term term = from_left ? *left : *right;
    if (from_left && from_right) {
      possible &= !__builtin_add_overflow(left->factor, right->factor, &term.factor);
    }
    if (term.factor != 0) sum.terms_.push_back(std::move(term));
    if (from_left) ++left;
    if (from_right) ++right;
  }
  if (possible && sum.terms_.size() <= kMostTerms) return sum;
  return Named(Concat("(", a.Text(), ")+(", b.Text(), ")"), IsNotNegative(a) && IsNotNegative(b));
}

SymbolicInt Symbols::Difference(const SymbolicInt& a, const SymbolicInt& b) { return Sum(a, Product(b, -1)); }

SymbolicInt Symbols::Product(const SymbolicInt& a, const SymbolicInt& b) {
  SymbolicInt product;
  bool possible = a.terms_.size() * b.terms_.size() <= kMostTerms;
  for (size_t i = 0; i < a.terms_.size() && possible; ++i) {
    for (const SymbolicInt::Term& right : b.terms_) {
      const SymbolicInt::Term& left = a.terms_[i];
      SymbolicInt one;
      SymbolicInt::Term& term = one.terms_.emplace_back();
      possible &= !__builtin_mul_overflow(left.factor, right.factor, &term.factor);
      std::ranges::merge(left.symbols, right.symbols, std::back_inserter(term.symbols));
      possible &= term.symbols.size() <= kMostPowers && term.factor != 0;
      if (possible) product = Sum(product, one);
    }
  }
  if (possible) return product;
  return Named(Concat("(", a.Text(), ")*(", b.Text(), ")"), IsNotNegative(a) && IsNotNegative(b));
}

SymbolicInt Symbols::Product(std::span<const SymbolicInt> factors) {
  SymbolicInt product = 1;
  for (const SymbolicInt& factor : factors) product = Product(product, factor);
  return product;
}

// By one term that is in each of the dividend's.
std::optional<SymbolicInt> Symbols::ExactQuotient(const SymbolicInt& a, const SymbolicInt& b) {
  if (b.terms_.size() != 1 || b.terms_.front().factor == -1) return std::nullopt;
  const SymbolicInt::Term& by = b.terms_.front();
  SymbolicInt quotient;
  for (const SymbolicInt::Term& term : a.terms_) {
    if (term.factor % by.factor != 0 || !std::ranges::includes(term.symbols, by.symbols)) return std::nullopt;
    SymbolicInt one;
    one.terms_.push_back({{}, term.factor / by.factor});
    std::ranges::set_difference(term.symbols, by.symbols, std::back_inserter(one.terms_.front().symbols));
    quotient = Sum(quotient, one);
  }
  return quotient;
}

SymbolicInt Symbols::Quotient(const SymbolicInt& a, const SymbolicInt& b) {
  const std::optional<int64_t> dividend = a.Number(), divisor = b.Number();
  if (dividend && divisor && *divisor != 0 && *divisor != -1) return *dividend / *divisor;
  if (const auto exact = ExactQuotient(a, b)) return *exact;
  return Named(Concat("(", a.Text(), ")/(", b.Text(), ")"), IsNotNegative(a) && IsNotNegative(b));
}

}  // namespace swizzle
