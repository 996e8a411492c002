// Matrix products: fp32 through oneDNN, integers exactly, in slices that fp32 holds exactly.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/operators/products/products.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

// How ONNX's MatMul reads its two operands: as stacks of matrices that broadcast.
struct Stacks {
  Array a, b;    // rank 2 or more
  Shape batch;   // of the result, without the two last dimensions
  Shape result;  // the product's shape as ONNX wants it
  int64_t m = 0, k = 0, n = 0;
};

StatusOr<Stacks> StacksOf(const Array& first, const Array& second) {
  SWIZZLE_RETURN_IF_ERROR(CheckRank(first, 1));
  SWIZZLE_RETURN_IF_ERROR(CheckRank(second, 1));
  Stacks s{first, second, {}, {}};
  if (first.rank() == 1) s.a = first.WithShape({1, first.shape[0]});
  if (second.rank() == 1) s.b = second.WithShape({second.shape[0], 1});
  s.m = s.a.shape[s.a.shape.size() - 2];
  s.k = s.a.shape.back();
  s.n = s.b.shape.back();
  if (s.b.shape[s.b.shape.size() - 2] != s.k) {
    return InvalidArgument("matrices of shapes ", ShapeText(first.shape), " and ", ShapeText(second.shape),
                           " have no product");
  }
  const Shape batches[] = {Shape(s.a.shape.begin(), s.a.shape.end() - 2),
                           Shape(s.b.shape.begin(), s.b.shape.end() - 2)};
  SWIZZLE_ASSIGN_OR_RETURN(s.batch, BroadcastShape(batches));
  s.result = s.batch;
  if (first.rank() > 1) s.result.push_back(s.m);
  if (second.rank() > 1) s.result.push_back(s.n);
  return s;
}

// Calls body(a_offset, b_offset, index, pairs, a_step, b_step) for each run of pairs of matrices.
template <typename Body>
void ForEachRunOfPairs(const Stacks& s, const Body& body) {
  const auto strides = [&](const Array& array, int64_t matrix) {
    Shape shape(array.shape.begin(), array.shape.end() - 2);
    Shape result = BroadcastStrides(shape, s.batch);
    for (int64_t& stride : result) stride *= matrix;
    return result;
  };
  const StridedLoop<2> loop(s.batch, {strides(s.a, s.m * s.k), strides(s.b, s.k * s.n)});
  loop.ForEachRun([&](int64_t position, const std::array<int64_t, 2>& offsets, int64_t count) {
    body(offsets[0], offsets[1], position, count, loop.Step(0), loop.Step(1));
  });
}

// Calls body(a_offset, b_offset, index) for each pair.
template <typename Body>
void ForEachPair(const Stacks& s, const Body& body) {
  ForEachRunOfPairs(s, [&](int64_t a, int64_t b, int64_t index, int64_t count, int64_t a_step, int64_t b_step) {
    for (int64_t i = 0; i < count; ++i) body(a + i * a_step, b + i * b_step, index + i);
  });
}

void MultiplyOnDevice(Call& call, const Stacks& s, Array& out) {
  const auto* a = reinterpret_cast<const float*>(s.a.data.get());
  const auto* b = reinterpret_cast<const float*>(s.b.data.get());
  auto* c = reinterpret_cast<float*>(out.data.get());
  const auto multiply = [&](int64_t rows, int64_t batch, const StackedMatrix& left, const StackedMatrix& right,
                            float* to) {
    call.device()->functions().Multiply({.m = rows,
                                         .n = s.n,
                                         .k = s.k,
                                         .batch = batch,
                                         .a = left,
                                         .b = right,
                                         .to = to,
                                         .to_row_stride = s.n,
                                         .to_batch_stride = rows * s.n},
                                        call.stream());
  };
  if (ProductOf(s.b.shape, 0, s.b.rank() - 2) == 1 && s.b.rank() <= s.a.rank()) {
    multiply(ProductOf(s.a.shape, 0, s.a.rank() - 1), 1, {a, s.k, 1, 0}, {b, s.n, 1, 0}, c);
    return;
  }
  ForEachRunOfPairs(s, [&](int64_t left, int64_t right, int64_t index, int64_t count, int64_t a_step, int64_t b_step) {
    multiply(s.m, count, {a + left, s.k, 1, a_step}, {b + right, s.n, 1, b_step}, c + index * s.m * s.n);
  });
}

