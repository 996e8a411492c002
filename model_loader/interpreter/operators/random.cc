// Random numbers. ONNX leaves open which ones a seed stands for: here it is the same ones in every run, and a node
// without a seed has one of its own, its name's, so that a request has the same answer whenever it comes.
#include <bit>
#include <cmath>
#include <numbers>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::interpreter {
namespace {

uint64_t HashOf(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// Of a seed and a place, by SplitMix64's steps.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}

  // From 0, included, to 1.
  double Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
  }

  double NextNormal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - Next()));
    return radius * std::cos(2.0 * std::numbers::pi * Next());
  }

 private:
  uint64_t state_;
};

StatusOr<Numbers> NumbersOf(const Call& call) {
  if (!call.HasAttribute("seed")) return Numbers(HashOf(call.node().name));
  SWIZZLE_ASSIGN_OR_RETURN(const float seed, call.Float("seed", 0.0f));
  return Numbers(std::bit_cast<uint32_t>(seed));
}

// The attribute's type, `absent` where there is none.
StatusOr<DType> TypeOf(const Call& call, DType absent) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t number, call.Int("dtype", 0));
  return number == 0 ? StatusOr<DType>(absent) : ElementTypeOf(number);
}

// The result of a generator, of the shape that the node names, or of its input's.
template <typename Draw>
StatusOr<Array> Drawn(Call& call, const Draw& draw) {
  const bool is_like = call.input_count() > 0;
  DType absent = DType::kFloat32;
  Shape shape;
  if (is_like) {
    shape = call.In(0).shape;
    if (IsFloating(call.In(0).dtype)) absent = call.In(0).dtype;
  } else {
    SWIZZLE_ASSIGN_OR_RETURN(shape, call.Ints("shape"));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const DType dtype, TypeOf(call, absent));
  if (!IsFloating(dtype)) return InvalidArgument("its dtype is ", DTypeName(dtype), "; it must be floating");
  SWIZZLE_ASSIGN_OR_RETURN(Numbers numbers, NumbersOf(call));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, shape));
  for (float& element : y.Mutable<float>()) element = static_cast<float>(draw(numbers));
  return call.As(y, dtype);
}

}  // namespace

StatusOr<Array> RandomNormal(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float mean, call.Float("mean", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float scale, call.Float("scale", 1.0f));
  return Drawn(call, [&](Numbers& numbers) { return mean + scale * numbers.NextNormal(); });
}

StatusOr<Array> RandomUniform(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float low, call.Float("low", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float high, call.Float("high", 1.0f));
  return Drawn(call, [&](Numbers& numbers) { return low + (high - low) * numbers.Next(); });
}

StatusOr<Array> Bernoulli(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const DType dtype, TypeOf(call, call.In(0).dtype));
  SWIZZLE_ASSIGN_OR_RETURN(Numbers numbers, NumbersOf(call));
  SWIZZLE_ASSIGN_OR_RETURN(const Array chances, call.As(call.In(0), DType::kFloat64));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, chances.shape));
  const auto from = chances.As<double>();
  const auto to = y.Mutable<float>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = numbers.Next() < from[i] ? 1.0f : 0.0f;
  return call.As(y, dtype);
}

StatusOr<Array> Multinomial(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t samples, call.Int("sample_size", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const DType dtype, TypeOf(call, DType::kInt32));
  SWIZZLE_ASSIGN_OR_RETURN(Numbers numbers, NumbersOf(call));
  SWIZZLE_ASSIGN_OR_RETURN(const Array logits, call.As(call.In(0), DType::kFloat64));
  if (logits.rank() != 2 || logits.shape[1] < 1 || samples < 0)
    return InvalidArgument("input 0 must be [rows,classes]");
  const int64_t classes = logits.shape[1];
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kInt64, {logits.shape[0], samples}));
  SWIZZLE_ASSIGN_OR_RETURN(Array sums, call.New(DType::kFloat64, {classes}));
  const auto totals = sums.Mutable<double>();
  for (int64_t row = 0; row < logits.shape[0]; ++row) {
    const auto from = logits.As<double>().subspan(static_cast<size_t>(row * classes), totals.size());
    double most = from[0], total = 0.0;
    for (const double logit : from) most = std::max(most, logit);
    for (size_t c = 0; c < totals.size(); ++c) totals[c] = total += std::exp(from[c] - most);
    for (int64_t i = 0; i < samples; ++i) {
      const double at = numbers.Next() * total;
      size_t c = 0;
      while (c + 1 < totals.size() && totals[c] <= at) ++c;
      y.Mutable<int64_t>()[static_cast<size_t>(row * samples + i)] = static_cast<int64_t>(c);
    }
  }
  return call.As(y, dtype);
}

}  // namespace swizzle::interpreter
