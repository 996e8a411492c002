// The discrete Fourier transform of any length, in double precision.
//
// A plan is immutable and thread-safe; each run needs room of its own.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_SIGNALS_FOURIER_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_SIGNALS_FOURIER_H_

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "model_loader/interpreter/values/call.h"

namespace swizzle::interpreter {

using Complex = std::complex<double>;

class FourierPlan {
 public:
  // The length's prime factors are split off one after another, as Cooley and Tukey do: length x their sum are the
  // products made. UNIMPLEMENTED for a prime factor above kMaxPrime. REQUIRES: length > 0.
  static StatusOr<FourierPlan> Make(Call& call, int64_t length, bool inverse);

  int64_t length() const { return length_; }
  // Elements of `room`.
  int64_t room() const { return length_ + largest_; }

  // to[k] = the sum over i of values[i] * exp(-+ 2 pi i k / length), divided by the length if inverse, in the first
  // `length` elements of `room`, which does not overlap `values`.
  void Run(const Complex* values, Complex* room) const;

 private:
  void Step(const Complex* values, int64_t stride, size_t factor, int64_t length, Complex* to, Complex* terms) const;
  std::span<const Complex> Roots() const;

  static constexpr int64_t kMaxPrime = 1 << 12;

  int64_t length_ = 1, largest_ = 1;
  bool inverse_ = false;
  std::vector<int64_t> factors_;
  Array roots_;  // exp(-+ 2 pi i k / length), k from 0; memory counts them
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_SIGNALS_FOURIER_H_