void MultiplyFloats(Call& call, const Stacks& s, Array& out) {
  if (!call.wants_elements()) return;
  if (call.device() != nullptr) return MultiplyOnDevice(call, s, out);
  const float* a = s.a.As<float>().data();
  const float* b = s.b.As<float>().data();
  float* c = out.Mutable<float>().data();
  // Many rows against one matrix are one product.
  if (ProductOf(s.b.shape, 0, s.b.rank() - 2) == 1 && s.b.rank() <= s.a.rank()) {
    const int64_t rows = ProductOf(s.a.shape, 0, s.a.rank() - 1);
    if (rows > 0 && s.n > 0) ParallelSgemm(call, rows, s.n, s.k, {a, s.k}, {b, s.n}, c);
    return;
  }
  cpu::CpuStream& stream = cpu::CpuStream::From(call.stream());
  ForEachRunOfPairs(s, [&](int64_t left, int64_t right, int64_t index, int64_t count, int64_t a_step, int64_t b_step) {
    const auto multiply = [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        stream.Keep(cpu::Sgemm(s.m, s.n, s.k, {a + left + i * a_step, s.k}, {b + right + i * b_step, s.n},
                               c + (index + i) * s.m * s.n, s.n));
      }
    };
    stream.ParallelRanges(count, multiply, ProductGrain(count, count * s.m * s.n * s.k));
  });
}

template <typename T>
void MultiplyPlainly(const Stacks& s, Array& out) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // integers wrap
  T* c = out.Mutable<T>().data();
  std::fill_n(c, out.elements(), T(0));
  ForEachPair(s, [&](int64_t a_offset, int64_t b_offset, int64_t index) {
    const T* a = s.a.As<T>().data() + a_offset;
    for (int64_t i = 0; i < s.m; ++i) {
      T* row = c + (index * s.m + i) * s.n;
      for (int64_t k = 0; k < s.k; ++k) {
        const T* b = s.b.As<T>().data() + b_offset + k * s.n;
        const auto factor = static_cast<Sum>(a[i * s.k + k]);
        for (int64_t j = 0; j < s.n; ++j)
          row[j] = static_cast<T>(static_cast<Sum>(row[j]) + factor * static_cast<Sum>(b[j]));
      }
    }
  });
}

// alpha * product + beta * c, where c broadcasts to the product.
Status ScaleAndAdd(float alpha, float beta, const Array* c, Array& product) {
  const auto values = product.Mutable<float>();
  if (alpha != 1.0f) {
    for (float& value : values) value *= alpha;
  }
  if (c == nullptr) return {};
  const Shape shapes[] = {product.shape, c->shape};
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(shapes));
  if (shape != product.shape) return InvalidArgument("input 2 does not broadcast to the product");
  const StridedLoop<1> loop(shape, std::array<Extents, 1>{BroadcastExtents(c->shape, shape)});
  loop.ForEachRun([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
    const float* from = c->As<float>().data() + offsets[0];
    float* to = values.data() + position;
    for (int64_t i = 0; i < count; ++i) to[i] += beta * from[i * loop.Step(0)];
  });
  return {};
}

}  // namespace

int64_t ProductGrain(int64_t parts, int64_t multiplications) {
  constexpr int64_t kWorthAThread = 1 << 16;
  return multiplications < kWorthAThread ? std::max<int64_t>(parts, 1) : 1;
}

void ParallelSgemm(Call& call, int64_t m, int64_t n, int64_t k, const cpu::SgemmOperand& a, const cpu::SgemmOperand& b,
                   float* c) {
  if (!call.wants_elements()) return;
  const bool by_rows = m >= n;
  cpu::CpuStream& stream = cpu::CpuStream::From(call.stream());
  const auto multiply = [&](int64_t, int64_t begin, int64_t end) {
    cpu::SgemmOperand left = a, right = b;
    if (by_rows) {
      left.data += a.transposed ? begin : begin * a.stride;
      stream.Keep(cpu::Sgemm(end - begin, n, k, left, right, c + begin * n, n));
    } else {
      right.data += b.transposed ? begin * b.stride : begin;
      stream.Keep(cpu::Sgemm(m, end - begin, k, left, right, c + begin, n));
    }
  };
  const int64_t lines = by_rows ? m : n;
  stream.ParallelRanges(lines, multiply, ProductGrain(lines, m * n * k));
}

