// A whole number that is known up to the batch size and the length of the sequences: the shape arithmetic of graphs
// whose inputs are token sequences is done in these.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_WHOLE_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_WHOLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/tensor.h"

namespace swizzle {

// factor * batch ^ batches * length ^ lengths. Sizes that the model fixes are in the factor.
struct Whole {
  int64_t factor = 1;
  int batches = 0;
  int lengths = 0;

  bool IsNumber() const { return batches == 0 && lengths == 0; }
  bool IsOne() const { return IsNumber() && factor == 1; }
  bool operator==(const Whole&) const = default;
};

using Wholes = std::vector<Whole>;

Wholes AsWholes(const Shape& shape);
// Nothing where a size depends on the batch or the length.
std::optional<Shape> AsShape(const Wholes& wholes);

// Nothing on overflow, and where the result is no such number.
std::optional<Whole> Sum(const Whole& a, const Whole& b);
std::optional<Whole> Difference(const Whole& a, const Whole& b);
std::optional<Whole> Product(const Whole& a, const Whole& b);
std::optional<Whole> Quotient(const Whole& a, const Whole& b);  // of two plain numbers, rounded towards 0; else exact
std::optional<Whole> Product(const Wholes& factors);

// Whether a == b, where that is the same for every batch size and length, both at least 1.
std::optional<bool> AreEqual(const Whole& a, const Whole& b);

// The shape that both broadcast to, as ONNX does.
std::optional<Wholes> Broadcast(const Wholes& a, const Wholes& b);

std::string Text(const Wholes& shape);  // "[B,S,64]"

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_WHOLE_H_
