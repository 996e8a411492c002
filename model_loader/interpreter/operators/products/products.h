// Matrix products that several operators make: of FP32 by all threads, and of integers of at most 9 bits, exactly,
// through FP32.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_PRODUCTS_PRODUCTS_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_PRODUCTS_PRODUCTS_H_

#include "kernels/cpu/conv/sgemm.h"
#include "model_loader/interpreter/values/call.h"

namespace swizzle::interpreter {

// How many parts of products that need so many multiplications together a task takes at least: all of them, where one
// thread is done with them before it has woken others.
int64_t ProductGrain(int64_t parts, int64_t multiplications);

// c [m, n] = a * b, its longer side shared among the stream's threads. What fails is kept by the stream.
// REQUIRES: m, n > 0.
void ParallelSgemm(Call& call, int64_t m, int64_t n, int64_t k, const cpu::SgemmOperand& a, const cpu::SgemmOperand& b,
                   float* c);

// So many products of two integers of at most 9 bits (8 bits less a zero point) fp32 adds up without rounding.
inline constexpr int64_t kExactDepth = 256;

// As ONNX's MatMul has it, of two arrays of one compute type.
StatusOr<Array> MatrixProduct(Call& call, const Array& first, const Array& second);

// c [m, n] = a [m, k] * b [k, n]. `slice` has room for m * n. REQUIRES: all elements are integers of magnitude at most
// 255. Sums wrap at 32 bits. Fails where Sgemm does.
Status ExactIntegerProduct(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* slice, int32_t* c);

// MatMul of two FP32 arrays of such integers, as INT32.
StatusOr<Array> IntegerMatMul(Call& call, const Array& first, const Array& second);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_PRODUCTS_PRODUCTS_H_