Status ExactIntegerProduct(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* slice, int32_t* c) {
  std::fill_n(c, m * n, 0);
  for (int64_t begin = 0; begin < k; begin += kExactDepth) {
    const int64_t depth = std::min(kExactDepth, k - begin);
    SWIZZLE_RETURN_IF_ERROR(cpu::Sgemm(m, n, depth, {a + begin, k}, {b + begin * n, n}, slice, n));
    for (int64_t i = 0; i < m * n; ++i) {
      c[i] = static_cast<int32_t>(static_cast<uint32_t>(c[i]) + static_cast<uint32_t>(static_cast<int32_t>(slice[i])));
    }
  }
  return absl::OkStatus();
}

StatusOr<Array> IntegerMatMul(Call& call, const Array& first, const Array& second) {
  SWIZZLE_ASSIGN_OR_RETURN(const Stacks s, StacksOf(first, second));
  SWIZZLE_ASSIGN_OR_RETURN(Array out, call.New(DType::kInt32, s.result));
  SWIZZLE_ASSIGN_OR_RETURN(Array slice, call.New(DType::kFloat32, {s.m, s.n}));
  ForEachPair(s, [&](int64_t a_offset, int64_t b_offset, int64_t index) {
    cpu::CpuStream::From(call.stream())
        .Keep(ExactIntegerProduct(s.m, s.n, s.k, s.a.As<float>().data() + a_offset, s.b.As<float>().data() + b_offset,
                                  slice.Mutable<float>().data(), out.Mutable<int32_t>().data() + index * s.m * s.n));
  });
  return out;
}

StatusOr<Array> MatrixProduct(Call& call, const Array& first, const Array& second) {
  SWIZZLE_ASSIGN_OR_RETURN(const Stacks s, StacksOf(first, second));
  SWIZZLE_ASSIGN_OR_RETURN(Array out, call.New(first.dtype, s.result));
  if (first.dtype == DType::kFloat32) {
    MultiplyFloats(call, s, out);
  } else {
    VisitComputeType(first.dtype, [&]<typename T>(T) { MultiplyPlainly<T>(s, out); });
  }
  return out;
}

StatusOr<Array> MatMul(Call& call) {
  const DType dtype = call.In(0).dtype;
  SWIZZLE_RETURN_IF_ERROR(CheckSameType(call.In(0), call.In(1)));
  Array wide_a, wide_b;
  SWIZZLE_ASSIGN_OR_RETURN(const Array* const a, call.InAs(0, ComputeType(dtype), wide_a));
  SWIZZLE_ASSIGN_OR_RETURN(const Array* const b, call.InAs(1, ComputeType(dtype), wide_b));
  if (call.device() != nullptr && dtype != DType::kFloat32) return Unimplemented("a device multiplies FP32 alone");
  SWIZZLE_ASSIGN_OR_RETURN(Array out, MatrixProduct(call, *a, *b));
  return call.As(std::move(out), dtype);
}

StatusOr<Array> Gemm(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float beta, call.Float("beta", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t transpose_a, call.Int("transA", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t transpose_b, call.Int("transB", 0));
  if (call.In(0).rank() != 2 || call.In(1).rank() != 2) return InvalidArgument("inputs 0 and 1 must be matrices");
  if (!IsFloating(call.In(0).dtype)) return Unimplemented("only floating types are supported");
  Array floats_a, floats_b, floats_c;
  SWIZZLE_ASSIGN_OR_RETURN(const Array* const in_a, call.InAs(0, DType::kFloat32, floats_a));
  SWIZZLE_ASSIGN_OR_RETURN(const Array* const in_b, call.InAs(1, DType::kFloat32, floats_b));
  const Array &a = *in_a, &b = *in_b;
  const int64_t m = a.shape[transpose_a != 0], k = a.shape[transpose_a == 0];
  const int64_t n = b.shape[transpose_b == 0];
  if (b.shape[transpose_b != 0] != k) {
    return InvalidArgument("matrices of shapes ", ShapeText(a.shape), " and ", ShapeText(b.shape), " have no product");
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array out, call.New(DType::kFloat32, {m, n}));
  if (m > 0 && n > 0) {
    ParallelSgemm(call, m, n, k, {a.As<float>().data(), a.shape[1], transpose_a != 0},
                  {b.As<float>().data(), b.shape[1], transpose_b != 0}, out.Mutable<float>().data());
  }
  const Array* c = nullptr;
  if (call.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(c, call.InAs(2, DType::kFloat32, floats_c));
  }
  SWIZZLE_RETURN_IF_ERROR(ScaleAndAdd(alpha, beta, c, out));
  return call.As(std::move(out), call.In(0).dtype);
}

}  // namespace swizzle::interpreter
