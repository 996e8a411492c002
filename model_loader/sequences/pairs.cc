#include "model_loader/sequences/pairs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "kernels/base/integers.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/elements.h"

namespace swizzle {
namespace {

// A square of two numbers.
struct Bits {
  double low = 0.0, high = 0.0;  // of bits 0 and 1
  int64_t words = 0;             // of a row
  std::vector<uint64_t> bits;
};

SharedPairs PairsOfBits(Bits square) {
  const auto shared = std::make_shared<const Bits>(std::move(square));
  const auto row = [shared](int64_t query, std::span<double> keys) {
    const uint64_t* words = shared->bits.data() + query * shared->words;
    for (size_t key = 0; key < keys.size(); ++key) {
      keys[key] = (words[key / 64] >> (key % 64) & 1) != 0 ? shared->high : shared->low;
    }
  };
  return std::make_shared<const PairFunction>(PairFunction{row, 1});
}

// Elements of `size` bytes, [length, length]; `number` makes a number of one. Null where there are more than two.
template <typename Number>
SharedPairs PairsOfBytes(const std::byte* elements, size_t size, int64_t length, const Number& number) {
  Bits square;
  square.words = CeilDiv(length, 64);
  square.bits.resize(static_cast<size_t>(length * square.words));
  const std::byte* const low = elements;
  const std::byte* high = nullptr;
  for (int64_t query = 0; query < length; ++query) {
    uint64_t* const row = square.bits.data() + query * square.words;
    const std::byte* element = elements + static_cast<size_t>(query * length) * size;
    for (int64_t key = 0; key < length; ++key, element += size) {
      if (std::memcmp(element, low, size) == 0) continue;
      if (high == nullptr) high = element;
      if (std::memcmp(element, high, size) != 0) return nullptr;
      row[key / 64] |= uint64_t{1} << (key % 64);
    }
  }
  square.low = number(low);
  square.high = high == nullptr ? square.low : number(high);
  return PairsOfBits(std::move(square));
}

double NumberAt(const Tensor& tensor, const std::byte* element) {
  const size_t size = ElementBytes(tensor.dtype);
  const auto elements = Elements::FromTensor({tensor.dtype, {1}, {element, element + size}});
  const Scalar& scalar = elements->scalars[0];
  return IsFloating(tensor.dtype) ? scalar.real : static_cast<double>(scalar.whole);
}

// Which keys a row of numbers lets through, appended; what is added to the others is at most `largest_excluded`.
class RowReader {
 public:
  explicit RowReader(MaskUse use) : use_(use) {}

  StatusOr<bool> LetsThrough(double number) {
    if (use_ == MaskUse::kKeepsTrue) return number != 0;
    if (use_ == MaskUse::kKeepsFalse) return number == 0;
    const double added = use_ == MaskUse::kAdded ? number : -number;
    if (added <= kExcludedScore) {
      largest_excluded_ = std::max(largest_excluded_, added);
      return false;
    }
    if (!keeps_) kept_ = added;
    keeps_ = true;
    if (added == kept_) return true;
    return InvalidArgument("its mask adds ", added, " to some scores and ", kept_, " to others");
  }

  double largest_excluded() const { return largest_excluded_; }

