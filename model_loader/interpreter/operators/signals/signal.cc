// Operators on signals: windows, Fourier transforms, the weights of mel spectra.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/operators/signals/fourier.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

// --- Windows ---

// first + second * cos(2 pi t) + third * cos(4 pi t), t from 0 to 1 at the end: past the last element if the window is
// periodic, else at it.
StatusOr<Array> CosineWindow(Call& call, double first, double second, double third) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t size, call.IntScalar(0, 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t number, call.Int("output_datatype", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const DType dtype, ElementTypeOf(number));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t periodic, call.Int("periodic", 1));
  SWIZZLE_ASSIGN_OR_RETURN(Array window, call.New(DType::kFloat64, {size}));
  const auto end = static_cast<double>(std::max<int64_t>(periodic != 0 ? size : size - 1, 1));
  double at = 0.0;
  for (double& value : window.Mutable<double>()) {
    const double angle = 2.0 * std::numbers::pi * at++ / end;
    value = size == 1 ? 1.0 : first + second * std::cos(angle) + third * std::cos(2.0 * angle);
  }
  return call.As(window, dtype);
}

// --- Fourier transforms ---

// Input i, whose last dimension is 1, real, or 2, complex, as FP64 with 2.
StatusOr<Array> ComplexInput(Call& call, size_t i) {
  const Array& given = call.In(i);
  if (given.rank() < 2 || (given.shape.back() != 1 && given.shape.back() != 2) || !IsFloating(given.dtype)) {
    return InvalidArgument("input ", i, " is ", DTypeName(given.dtype), ShapeText(given.shape),
                           "; its last dimension must be 1 or 2, for real or complex numbers");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Array real, call.As(given, DType::kFloat64));
  if (given.shape.back() == 2) return real;
  Shape shape = given.shape;
  shape.back() = 2;
  SWIZZLE_ASSIGN_OR_RETURN(Array complex, call.New(DType::kFloat64, shape));
  const auto from = real.As<double>();
  const auto to = complex.Mutable<double>();
  for (size_t j = 0; j < from.size(); ++j) {
    to[2 * j] = from[j];
    to[2 * j + 1] = 0.0;
  }
  return complex;
}

const Complex* Numbers(const Array& array) { return reinterpret_cast<const Complex*>(array.data.get()); }
Complex* MutableNumbers(Array& array) { return reinterpret_cast<Complex*>(array.data.get()); }

// Rows of complex numbers, [rows, columns, 2], the transforms of `values`: row r is that of the `taken` values from
// place(r) on, each times window[i] where there is one, and zeros behind them.
template <typename Place>
StatusOr<Array> Transforms(Call& call, const FourierPlan& plan, const Complex* values, int64_t taken,
                           const double* window, int64_t rows, int64_t columns, const Place& place) {
  SWIZZLE_ASSIGN_OR_RETURN(Array results, call.New(DType::kFloat64, {rows, columns, 2}));
  cpu::CpuStream& stream = cpu::CpuStream::From(call.stream());
  const int64_t each = plan.length() + plan.room();
  SWIZZLE_ASSIGN_OR_RETURN(Array room, call.New(DType::kFloat64, {stream.threads(), each, 2}));
  stream.ParallelRanges(rows, [&](int64_t slot, int64_t begin, int64_t end) {
    Complex* const row = MutableNumbers(room) + slot * each;
    Complex* const result = row + plan.length();
    for (int64_t r = begin; r < end; ++r) {
      const Complex* const from = values + place(r);
      for (int64_t i = 0; i < taken; ++i) row[i] = window != nullptr ? from[i] * window[i] : from[i];
      std::fill(row + taken, row + plan.length(), Complex());
      plan.Run(row, result);
      std::copy_n(result, columns, MutableNumbers(results) + r * columns);
    }
  });
  return results;
}

StatusOr<int64_t> TransformedAxis(Call& call, int64_t rank) {
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, call.Int("axis", call.opset() < 20 ? 1 : -2));
  SWIZZLE_ASSIGN_OR_RETURN(axis, call.IntScalar(2, axis));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(axis, rank));
  if (axis == rank - 1) return InvalidArgument("the last axis, which holds real and imaginary parts, has no transform");
  return axis;
}

