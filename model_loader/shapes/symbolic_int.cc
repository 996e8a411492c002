#include "model_loader/shapes/symbolic_int.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <numeric>
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

SymbolicInt Symbols::NewSymbol(Symbol symbol) {
  SymbolicInt number;
  number.terms_.push_back({{static_cast<int32_t>(made_.size())}, 1});
  made_.push_back(symbol);
  return number;
}

SymbolicInt Symbols::New() { return NewSymbol({}); }

SymbolicInt Symbols::NewVarying() { return NewSymbol({.varies = true}); }

SymbolicInt Symbols::NewNumber() { return NewSymbol({.is_not_negative = false, .may_wrap = true}); }

std::vector<SymbolicInt> Symbols::OfRank(size_t rank) {
  std::vector<SymbolicInt> sizes(rank);
  std::ranges::generate(sizes, [this] { return New(); });
  return sizes;
}

SymbolicInt Symbols::Named(std::string_view description, std::span<const SymbolicInt> of, bool is_not_negative) {
  std::string name(description);
  Symbol symbol = {.is_not_negative = is_not_negative};
  for (const SymbolicInt& each : of) {
    name += Concat(" (", each.Text(), ")");
    symbol.varies |= Varies(each);
    symbol.may_wrap |= MayWrap(each);
  }
  const auto found = named_.find(name);
  return found != named_.end() ? found->second : named_[name] = NewSymbol(symbol);
}

SymbolicInt Symbols::Size(std::string_view description, std::span<const SymbolicInt> of) {
  return Named(description, of, true);
}

SymbolicInt Symbols::Number(std::string_view description, std::span<const SymbolicInt> of) {
  return Named(description, of, false);
}

template <typename Predicate>
bool Symbols::AnySymbol(const SymbolicInt& number, const Predicate& is) const {
  return std::ranges::any_of(number.terms_, [&](const SymbolicInt::Term& term) {
    return std::ranges::any_of(term.symbols, [&](int32_t symbol) { return is(made_[static_cast<size_t>(symbol)]); });
  });
}

bool Symbols::Varies(const SymbolicInt& number) const { return AnySymbol(number, std::mem_fn(&Symbol::varies)); }

bool Symbols::MayWrap(const SymbolicInt& number) const { return AnySymbol(number, std::mem_fn(&Symbol::may_wrap)); }

bool Symbols::IsNotNegative(const SymbolicInt& number) const {
  const bool adds = std::ranges::all_of(number.terms_, [](const SymbolicInt::Term& term) { return term.factor >= 0; });
  return adds && !AnySymbol(number, [](const Symbol& symbol) { return !symbol.is_not_negative; });
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
  return Named("sum", std::array{a, b}, IsNotNegative(a) && IsNotNegative(b));
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
  return Named("product", std::array{a, b}, IsNotNegative(a) && IsNotNegative(b));
}

SymbolicInt Symbols::Product(std::span<const SymbolicInt> factors) {
  SymbolicInt product = 1;
  for (const SymbolicInt& factor : factors) product = Product(product, factor);
  return product;
}

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

// What divides the divisor, which is one product, and all of the dividend.
SymbolicInt::Term Symbols::CommonFactor(const SymbolicInt& a, const SymbolicInt& b) {
  SymbolicInt::Term common = b.terms_.front();
  for (const SymbolicInt::Term& term : a.terms_) {
    std::vector<int32_t> left;
    std::ranges::set_intersection(common.symbols, term.symbols, std::back_inserter(left));
    common.symbols = std::move(left);
    common.factor = std::gcd(common.factor, term.factor);
  }
  return common;
}

SymbolicInt Symbols::Quotient(const SymbolicInt& a, const SymbolicInt& b) {
  const std::optional<int64_t> dividend = a.Number(), divisor = b.Number();
  if (dividend && divisor && *divisor != 0 && *divisor != -1) return *dividend / *divisor;
  if (const auto exact = ExactQuotient(a, b)) return *exact;
  const bool is_not_negative = IsNotNegative(a) && IsNotNegative(b);
  if (b.terms_.size() != 1 || !is_not_negative) return Named("quotient", std::array{a, b}, is_not_negative);
  SymbolicInt common;
  common.terms_.push_back(CommonFactor(a, b));
  return Named("quotient", std::array{*ExactQuotient(a, common), *ExactQuotient(b, common)}, true);
}

}  // namespace swizzle
