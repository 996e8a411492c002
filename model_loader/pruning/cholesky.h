// Symmetric positive definite systems in double precision. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PRUNING_CHOLESKY_H_
#define SWIZZLE_MODEL_LOADER_PRUNING_CHOLESKY_H_

#include <cstdint>
#include <span>
#include <vector>

namespace swizzle {

// The upper triangle U of A = U^T U in place of A's, row-major [n, n]; what lies below is left as it was. False where A
// is not positive definite. Blocked, for caches; O(n^3 / 3).
bool Factorise(std::span<double> matrix, int64_t n);

// x of A x = b in b's place, given U.
void Solve(std::span<const double> factor, int64_t n, std::span<double> b);

// The whole inverse of A, given U. O(n^3).
std::vector<double> Inverse(std::span<const double> factor, int64_t n);

double Dot(const double* a, const double* b, int64_t n);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PRUNING_CHOLESKY_H_