// What STFT reads besides its signal.
struct Frames {
  int64_t length = 0, step = 0, count = 0;
  Array window;  // FP64; data is null: none
};

StatusOr<Frames> ReadFrames(Call& call, int64_t samples) {
  Frames frames;
  SWIZZLE_ASSIGN_OR_RETURN(frames.step, call.IntScalar(1, 0));
  if (call.Has(2)) {
    if (call.In(2).rank() != 1) return InvalidArgument("the window must be a list");
    SWIZZLE_ASSIGN_OR_RETURN(frames.window, call.As(call.In(2), DType::kFloat64));
    frames.length = frames.window.shape[0];
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t length, call.IntScalar(3, frames.length));
  if (call.Has(2) && length != frames.length) {
    return InvalidArgument("frame_length is ", length, ", but the window has ", frames.length);
  }
  frames.length = length;
  if (frames.step < 1 || frames.length < 1 || frames.length > samples) {
    return InvalidArgument("frames of ", frames.length, " samples every ", frames.step, " do not fit into a signal of ",
                           samples);
  }
  frames.count = (samples - frames.length) / frames.step + 1;
  return frames;
}

// --- Mel spectra ---

double MelOf(double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); }
double HertzOf(double mel) { return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0); }

struct MelBands {
  int64_t bands = 0, length = 0, rate = 0;
  double lower = 0.0, upper = 0.0;

  int64_t bins() const { return length / 2 + 1; }
  // The spectrum's bins at which bands begin, peak and end: band i's are [i], [i + 1] and [i + 2].
  StatusOr<std::vector<int64_t>> Edges() const;
};

StatusOr<std::vector<int64_t>> MelBands::Edges() const {
  const double first = MelOf(lower), step = (MelOf(upper) - first) / static_cast<double>(bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = HertzOf(first + step * static_cast<double>(i));
    const double edge = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(edge >= 0.0 && edge < static_cast<double>(bins()))) {
      return InvalidArgument("the band from ", lower, " to ", upper, " Hz is not within a spectrum of ", bins(),
                             " bins at ", rate, " Hz");
    }
    edges.push_back(static_cast<int64_t>(edge));
  }
  return edges;
}

StatusOr<MelBands> ReadMelBands(Call& call) {
  MelBands mel;
  SWIZZLE_ASSIGN_OR_RETURN(mel.bands, call.IntScalar(0, 0));
  SWIZZLE_ASSIGN_OR_RETURN(mel.length, call.IntScalar(1, 0));
  SWIZZLE_ASSIGN_OR_RETURN(mel.rate, call.IntScalar(2, 0));
  SWIZZLE_ASSIGN_OR_RETURN(mel.lower, call.RealScalar(3, 0.0));
  SWIZZLE_ASSIGN_OR_RETURN(mel.upper, call.RealScalar(4, 0.0));
  constexpr int64_t kMost = 1 << 24;  // far above any spectrum
  if (mel.bands < 1 || mel.length < 1 || mel.rate < 1 || mel.bands > kMost || mel.length > kMost) {
    return InvalidArgument("num_mel_bins, dft_length and sample_rate are ", mel.bands, ", ", mel.length, " and ",
                           mel.rate, "; they must be positive, and no more than ", kMost);
  }
  return mel;
}

}  // namespace

StatusOr<Array> HannWindow(Call& call) { return CosineWindow(call, 0.5, -0.5, 0.0); }

StatusOr<Array> HammingWindow(Call& call) { return CosineWindow(call, 25.0 / 46.0, -21.0 / 46.0, 0.0); }

StatusOr<Array> BlackmanWindow(Call& call) { return CosineWindow(call, 0.42, -0.5, 0.08); }

