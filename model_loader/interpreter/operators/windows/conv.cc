// Convolutions over any number of spatial dimensions: inputs gathered into columns, then products through oneDNN.
#include <algorithm>
#include <cstring>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/sgemm.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/operators/products/products.h"
#include "model_loader/interpreter/operators/windows/convolution.h"
#include "model_loader/interpreter/operators/windows/window.h"

namespace swizzle::interpreter {
namespace {

// Columns of one task: the elements that fit a second-level cache.
constexpr int64_t kColumnElements = 1 << 17;

// A convolution of [N, groups * channels, plane] into [N, groups * rows, positions].
struct Problem {
  Window window;
  int64_t batch = 0, groups = 1, channels = 0, rows = 0;  // channels and rows of each group
  int64_t depth = 0;                                      // channels x taps
  int64_t chunk = 0, chunks = 0;                          // positions of one task
  Array taps;                                             // unless pointwise
};

StatusOr<Problem> MakeProblem(Call& call, const Array& x, const Array& w) {
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 3));
  if (w.rank() != x.rank())
    return InvalidArgument("the weight has shape ", ShapeText(w.shape), " for an input of ", ShapeText(x.shape));
  Problem problem;
  SWIZZLE_ASSIGN_OR_RETURN(problem.groups, call.Int("group", 1));
  const int64_t groups = problem.groups;
  if (groups < 1 || groups > std::max<int64_t>(x.shape[1], 1) || x.shape[1] % groups != 0 || w.shape[0] % groups != 0 ||
      x.shape[1] / groups != w.shape[1]) {
    return InvalidArgument("a weight of shape ", ShapeText(w.shape), " in ", groups,
                           " groups does not fit an input of ", ShapeText(x.shape));
  }
  SWIZZLE_ASSIGN_OR_RETURN(problem.window, ReadWindow(call, x.shape, Shape(w.shape.begin() + 2, w.shape.end())));
  problem.batch = x.shape[0];
  problem.channels = w.shape[1];
  problem.rows = w.shape[0] / groups;
  problem.depth = problem.channels * problem.window.taps();
  const int64_t positions = problem.window.positions();
  problem.chunk =
      std::clamp<int64_t>(kColumnElements / std::max<int64_t>(problem.depth, 1), 16, std::max<int64_t>(positions, 16));
  problem.chunk = std::min(problem.chunk, std::max<int64_t>(positions, 1));
  problem.chunks = CeilDiv(positions, problem.chunk);
  if (!problem.window.IsPointwise()) {
    SWIZZLE_ASSIGN_OR_RETURN(problem.taps, Taps(call, problem.window));
  }
  return problem;
}

Shape ResultShape(const Problem& problem) {
  Shape shape = {problem.batch, problem.groups * problem.rows};
  shape.insert(shape.end(), problem.window.output.begin(), problem.window.output.end());
  return shape;
}

// columns [depth, count] of the positions from `begin`; `x` is the first of the group's planes.
void GatherColumns(const Problem& problem, const float* x, int64_t begin, int64_t count, float* columns) {
  const int64_t plane = problem.window.plane(), positions = problem.window.positions(), taps = problem.window.taps();
  for (int64_t channel = 0; channel < problem.channels; ++channel, x += plane) {
    if (problem.taps.data == nullptr) {
      std::memcpy(columns, x + begin, static_cast<size_t>(count) * sizeof(float));
      columns += count;
      continue;
    }
    const int32_t* sources = problem.taps.As<int32_t>().data() + begin;
    for (int64_t tap = 0; tap < taps; ++tap, sources += positions, columns += count) {
      for (int64_t i = 0; i < count; ++i) columns[i] = sources[i] < 0 ? 0.0f : x[sources[i]];
    }
  }
}

// Calls body(slot, image, group, begin, count) for every task.
template <typename Body>
void ForEachTask(Call& call, const Problem& problem, const Body& body) {
  const int64_t positions = problem.window.positions();
  const int64_t tasks = problem.batch * problem.groups * problem.chunks;
  if (problem.rows == 0 || !call.wants_elements()) return;
  const auto run = [&](int64_t slot, int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t begin = task % problem.chunks * problem.chunk;
      const int64_t image_and_group = task / problem.chunks;
      body(slot, image_and_group / problem.groups, image_and_group % problem.groups, begin,
           std::min(problem.chunk, positions - begin));
    }
  };
  const int64_t multiplications = problem.batch * problem.groups * problem.rows * problem.depth * positions;
  cpu::CpuStream::From(call.stream()).ParallelRanges(tasks, run, ProductGrain(tasks, multiplications));
}

Status AddBias(const Array& bias, Array& y) {
  if (bias.shape != Shape{y.shape[1]}) {
    return InvalidArgument("the bias has shape ", ShapeText(bias.shape), "; it must be [", y.shape[1], "]");
  }
  const int64_t plane = ProductOf(y.shape, 2, y.rank());
  float* to = y.Mutable<float>().data();
  for (int64_t image = 0; image < y.shape[0]; ++image) {
    for (const float value : bias.As<float>()) {
      for (int64_t i = 0; i < plane; ++i) to[i] += value;
      to += plane;
    }
  }
  return {};
}

// out planes of one image and group += columns [rows x taps, positions].
void ScatterColumns(const Problem& problem, const float* columns, float* out) {
  const int64_t taps = problem.window.taps(), positions = problem.window.positions();
  for (int64_t row = 0; row < problem.rows; ++row, out += problem.window.plane()) {
    const int32_t* targets = problem.taps.As<int32_t>().data();
    for (int64_t i = 0; i < taps * positions; ++i) {
      if (targets[i] >= 0) out[targets[i]] += columns[i];
    }
    columns += taps * positions;
  }
}

}  // namespace

