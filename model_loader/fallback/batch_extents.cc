#include "model_loader/fallback/batch_extents.h"

#include <algorithm>

namespace swizzle::fallback {
namespace {

// What is larger is any: then 32 bits hold all numbers that are known, for batches of as many rows as are served.
constexpr int64_t kMostKnown = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostRows = 4096;

Extent Bounded(int64_t number, bool of_batch) {
  const int64_t most = of_batch ? kMostKnown / kMostRows : kMostKnown;
  return {number > most || number < -most ? Extent::kAny : number, of_batch && number != 0};
}

std::optional<Extent> Product(const Extent& a, const Extent& b) {
  if (a.of_batch && b.of_batch) return std::nullopt;
  if (!a.IsKnown() || !b.IsKnown()) return Extent{Extent::kAny, a.of_batch || b.of_batch};
  int64_t product = 0;
  if (__builtin_mul_overflow(a.number, b.number, &product)) product = Extent::kAny;
  return Bounded(product, a.of_batch || b.of_batch);
}

// As C++ does it; of a multiple of the batch only where nothing is left over.
std::optional<Extent> Quotient(const Extent& a, const Extent& b) {
  const bool known = a.IsKnown() && b.IsKnown() && b.number != 0;
  if (a.of_batch == b.of_batch) return known ? Bounded(a.number / b.number, false) : Extent();
  if (!a.of_batch || !known || a.number % b.number != 0) return std::nullopt;
  return Bounded(a.number / b.number, true);
}

std::optional<Extent> Sum(const Extent& a, const Extent& b, int64_t sign) {
  if (a.of_batch != b.of_batch) {
    if (b.Is(0)) return a;
    return a.Is(0) && sign > 0 ? std::optional(b) : std::nullopt;
  }
  if (!a.IsKnown() || !b.IsKnown()) return Extent{Extent::kAny, a.of_batch};
  int64_t sum = 0;
  if (__builtin_add_overflow(a.number, sign * b.number, &sum)) sum = Extent::kAny;
  return Bounded(sum, a.of_batch);
}

// A batch has rows, so no multiple of it is a number below 1.
std::optional<Extent> Equality(const Extent& a, const Extent& b) {
  if (a.of_batch == b.of_batch) return a.IsKnown() && b.IsKnown() ? Extent::Of(a.number == b.number) : Extent();
  const Extent& batch = a.of_batch ? a : b;
  const Extent& other = a.of_batch ? b : a;
  const bool differ = batch.IsKnown() && batch.number >= 1 && other.IsKnown() && other.number < 1;
  return differ ? std::optional(Extent::Of(0)) : std::nullopt;
}

std::optional<Extent> Met(const Extent& a, const Extent& b) {
  if (a.of_batch && b.of_batch) {  // equal, or the operator fails
    if (a.IsKnown() && b.IsKnown() && a.number != b.number) return std::nullopt;
    return a.IsKnown() ? a : b;
  }
  if (a.of_batch || b.of_batch) {
    const Extent& other = a.of_batch ? b : a;
    return other.Is(1) ? std::optional(a.of_batch ? a : b) : std::nullopt;
  }
  if (a.Is(1)) return b;
  if (b.Is(1)) return a;
  if (!a.IsKnown() && !b.IsKnown() && !a.Equals(b)) return Extent();  // either may be 1
  return a.IsKnown() ? a : b;
}

}  // namespace

Extents ExtentsOf(const Shape& shape) {
  Extents extents;
  for (const int64_t size : shape) extents.push_back(Extent::Of(size == -1 ? Extent::kAny : size));
  return extents;
}

Extents NumbersOf(const std::vector<int64_t>& numbers) {
  Extents extents;
  for (const int64_t number : numbers) extents.push_back(Extent::Of(number));
  return extents;
}

int64_t BatchAxis(const Extents& extents) {
  const auto found = std::ranges::find_if(extents, &Extent::of_batch);
  return found == extents.end() ? -1 : found - extents.begin();
}

bool GoByBatch(const Extents& extents) { return std::ranges::any_of(extents, &Extent::of_batch); }

bool GoesByBatchOnceAtMost(const Extents& extents) { return std::ranges::count_if(extents, &Extent::of_batch) <= 1; }

std::optional<int64_t> CountOf(const Extents& extents, size_t first, size_t last) {
  Extent count = Extent::Of(1);
  for (size_t i = first; i < last && i < extents.size(); ++i) {
    if (!extents[i].IsNumber() || extents[i].number < 0) return std::nullopt;
    count = *Product(count, extents[i]);
    if (!count.IsNumber()) return std::nullopt;
  }
  return count.number;
}

std::optional<Extents> Broadcast(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()));
  for (size_t i = 1; i <= result.size(); ++i) {  // counted from the end
    const Extent x = i <= a.size() ? a[a.size() - i] : Extent::Of(1);
    const Extent y = i <= b.size() ? b[b.size() - i] : Extent::Of(1);
    const auto met = Met(x, y);
    if (!met) return std::nullopt;
    result[result.size() - i] = *met;
  }
  return GoesByBatchOnceAtMost(result) ? std::optional(result) : std::nullopt;
}

std::optional<Extent> Computed(std::string_view op, const Extent& a, const Extent& b) {
  if (op == "Mul") return Product(a, b);
  if (op == "Div") return Quotient(a, b);
  if (op == "Add") return Sum(a, b, 1);
  if (op == "Sub") return Sum(a, b, -1);
  if (op == "Equal") return Equality(a, b);
  if (a.of_batch || b.of_batch) return std::nullopt;
  const bool known = a.IsKnown() && b.IsKnown();
  if (op == "Mod") return known && a.number >= 0 && b.number > 0 ? Extent::Of(a.number % b.number) : Extent();
  if (op == "Min") return known ? Extent::Of(std::min(a.number, b.number)) : Extent();
  if (op == "Max") return known ? Extent::Of(std::max(a.number, b.number)) : Extent();
  if (op == "Less") return known ? Extent::Of(a.number < b.number) : Extent();
  if (op == "Greater") return known ? Extent::Of(a.number > b.number) : Extent();
  return std::nullopt;
}

std::optional<Extent> Chosen(const Extent& condition, const Extent& a, const Extent& b) {
  if (condition.IsNumber()) return condition.number != 0 ? a : b;
  if (condition.of_batch) return std::nullopt;
  if (a == b) return a;
  return a.of_batch || b.of_batch ? std::nullopt : std::optional(Extent());
}

}  // namespace swizzle::fallback