 private:
  const MaskUse use_;
  bool keeps_ = false;  // any so far
  double kept_ = 0.0;   // what was added to them
  double largest_excluded_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

SharedPairs PairsOfNumber(double number) {
  return std::make_shared<const PairFunction>(
      PairFunction{[number](int64_t, std::span<double> keys) { std::fill(keys.begin(), keys.end(), number); }, 0});
}

SharedPairs PairsOfQueries(std::vector<double> numbers) {
  return std::make_shared<const PairFunction>(
      PairFunction{[numbers = std::move(numbers)](int64_t query, std::span<double> keys) {
                     std::fill(keys.begin(), keys.end(), numbers[static_cast<size_t>(query)]);
                   },
                   0});
}

SharedPairs PairsOfKeys(std::vector<double> numbers) {
  return std::make_shared<const PairFunction>(
      PairFunction{[numbers = std::move(numbers)](int64_t, std::span<double> keys) {
                     std::copy(numbers.begin(), numbers.end(), keys.begin());
                   },
                   0});
}

SharedPairs PairsOfTensor(const Tensor& tensor, int64_t length) {
  if (!IsFoldable(tensor.dtype)) return nullptr;
  const size_t size = ElementBytes(tensor.dtype), square = static_cast<size_t>(length * length) * size;
  const size_t bytes = tensor.bytes.size();
  if (square == 0 || bytes == 0 || bytes % square != 0) return nullptr;
  // Each of the squares is the one before it.
  if (std::memcmp(tensor.bytes.data(), tensor.bytes.data() + square, bytes - square) != 0) return nullptr;
  return PairsOfBytes(tensor.bytes.data(), size, length,
                      [&](const std::byte* element) { return NumberAt(tensor, element); });
}

SharedPairs PairsOfNumbers(std::span<const double> numbers, int64_t length) {
  const size_t square = static_cast<size_t>(length * length);
  if (square == 0 || numbers.empty() || numbers.size() % square != 0) return nullptr;
  if (!std::equal(numbers.begin() + static_cast<std::ptrdiff_t>(square), numbers.end(), numbers.begin()))
    return nullptr;
  return PairsOfBytes(reinterpret_cast<const std::byte*>(numbers.data()), sizeof(double), length,
                      [](const std::byte* element) {
                        double number;
                        std::memcpy(&number, element, sizeof(number));
                        return number;
                      });
}

SharedPairs PairsApplied(PointFunction function, DType dtype, std::vector<SharedPairs> inputs) {
  constexpr int64_t kMost = int64_t{1} << 40;  // far beyond what anyone would compute
  int64_t cost = 1;
  for (const SharedPairs& input : inputs) cost = std::min(kMost, cost + input->cost);
  return std::make_shared<const PairFunction>(PairFunction{
      [function = std::move(function), dtype, inputs = std::move(inputs)](int64_t query, std::span<double> keys) {
        std::vector<std::vector<double>> rows(inputs.size(), std::vector<double>(keys.size()));
        for (size_t i = 0; i < inputs.size(); ++i) inputs[i]->row(query, rows[i]);
        std::vector<double> arguments(inputs.size());
        for (size_t key = 0; key < keys.size(); ++key) {
          for (size_t i = 0; i < inputs.size(); ++i) arguments[i] = rows[i][key];
          keys[key] = Rounded(function(arguments), dtype);
        }
      },
      cost});
}

SharedPairs PairsOfTriangle(SharedPairs pairs, int64_t diagonal, bool upper) {
  const int64_t cost = pairs->cost + 1;
  return std::make_shared<const PairFunction>(
      PairFunction{[pairs = std::move(pairs), diagonal, upper](int64_t query, std::span<double> keys) {
                     pairs->row(query, keys);
                     for (size_t key = 0; key < keys.size(); ++key) {
                       const int64_t distance = static_cast<int64_t>(key) - query;
                       if (upper ? distance < diagonal : distance > diagonal) keys[key] = 0.0;
                     }
                   },
                   cost});
}

StatusOr<MaskPattern> PatternOf(const PairFunction& pairs, int64_t length, MaskUse use) {
  constexpr int64_t kMostNonzeros = int64_t{1} << 27;
  RowReader reader(use);
  MaskPattern mask;
  mask.pattern.tokens = length;
  mask.pattern.row_offsets = {0};
  std::vector<double> row(static_cast<size_t>(length));
  for (int64_t query = 0; query < length; ++query) {
    pairs.row(query, row);
    const int64_t before = mask.pattern.nnz();
    for (int64_t key = 0; key < length; ++key) {
      SWIZZLE_ASSIGN_OR_RETURN(const bool kept, reader.LetsThrough(row[static_cast<size_t>(key)]));
      if (kept) mask.pattern.col_indices.push_back(static_cast<uint32_t>(key));
    }
    if (mask.pattern.nnz() == before) {
      return InvalidArgument("its mask lets the token at place ", query, " attend to none");
    }
    if (mask.pattern.nnz() > kMostNonzeros) {
      return InvalidArgument("its mask lets through more than ", kMostNonzeros, " pairs of tokens");
    }
    mask.pattern.row_offsets.push_back(static_cast<uint32_t>(mask.pattern.nnz()));
  }
  mask.largest_excluded = reader.largest_excluded();
  return mask;
}

AttentionPattern Intersection(const AttentionPattern& a, const AttentionPattern& b) {
  AttentionPattern both;
  both.tokens = a.tokens;
  both.row_offsets = {0};
  for (int64_t query = 0; query < a.tokens; ++query) {
    std::ranges::set_intersection(a.Keys(query), b.Keys(query), std::back_inserter(both.col_indices));
    both.row_offsets.push_back(static_cast<uint32_t>(both.nnz()));
  }
  return both;
}

}  // namespace swizzle