StatusOr<Array> Dft(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, ComplexInput(call, 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, TransformedAxis(call, x.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t inverse, call.Int("inverse", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t one_sided, call.Int("onesided", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t length, call.IntScalar(1, x.shape[static_cast<size_t>(axis)]));
  if (length < 1) return InvalidArgument("the transform's length is ", length, "; it must be positive");
  if (inverse != 0 && one_sided != 0) return InvalidArgument("a transform may be inverse or onesided, not both");
  SWIZZLE_ASSIGN_OR_RETURN(const FourierPlan plan, FourierPlan::Make(call, length, inverse != 0));
  std::vector<int64_t> order(static_cast<size_t>(x.rank()));  // with the axis just before the parts
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
  std::rotate(order.begin() + axis, order.begin() + axis + 1, order.end() - 1);
  SWIZZLE_ASSIGN_OR_RETURN(const Array rows, Transposed(call, x, order));
  const int64_t size = x.shape[static_cast<size_t>(axis)], columns = one_sided != 0 ? length / 2 + 1 : length;
  Shape shape = rows.shape;
  shape[shape.size() - 2] = columns;
  SWIZZLE_ASSIGN_OR_RETURN(const Array transforms, Transforms(call, plan, Numbers(rows), std::min(size, length),
                                                              nullptr, ProductOf(rows.shape, 0, rows.rank() - 2),
                                                              columns, [size](int64_t row) { return row * size; }));
  std::vector<int64_t> inverse_order(order.size());
  for (size_t d = 0; d < order.size(); ++d) inverse_order[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, Transposed(call, transforms.WithShape(shape), inverse_order));
  return call.As(y, call.In(0).dtype);
}

StatusOr<Array> Stft(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array signal, ComplexInput(call, 0));
  if (signal.rank() != 3) return InvalidArgument("the signal must be [batch,samples,1 or 2]");
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t one_sided, call.Int("onesided", 1));
  const int64_t samples = signal.shape[1];
  SWIZZLE_ASSIGN_OR_RETURN(const Frames frames, ReadFrames(call, samples));
  SWIZZLE_ASSIGN_OR_RETURN(const FourierPlan plan, FourierPlan::Make(call, frames.length, /*inverse=*/false));
  const double* const window = frames.window.data != nullptr ? frames.window.As<double>().data() : nullptr;
  const int64_t columns = one_sided != 0 ? frames.length / 2 + 1 : frames.length;
  SWIZZLE_ASSIGN_OR_RETURN(
      const Array transforms,
      Transforms(call, plan, Numbers(signal), frames.length, window, signal.shape[0] * frames.count, columns,
                 [&](int64_t row) { return row / frames.count * samples + row % frames.count * frames.step; }));
  return call.As(transforms.WithShape({signal.shape[0], frames.count, columns, 2}), call.In(0).dtype);
}

StatusOr<Array> MelWeightMatrix(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const MelBands mel, ReadMelBands(call));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t number, call.Int("output_datatype", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const DType dtype, ElementTypeOf(number));
  SWIZZLE_ASSIGN_OR_RETURN(Array weights, call.New(DType::kFloat64, {mel.bins(), mel.bands}));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> edges, mel.Edges());
  const auto values = weights.Mutable<double>();
  std::ranges::fill(values, 0.0);
  const auto at = [&](int64_t bin, int64_t band) -> double& {
    return values[static_cast<size_t>(bin * mel.bands + band)];
  };
  for (int64_t band = 0; band < mel.bands; ++band) {
    const int64_t begin = edges[static_cast<size_t>(band)], peak = edges[static_cast<size_t>(band) + 1];
    const int64_t end = edges[static_cast<size_t>(band) + 2];
    at(peak, band) = 1.0;
    for (int64_t bin = begin; bin < peak; ++bin) {
      at(bin, band) = static_cast<double>(bin - begin) / static_cast<double>(peak - begin);
    }
    for (int64_t bin = peak; bin < end; ++bin) {
      at(bin, band) = static_cast<double>(end - bin) / static_cast<double>(end - peak);
    }
  }
  return call.As(weights, dtype);
}

}  // namespace swizzle::interpreter
