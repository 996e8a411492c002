#include "model_loader/sequences/whole.h"

#include <limits>

#include "kernels/base/status.h"
#include "model_loader/semantics/strides.h"

namespace swizzle {
namespace {

constexpr int kMaxPower = 8;

std::optional<Whole> Normal(const Whole& whole) {
  if (whole.factor == 0) return Whole{0};
  const auto in_range = [](int power) { return power >= 0 && power <= kMaxPower; };
  if (!in_range(whole.batches) || !in_range(whole.lengths)) return std::nullopt;
  return whole;
}

bool SamePowers(const Whole& a, const Whole& b) { return a.batches == b.batches && a.lengths == b.lengths; }

}  // namespace

Wholes AsWholes(const Shape& shape) {
  Wholes wholes;
  for (const int64_t size : shape) wholes.push_back({size});
  return wholes;
}

std::optional<Shape> AsShape(const Wholes& wholes) {
  Shape shape;
  for (const Whole& whole : wholes) {
    if (!whole.IsNumber()) return std::nullopt;
    shape.push_back(whole.factor);
  }
  return shape;
}

std::optional<Whole> Sum(const Whole& a, const Whole& b) {
  if (a.factor == 0) return b;
  if (b.factor == 0) return a;
  Whole sum = a;
  if (!SamePowers(a, b) || __builtin_add_overflow(a.factor, b.factor, &sum.factor)) return std::nullopt;
  return Normal(sum);
}

std::optional<Whole> Difference(const Whole& a, const Whole& b) {
  if (b.factor == std::numeric_limits<int64_t>::min()) return std::nullopt;
  return Sum(a, {-b.factor, b.batches, b.lengths});
}

std::optional<Whole> Product(const Whole& a, const Whole& b) {
  Whole product{0, a.batches + b.batches, a.lengths + b.lengths};
  if (__builtin_mul_overflow(a.factor, b.factor, &product.factor)) return std::nullopt;
  return Normal(product);
}

std::optional<Whole> Quotient(const Whole& a, const Whole& b) {
  if (b.factor == 0 || (b.factor == -1 && a.factor == std::numeric_limits<int64_t>::min())) return std::nullopt;
  const bool numbers = a.IsNumber() && b.IsNumber();
  if (!numbers && a.factor % b.factor != 0) return std::nullopt;
  return Normal({a.factor / b.factor, a.batches - b.batches, a.lengths - b.lengths});
}

std::optional<Whole> Product(const Wholes& factors) {
  std::optional<Whole> product = Whole{1};
  for (const Whole& factor : factors) {
    if (product) product = Product(*product, factor);
  }
  return product;
}

std::optional<bool> AreEqual(const Whole& a, const Whole& b) {
  if (SamePowers(a, b)) return a.factor == b.factor;
  // The powers are at least 1, so a positive multiple of them is no number below 1.
  if ((a.factor > 0 && b.factor <= 0) || (b.factor > 0 && a.factor <= 0)) return false;
  return std::nullopt;
}

std::optional<Wholes> Broadcast(const Wholes& a, const Wholes& b) {
  return BroadcastDimensions(a, b, [](const Whole& size) { return size.IsOne(); });
}

std::string Text(const Wholes& shape) {
  std::string text;
  for (const Whole& size : shape) {
    std::string factors = size.factor == 1 && !size.IsNumber() ? "" : Concat(size.factor);
    for (int i = 0; i < size.batches; ++i) factors += "B";
    for (int i = 0; i < size.lengths; ++i) factors += "S";
    text += (text.empty() ? "" : ",") + factors;
  }
  return "[" + text + "]";
}

}  // namespace swizzle