StatusOr<Array> IntegerConvolution(Call& call, const Array& x, const Array& w) {
  SWIZZLE_ASSIGN_OR_RETURN(const Problem p, MakeProblem(call, x, w));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kInt32, ResultShape(p)));
  const int64_t threads = call.stream().threads();
  SWIZZLE_ASSIGN_OR_RETURN(Array columns, call.New(DType::kFloat32, {threads, p.depth, p.chunk}));
  SWIZZLE_ASSIGN_OR_RETURN(Array slices, call.New(DType::kFloat32, {threads, p.rows, p.chunk}));
  SWIZZLE_ASSIGN_OR_RETURN(Array sums, call.New(DType::kInt32, {threads, p.rows, p.chunk}));
  const int64_t positions = p.window.positions();
  ForEachTask(call, p, [&](int64_t slot, int64_t image, int64_t group, int64_t begin, int64_t count) {
    const int64_t block = image * p.groups + group;
    float* gathered = columns.Mutable<float>().data() + slot * p.depth * p.chunk;
    int32_t* sum = sums.Mutable<int32_t>().data() + slot * p.rows * p.chunk;
    GatherColumns(p, x.As<float>().data() + block * p.channels * p.window.plane(), begin, count, gathered);
    cpu::CpuStream::From(call.stream())
        .Keep(ExactIntegerProduct(p.rows, count, p.depth, w.As<float>().data() + group * p.rows * p.depth, gathered,
                                  slices.Mutable<float>().data() + slot * p.rows * p.chunk, sum));
    int32_t* to = y.Mutable<int32_t>().data() + block * p.rows * positions + begin;
    for (int64_t row = 0; row < p.rows; ++row) std::copy_n(sum + row * count, count, to + row * positions);
  });
  return y;
}

StatusOr<Array> Conv(Call& call) {
  if (!IsFloating(call.In(0).dtype)) return Unimplemented("only floating types are supported");
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array w, call.Floats(1));
  SWIZZLE_ASSIGN_OR_RETURN(const Problem p, MakeProblem(call, x, w));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, ResultShape(p)));
  const bool gathers = p.taps.data != nullptr;
  const int64_t held = gathers ? p.depth * p.chunk : 0;
  SWIZZLE_ASSIGN_OR_RETURN(Array columns, call.New(DType::kFloat32, {call.stream().threads(), held}));
  const int64_t plane = p.window.plane(), positions = p.window.positions();
  ForEachTask(call, p, [&](int64_t slot, int64_t image, int64_t group, int64_t begin, int64_t count) {
    const int64_t block = image * p.groups + group;
    const float* planes = x.As<float>().data() + block * p.channels * plane;
    cpu::SgemmOperand right{planes + begin, plane};
    if (gathers) {
      float* gathered = columns.Mutable<float>().data() + slot * held;
      GatherColumns(p, planes, begin, count, gathered);
      right = {gathered, count};
    }
    cpu::CpuStream::From(call.stream())
        .Keep(cpu::Sgemm(p.rows, count, p.depth, {w.As<float>().data() + group * p.rows * p.depth, p.depth}, right,
                         y.Mutable<float>().data() + block * p.rows * positions + begin, positions));
  });
  if (call.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Array bias, call.Floats(2));
    SWIZZLE_RETURN_IF_ERROR(AddBias(bias, y));
  }
  return call.As(y, call.In(0).dtype);
}

StatusOr<Array> ConvTranspose(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array w, call.Floats(1));
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 3));
  Problem p;
  SWIZZLE_ASSIGN_OR_RETURN(p.groups, call.Int("group", 1));
  if (p.groups < 1 || p.groups > std::max<int64_t>(x.shape[1], 1) || w.rank() != x.rank() || w.shape[0] != x.shape[1] ||
      x.shape[1] % p.groups != 0) {
    return InvalidArgument("a weight of shape ", ShapeText(w.shape), " in ", p.groups,
                           " groups does not fit an input of ", ShapeText(x.shape));
  }
  SWIZZLE_ASSIGN_OR_RETURN(p.window, ReadTransposedWindow(call, x.shape, Shape(w.shape.begin() + 2, w.shape.end())));
  SWIZZLE_ASSIGN_OR_RETURN(p.taps, Taps(call, p.window));
  p.channels = x.shape[1] / p.groups;
  p.rows = w.shape[1];
  const int64_t positions = p.window.positions(), height = p.rows * p.window.taps();
  Shape shape = {x.shape[0], p.groups * p.rows};
  shape.insert(shape.end(), p.window.input.begin(), p.window.input.end());
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, shape));
  const int64_t threads = call.stream().threads();
  SWIZZLE_ASSIGN_OR_RETURN(Array columns, call.New(DType::kFloat32, {threads, height, positions}));
  std::fill_n(y.Mutable<float>().data(), y.elements(), 0.0f);
  cpu::CpuStream::From(call.stream())
      .ParallelRanges(x.shape[0] * p.groups, [&](int64_t slot, int64_t begin, int64_t end) {
        float* held = columns.Mutable<float>().data() + slot * height * positions;
        for (int64_t block = begin; block < end; ++block) {
          const float* weight = w.As<float>().data() + block % p.groups * p.channels * height;
          cpu::CpuStream::From(call.stream())
              .Keep(cpu::Sgemm(height, positions, p.channels, {weight, height, true},
                               {x.As<float>().data() + block * p.channels * positions, positions}, held, positions));
          ScatterColumns(p, held, y.Mutable<float>().data() + block * p.rows * p.window.plane());
        }
      });
  if (call.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Array bias, call.Floats(2));
    SWIZZLE_RETURN_IF_ERROR(AddBias(bias, y));
  }
  return call.As(y, call.In(0).dtype);
}

}  // namespace swizzle::interpreter
