// Whole numbers that a model leaves open: sizes of dimensions that requests choose, and what its graph computes of
// them, as polynomials of symbols. Two that compare equal are equal in every run; two that don't may be.
#ifndef SWIZZLE_MODEL_LOADER_SHAPES_SYMBOLIC_INT_H_
#define SWIZZLE_MODEL_LOADER_SHAPES_SYMBOLIC_INT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swizzle {

// Value type. Made by Symbols, but for numbers.
class SymbolicInt {
 public:
  SymbolicInt() = default;  // 0
  // NOLINTNEXTLINE(google-explicit-constructor): a number is one of them
  SymbolicInt(int64_t number) {
    if (number != 0) terms_.push_back({{}, number});
  }

  // Nothing where it depends on symbols.
  std::optional<int64_t> Number() const;
  bool Is(int64_t number) const { return Number() == number; }
  // The largest number, by its distance from 0, that a product of symbols is multiplied by; 0 where there is none.
  int64_t LargestFactor() const;
  std::string Text() const;  // "2*s1*s1+s3+5"
  bool operator==(const SymbolicInt&) const = default;

 private:
  friend class Symbols;

  // factor * the product of the symbols, ascending, one as often as its power says.
  struct Term {
    std::vector<int32_t> symbols;
    int64_t factor;
    bool operator==(const Term&) const = default;
  };

  std::vector<Term> terms_;  // ascending by symbols, no two of the same, no factor 0
};

// The symbols of one graph, and arithmetic on them: what has no polynomial of moderate size is a symbol of its own, the
// same for the same operands. Thread-compatible.
class Symbols {
 public:
  // One that is equal to no other, and not below 0; so many.
  SymbolicInt New();
  std::vector<SymbolicInt> OfRank(size_t rank);
  // The new one varies while others stand for the same numbers, and so does what is made of it.
  SymbolicInt NewVarying();
  // Any whole number at all, which need be no size; sums and products of it may wrap around.
  SymbolicInt NewNumber();
  // What `description` and `of` make, which have to say all that the number depends on: the same for the same. Not
  // below 0.
  SymbolicInt Size(std::string_view description, std::span<const SymbolicInt> of);
  // Number does so for what may be below 0; the result is like NewNumber() if one of `of` is.
  SymbolicInt Number(std::string_view description, std::span<const SymbolicInt> of);

  SymbolicInt Sum(const SymbolicInt& a, const SymbolicInt& b);
  SymbolicInt Difference(const SymbolicInt& a, const SymbolicInt& b);
  SymbolicInt Product(const SymbolicInt& a, const SymbolicInt& b);
  SymbolicInt Product(std::span<const SymbolicInt> factors);
  SymbolicInt Quotient(const SymbolicInt& a, const SymbolicInt& b);  // towards 0
  // By one product of a number and symbols that is in each of the dividend's; else nothing.
  std::optional<SymbolicInt> ExactQuotient(const SymbolicInt& a, const SymbolicInt& b);

  // False where it isn't known.
  bool IsNotNegative(const SymbolicInt& number) const;
  // Whether it is made of what varies, or of any number at all.
  bool Varies(const SymbolicInt& number) const;
  bool MayWrap(const SymbolicInt& number) const;

 private:
  struct Symbol {
    bool is_not_negative = true;
    bool varies = false;
    bool may_wrap = false;
  };

  SymbolicInt Named(std::string_view description, std::span<const SymbolicInt> of, bool is_not_negative);
  SymbolicInt NewSymbol(Symbol symbol);
  static SymbolicInt::Term CommonFactor(const SymbolicInt& a, const SymbolicInt& b);
  template <typename Predicate>
  bool AnySymbol(const SymbolicInt& number, const Predicate& is) const;

  std::map<std::string, SymbolicInt> named_;
  std::vector<Symbol> made_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SHAPES_SYMBOLIC_INT_H_
